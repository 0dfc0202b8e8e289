import copy
import json
import pickle
import time
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from operator import add, eq, ge, gt, le, lt, mul, ne, sub
from pathlib import Path
from typing import TypedDict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api.quantity import Quantity


class Parsed(TypedDict, total=False):
    text: str
    error: str
    string: str
    unscaled: str
    scale: int
    negated: str
    value: int
    milli: int


class Pair(TypedDict):
    left: str
    right: str
    compare: int
    sum: str
    difference: str


class Product(TypedDict):
    text: str
    factor: int
    string: str


class Decoded(TypedDict):
    json: str | int | float
    string: str


class Vectors(TypedDict):
    parse: list[Parsed]
    pairs: list[Pair]
    products: list[Product]
    json: list[Decoded]


@pytest.fixture(scope="module")
def apimachinery() -> Vectors:
    """What k8s.io/apimachinery answers; made by tools/quantity_vectors."""
    return msgspec.json.decode(Path(__file__).with_name("quantity_vectors.json").read_bytes(), type=Vectors)


def is_refused(text: str) -> bool:
    try:
        Quantity(text)
    except ValueError:
        return True
    return False


def test_texts_are_accepted_and_refused_as_apimachinery_does(apimachinery: Vectors) -> None:
    expected = {case["text"]: "error" in case for case in apimachinery["parse"]}
    assert {text: is_refused(text) for text in expected} == expected
    assert sum(expected.values()) > 40


def test_parsed_amounts_are_those_of_apimachinery(apimachinery: Vectors) -> None:
    valid = [case for case in apimachinery["parse"] if "error" not in case]
    expected = {case["text"]: Decimal(f"{case['unscaled']}e{-case.get('scale', 0)}") for case in valid}
    assert {text: Quantity(text).as_decimal() for text in expected} == expected


def test_printed_forms_are_those_of_apimachinery(apimachinery: Vectors) -> None:
    valid = [case for case in apimachinery["parse"] if "error" not in case]
    expected = {case["text"]: (case["string"], case["negated"]) for case in valid}
    assert {text: (str(Quantity(text)), str(-Quantity(text))) for text in expected} == expected


def test_integers_and_thousandths_are_those_of_apimachinery(apimachinery: Vectors) -> None:
    values = {case["text"]: case["value"] for case in apimachinery["parse"] if "value" in case}
    thousandths = {case["text"]: case["milli"] for case in apimachinery["parse"] if "milli" in case}
    assert {text: int(Quantity(text)) for text in values} == values
    assert {text: Quantity(text).milli_value for text in thousandths} == thousandths


def test_comparison_sum_and_difference_are_those_of_apimachinery(apimachinery: Vectors) -> None:
    expected = [(case["compare"], case["sum"], case["difference"]) for case in apimachinery["pairs"]]
    pairs = [(Quantity(case["left"]), Quantity(case["right"])) for case in apimachinery["pairs"]]
    actual = [((left > right) - (left < right), str(left + right), str(left - right)) for left, right in pairs]
    assert actual == expected


def test_products_are_those_of_apimachinery(apimachinery: Vectors) -> None:
    expected = [case["string"] for case in apimachinery["products"]]
    assert [str(Quantity(case["text"]) * case["factor"]) for case in apimachinery["products"]] == expected


def test_json_strings_and_numbers_mean_what_they_mean_to_apimachinery(apimachinery: Vectors) -> None:
    expected = [Quantity(case["string"]) for case in apimachinery["json"]]
    assert [Quantity.from_json(case["json"]) for case in apimachinery["json"]] == expected


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("0.5Ki", "512"),
        ("12e3", "12e3"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
    ],
)
def test_printed_form(text: str, printed: str) -> None:
    assert str(Quantity(text)) == printed


@pytest.mark.parametrize("text", ["1.234", "+1Ki", "007"])
def test_forms_that_kubernetes_leaves_alone_are_left_alone(text: str) -> None:
    assert str(Quantity(text)) == text


@pytest.mark.parametrize(
    ("quantity", "printed"),
    [
        (Quantity("1000E"), "1e21"),
        (Quantity("-1234500E"), "-1234500E"),
        (Quantity("1Ei") * 1024, "1024Ei"),
        (Quantity(10**30), "1e30"),
    ],
)
def test_amounts_beyond_the_last_suffix_keep_their_value(quantity: Quantity, printed: str) -> None:
    """apimachinery drops the suffix and prints 1000E as 1."""
    assert str(quantity) == printed


def test_quantity_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Quantity("1").text = "2"  # type: ignore[misc] # the mistake under test


def test_equality_and_hash_go_by_amount() -> None:
    assert Quantity("1000m") == Quantity("1") == Quantity("1e0") == 1
    assert len({Quantity("1000m"), Quantity("1"), Quantity("1.0"), 1}) == 1
    assert Quantity("1Ki") != Quantity("1k")
    assert Quantity("1") != "1"


