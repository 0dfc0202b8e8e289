"""JSON as Go prints it: error messages show values in the notation of Go's `fmt`, `reflect` and `json`."""

from __future__ import annotations

from decimal import Decimal

import msgspec

from kubewright.api.markers import JSONValue


def formatted(value: JSONValue) -> str:
    """A value as `%v` prints it: `map[image:nginx ports:[80 443]]`, keys sorted."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case list():
            return f"[{' '.join(formatted(item) for item in value)}]"
        case dict():
            return f"map[{' '.join(f'{name}:{formatted(item)}' for name, item in sorted(value.items()))}]"
    return str(value)


def formatted_as_string(value: JSONValue | msgspec.Raw) -> str:
    """A value as `%s` prints it, where a string was expected."""
    match value:
        case None:
            return "%!s(<nil>)"
        case bool() | int() | float():
            return f"%!s({type_name(value)}={formatted(value)})"
        case list():
            return f"[{' '.join(map(_nested_as_string, value))}]"
        case dict():
            return f"map[{' '.join(f'{name}:{_nested_as_string(item)}' for name, item in sorted(value.items()))}]"
        case msgspec.Raw():  # too deep to be taken apart
            return bytes(value).decode()
    return value


def _nested_as_string(value: JSONValue) -> str:
    return "<nil>" if value is None else formatted_as_string(value)


def type_name(value: JSONValue) -> str:
    """The name of the Go type that decoded JSON has; null has none."""
    match value:
        case None:
            return "%!s(<nil>)"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case list():
            return "[]interface {}"
        case dict():
            return "map[string]interface {}"
    return "string"


def json_kind(value: JSONValue) -> str:
    """What Go's JSON decoder calls a value that does not fit: object, array, string, number or bool."""
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case str():
            return "string"
        case bool():
            return "bool"
        case None:
            return "null"
    return "number"


def json_text(value: JSONValue) -> bytes:
    """JSON as Go encodes it: compact, and safe to put into HTML."""
    return html_safe(msgspec.json.encode(value))


def html_safe(encoded: bytes) -> bytes:
    """Encoded JSON, safe to put into HTML."""
    for character, escaped in _HTML:
        encoded = encoded.replace(character, escaped)
    return encoded


# Outside of strings JSON has none of these, so that they can be replaced in the encoded text.
_HTML = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def _float(value: float) -> str:
    """The shortest digits that say the value, with an exponent for those below 1e-4 and from 1e6 on."""
    sign, digits, _ = (number := Decimal(repr(value)).normalize()).as_tuple()
    exponent = number.adjusted()
    if -4 <= exponent < 6:
        return f"{number:f}"
    head, *tail = (str(digit) for digit in digits)
    return f"{'-' if sign else ''}{head}{'.' + ''.join(tail) if tail else ''}e{exponent:+03d}"
