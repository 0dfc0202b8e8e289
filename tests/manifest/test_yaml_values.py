from __future__ import annotations

import pytest
import yaml

from kubewright.manifest.yaml_reader import compose
from kubewright.manifest.yaml_values import value_of


def read(text: str) -> object:
    node = compose(yaml.CSafeLoader(text), text)
    assert node is not None
    return value_of(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30:45", "12:30:45"),
        ("22:22", "22:22"),
        ("190:20:30.15", "190:20:30.15"),
        ("1_000", 1000),
        ("1e3", 1000),
        ("1.5e3", 1500),
        ("1e-3", 0.001),
        ("+.5", 0.5),
        ("1.", 1),
        ("-0.0", 0),
        ("014", 12),
        ("0o14", 12),
        ("08", 8),
        ("0X1F", 31),
        ("-0b11", -3),
        ("0x_", "0x_"),
        ("0b_", "0b_"),
        ("._1", "._1"),
        ("1e400", "1e400"),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("1" * 5000, "1" * 5000),
        ("0x" + "1" * 5000, "0x" + "1" * 5000),
        ("y", True),
        ("oFF", "oFF"),
        ("~", None),
        ("2026-01-01", "2026-01-01"),
        ("!!str 1", "1"),
        ("!!float 1", 1),
        ("!!binary Zm9v", "foo"),
        ("!!map foo", "foo"),
        ("!!str {a: b}", {"a": "b"}),
        ("!!set {a, b}", {"a": None, "b": None}),
        ("!!omap [a: b]", [{"a": "b"}]),
        (
            "{1: a, 1.5: b, on: c, 0x10: d, 1:30: e, .inf: f, -.inf: g}",
            dict(zip(("1", "1.5", "true", "16", "1:30", ".inf", "-.inf"), "abcdefg", strict=True)),
        ),
        ("{b: 1, <<: {a: 1, b: 2}}", {"a": 1, "b": 1}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
    ],
)
def test_values_are_gos(text: str, value: object) -> None:
    found = read(text)

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("!!int foo", "cannot decode !!str `foo` as a !!int"),
        ("!!float foo", "cannot decode !!str `foo` as a !!float"),
        ("!!bool foo", "cannot decode !!str `foo` as a !!bool"),
        ("!!null foo", "cannot decode !!str `foo` as a !!null"),
        ("!!timestamp foo", "cannot decode !!str `foo` as a !!timestamp"),
        ("!!timestamp 2001-99-99", "cannot decode !!str `2001-99-99` as a !!timestamp"),
        ("!!binary foo%%", "!!binary value contains invalid base64 data"),
        (".inf", "json: unsupported value: +Inf"),
        ("{<<: 5}", "map merge requires map or sequence of maps as the value"),
        ("{[a]: 1}", "invalid map key: a list"),
        ("{~: 1}", "unsupported map key: ~"),
    ],
)
def test_what_json_cannot_express_is_refused(text: str, problem: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as refused:
        read(text)
    assert refused.value.problem == problem


def test_a_number_of_very_many_parts_is_text() -> None:
    """To PyYAML it is a number to the base of 60, and takes it as long as the square of its length."""
    text = "1" + ":1" * 1_000_000

    assert read(text) == text


@pytest.mark.parametrize("opening", ["{<<: ", "{a: ", "!x {a: ", "!!omap {a: "])
def test_values_of_thousands_of_levels_are_read(opening: str) -> None:
    assert isinstance(read(opening * 9_000 + "{}" + "}" * 9_000), dict)
