from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import (
    formatted,
    formatted_as_string,
    json_kind,
    json_text,
    type_name,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": [1, None, True, "s"], "a": {}}, "map[a:map[] b:[1 <nil> true s]]"),
        (1e6, "1e+06"),
        (1000000.5, "1.0000005e+06"),
        (123456.0, "123456"),
        (1.5e22, "1.5e+22"),
        (0.0001, "0.0001"),
        (-1.5e-7, "-1.5e-07"),
        (1e-100, "1e-100"),
        (100.0, "100"),
        (12345678901, "12345678901"),
    ],
)
def test_values_are_printed_as_go_prints_them(value: JSONValue, expected: str) -> None:
    assert formatted(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("merge", "merge"),
        (5, "%!s(int64=5)"),
        (1.5, "%!s(float64=1.5)"),
        (None, "%!s(<nil>)"),
        (["a", 1, None], "[a %!s(int64=1) <nil>]"),
        ({"a": True}, "map[a:%!s(bool=true)]"),
    ],
)
def test_what_is_no_string_says_so_where_one_is_printed(value: JSONValue, expected: str) -> None:
    assert formatted_as_string(value) == expected


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        (None, "%!s(<nil>)", "null"),
        (True, "bool", "bool"),
        (1, "int64", "number"),
        (1.5, "float64", "number"),
        ("", "string", "string"),
        ([], "[]interface {}", "array"),
        ({}, "map[string]interface {}", "object"),
    ],
)
def test_types_are_named_as_go_names_them(value: JSONValue, name: str, kind: str) -> None:
    assert (type_name(value), json_kind(value)) == (name, kind)


def test_json_is_safe_in_html() -> None:
    assert json_text({"a": "<b> & \u2028\u2029é"}) == rb'{"a":"\u003cb\u003e \u0026 \u2028\u2029' + "é".encode() + b'"}'
