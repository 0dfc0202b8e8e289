from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.apimachinery.gotext import json_complaint, quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain é 😀", '"plain é 😀"'),
        ('"\\', r'"\"\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x1f\x7f", r'"\x00\x1f\x7f"'),
        ("\u00a0\u00ad\u2028", r'"\u00a0\u00ad\u2028"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_strings_are_quoted_as_go_quotes_them(text: str, expected: str) -> None:
    assert quoted(text) == expected


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "unexpected end of JSON input"),
        (b" ", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b"[1", "unexpected end of JSON input"),
        (b'"x', "unexpected end of JSON input"),
        (b"abc", "invalid character 'a' looking for beginning of value"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
        ("é".encode(), "invalid character 'Ã' looking for beginning of value"),
        (b"{a}", "invalid character 'a' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a"}', "invalid character '}' after object key"),
        (b'{"a":}', "invalid character '}' looking for beginning of value"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"01", "invalid character '1' after top-level value"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12x4"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"tru", "invalid character ' ' in literal true (expecting 'e')"),
        (b"nul", "invalid character ' ' in literal null (expecting 'l')"),
        (b"fals3", "invalid character '3' in literal false (expecting 'e')"),
        (b"-", "invalid character ' ' in numeric literal"),
        (b"1.", "invalid character ' ' after decimal point in numeric literal"),
        (b"1e", "invalid character ' ' in exponent of numeric literal"),
        (b"1e+", "invalid character ' ' in exponent of numeric literal"),
        (b"[" * 10_001, "invalid character '[' exceeded max depth"),
    ],
)
def test_malformed_json_has_the_message_of_go(data: bytes, complaint: str) -> None:
    assert json_complaint(data) == complaint


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_nothing_is_wrong_with_json(value: object, indent: int | None, ascii_only: bool) -> None:
    assert json_complaint(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()) is None


@given(st.text(alphabet='{}[]":,\\ntrue0123.eE-+ ', max_size=12))
def test_something_is_wrong_exactly_when_a_decoder_refuses(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert json_complaint(text.encode()) is not None
    else:
        assert json_complaint(text.encode()) is None