@pytest.mark.parametrize(
    ("operation", "expected"), [(lt, True), (le, True), (gt, False), (ge, False), (eq, False), (ne, True)]
)
def test_comparison_with_int(operation: Callable[[object, object], object], expected: bool) -> None:
    assert operation(Quantity("999m"), 1) is expected
    assert operation(1, Quantity("1001m")) is expected


def test_arithmetic_with_int() -> None:
    assert str(Quantity("1500m") + 1) == "2500m"
    assert str(1 + Quantity("1500m")) == "2500m"
    assert str(1 - Quantity("1500m")) == "-500m"
    assert str(Quantity("1500m") - 1) == "500m"
    assert str(3 * Quantity("512Mi")) == "1536Mi"
    assert str(Quantity("512Mi") * 2) == "1Gi"


@pytest.mark.parametrize("operation", [add, sub, mul, lt, le, gt, ge])
@pytest.mark.parametrize("other", [0.5, "1", None])
def test_other_types_do_not_mix_with_quantities(operation: Callable[[object, object], object], other: object) -> None:
    with pytest.raises(TypeError):
        operation(Quantity("1"), other)
    with pytest.raises(TypeError):
        operation(other, Quantity("1"))


def test_sum_is_printed_like_its_terms() -> None:
    assert str(sum([Quantity("1Gi"), Quantity("512Mi")])) == "1536Mi"
    assert str(sum([Quantity("250m"), Quantity("750m")])) == "1"


def test_negative_absolute_and_truth() -> None:
    assert str(-Quantity("1Gi")) == "-1Gi"
    assert str(abs(Quantity("-1Gi"))) == "1Gi"
    assert not Quantity("0Ki")
    assert Quantity("1n")
    assert not (-Quantity("0")).as_decimal().is_signed()
    assert not (Quantity("0") * -1).as_decimal().is_signed()


@pytest.mark.parametrize(("text", "integer"), [("1n", 1), ("-1n", -1), ("1.5", 2), ("-1.5", -2), ("-0.1Ki", -103)])
def test_integer_is_rounded_away_from_zero(text: str, integer: int) -> None:
    """apimachinery's Value() is -101 for -0.1Ki, against its own documentation."""
    assert int(Quantity(text)) == integer


def test_amount_above_int64_is_not_wrapped() -> None:
    assert int(Quantity("1e30")) == 10**30
    assert Quantity("10E").milli_value == 10**22


def test_int_and_decimal_are_taken_exactly() -> None:
    assert str(Quantity(1000)) == "1k"
    assert str(Quantity(Decimal("0.1"))) == "100m"
    assert Quantity(Decimal("1E-12")) == Quantity("1n")
    assert Quantity(10**6000) == 10**6000


def test_float_is_refused_with_advice() -> None:
    with pytest.raises(
        TypeError, match=r'str, int or Decimal, not float: floats are not exact, write Quantity\("0.1"\)'
    ):
        Quantity(0.1)  # type: ignore[arg-type] # the mistake under test


@pytest.mark.parametrize("value", [True, None, b"1"])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match=f"not {type(value).__name__}"):
        Quantity(value)  # type: ignore[arg-type] # the mistake under test


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("-Infinity")])
def test_number_that_is_not_finite_is_refused(value: Decimal) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1gb", "unknown suffix 'gb'"),
        ("Ei", "no number"),
        ("", "no number"),
        ("lots", "no number"),
        ("1 ", "suffix ' '"),
    ],
)
def test_error_shows_the_text_the_reason_and_the_expected_form(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        Quantity(text)
    assert str(caught.value).startswith(f"{text!r} is not a quantity")
    assert '"64Mi"' in str(caught.value)


def test_error_about_several_points_or_signs_names_it() -> None:
    with pytest.raises(ValueError, match=r"'1\.2\.3' is not a quantity \(malformed number\)"):
        Quantity("1.2.3")


def test_error_about_a_huge_exponent_names_it() -> None:
    with pytest.raises(ValueError, match="exponent"):
        Quantity("1e9999999999")


@pytest.mark.parametrize("value", ["1000m", "1.50", "+1Ki", " 1Gi ", 1000, 1.5, 0])
def test_a_quantity_is_written_back_as_it_was_read(value: str | int | float) -> None:
    quantity = Quantity.from_json(value)
    int(quantity)
    assert json.dumps(quantity.to_json()) == json.dumps(value)
    assert quantity.text == str(value)


def test_calculated_quantity_is_written_in_canonical_form() -> None:
    assert (Quantity("1000m") + 0).to_json() == "1"
    assert (Quantity("1.234") * 1).text == "1234m"
    assert Quantity(2000).to_json() == "2k"


@pytest.mark.parametrize("value", [None, True, [], {}])
def test_json_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=f'expected a quantity, such as "250m" or 2, found {type(value).__name__}'):
        Quantity.from_json(value)


