import msgspec
import pytest

from kubewright.api.int_or_string import INT_OR_STRING, IntOrString, scaled_value


class Rollout(msgspec.Struct):
    surge: IntOrString = 0
    port: IntOrString | None = None


@pytest.mark.parametrize("data", [b'{"surge":3,"port":"http"}', b'{"surge":"25%","port":8080}'])
def test_integers_and_strings_round_trip_as_they_are(data: bytes) -> None:
    assert msgspec.json.encode(msgspec.json.decode(data, type=Rollout)) == data


@pytest.mark.parametrize("value", [b"1.5", b"true", b"[]", b"null"])
def test_other_json_is_refused(value: bytes) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int \| str`, got .* at `\$\.surge`"):
        msgspec.json.decode(b'{"surge":%s}' % value, type=Rollout)


def test_mark_is_found_through_msgspec() -> None:
    info = msgspec.inspect.type_info(IntOrString)
    assert isinstance(info, msgspec.inspect.Metadata)
    assert info.extra == INT_OR_STRING.extra == {"x-kubernetes-int-or-string": True}


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (3, 10, 3, 3),
        (0, 10, 0, 0),
        ("25%", 10, 3, 2),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("150%", 3, 5, 4),
        ("+50%", 4, 2, 2),
        ("-50%", 3, -1, -2),
        ("1%", 10**18 + 1, 10**16 + 1, 10**16),
    ],
)
def test_scaled_value(value: IntOrString, total: int, up: int, down: int) -> None:
    assert scaled_value(value, total, round_up=True) == up
    assert scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize("value", ["5", "", "%", "http", "5 %", "1.5%", "5%%", "\N{ARABIC-INDIC DIGIT FIVE}%"])
def test_string_that_is_not_a_percentage_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="is neither an integer nor a percentage: expected a value like 3"):
        scaled_value(value, 10, round_up=True)