def test_error_in_a_decoded_object_names_the_field() -> None:
    class Resources(msgspec.Struct):
        limits: dict[str, Quantity]

    def decode_hook(_: type, value: object) -> object:
        return Quantity.from_json(value)

    decoder = msgspec.json.Decoder(Resources, dec_hook=decode_hook)
    assert decoder.decode(b'{"limits":{"cpu":"100m"}}') == Resources({"cpu": Quantity("100m")})
    with pytest.raises(msgspec.ValidationError, match=r"'2 cores' is not a quantity.*at `\$\.limits\[\.\.\.\]`"):
        decoder.decode(b'{"limits":{"cpu":"2 cores"}}')


def test_repr_shows_the_text() -> None:
    assert repr(Quantity("1000m")) == "Quantity('1000m')"
    assert repr(Quantity("1000m") * 2) == "Quantity('2')"


@pytest.mark.parametrize("quantity", [Quantity("1000m"), Quantity("1Gi") * 2])
def test_copies_are_equal_and_keep_the_text(quantity: Quantity) -> None:
    for copied in (copy.copy(quantity), copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))):
        assert copied == quantity
        assert copied.text == quantity.text


def test_decimal_context_of_the_program_does_not_matter() -> None:
    with localcontext(Context(prec=1, Emax=1, traps=[Inexact])):
        quantity = Quantity("123456.789Ki") + Quantity("1n")
        assert str(quantity) == "126419751936000001n"
        assert str(Quantity("123456Ki") * 3) == "370368Ki"
        assert int(-quantity) == -126419752


def test_enormous_exponents_are_cheap() -> None:
    """A value such as 1e999999999 in one object must not stall the program that reads it."""
    start = time.process_time()
    enormous, tiny = Quantity("1e999999999"), Quantity("1e-999999999")
    assert enormous > Quantity("1Ei") > tiny > 0
    assert str(enormous * 10) == "10e999999999"
    assert str(tiny) == "1e-9"
    assert int(Quantity("0e999999999")) == 0
    assert hash(enormous) != hash(tiny)
    for operation in (lambda: int(enormous), lambda: enormous.milli_value, lambda: enormous + 1):
        with pytest.raises(OverflowError, match="more than 10000 digits"):
            operation()
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("text", ["0" * 200_000 + "x", "1" * 200_000 + "x", "." + "0" * 200_000 + "x"])
def test_long_invalid_text_is_refused_quickly_and_shown_in_part(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="…") as caught:
        Quantity(text)
    assert len(str(caught.value)) < 300
    assert time.process_time() - start < 0.5


suffixes = st.sampled_from(["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+7"])
texts = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20),
    st.one_of(st.just(""), st.integers(0, 10**12).map(".{}".format)),
    suffixes,
)
quantities = texts.map(Quantity)


def fraction(quantity: Quantity) -> Fraction:
    return Fraction(quantity.as_decimal())


@settings(deadline=None)
@given(quantities, quantities)
def test_order_is_that_of_the_exact_amounts(left: Quantity, right: Quantity) -> None:
    assert (left < right) == (fraction(left) < fraction(right))
    assert (left <= right) == (fraction(left) <= fraction(right))
    assert (left == right) == (fraction(left) == fraction(right))
    assert left != right or hash(left) == hash(right)


@settings(deadline=None)
@given(quantities, quantities, st.integers(-(10**20), 10**20))
def test_arithmetic_is_exact(left: Quantity, right: Quantity, factor: int) -> None:
    assert fraction(left + right) == fraction(left) + fraction(right)
    assert fraction(left - right) == fraction(left) - fraction(right)
    assert fraction(left * factor) == fraction(left) * factor


@settings(deadline=None)
@given(quantities)
def test_printed_form_means_the_same_and_is_printed_alike(quantity: Quantity) -> None:
    again = Quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@settings(deadline=None)
@given(quantities)
def test_rounding_is_up_to_the_next_integer(quantity: Quantity) -> None:
    assert 0 <= abs(int(quantity)) - abs(fraction(quantity)) < 1
    assert 0 <= abs(quantity.milli_value) - abs(fraction(quantity)) * 1000 < 1


@settings(deadline=None)
@given(st.text("+-.0123456789eEinumkKMGTP x", max_size=8))
def test_every_text_is_either_refused_or_fully_usable(text: str) -> None:
    if not is_refused(text):
        quantity = Quantity(text)
        assert Quantity(str(quantity)) == quantity + 0 == quantity


@settings(deadline=None)
@given(st.integers())
def test_integers_are_kept(value: int) -> None:
    assert int(Quantity(value)) == value == Quantity(value)
    assert hash(Quantity(value)) == hash(value)
