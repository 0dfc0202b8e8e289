"""Times, amounts and bytes: how Go reads and writes them, and its messages about invalid ones."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_UP, Context, Decimal

from kubewright.api.markers import JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.remembered import remembered

_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_QUANTITY_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_NO_QUANTITY = f"quantities must match the regular expression '{_QUANTITY_PATTERN}'"
_THOUSANDTH = Decimal("0.001")
_EXACT = Context(MAX_PREC, ROUND_UP, MIN_EMIN, MAX_EMAX)


class MalformedScalar(Exception):
    """A string that is no time, amount or base64, in Go's words."""


def quantity(value: JSONValue) -> JSONValue:
    """An amount in canonical form: `1500m` for `1.5`."""
    if isinstance(value, str):
        return _canonical(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _canonical(repr(value))
    raise MalformedScalar(_NO_QUANTITY)


def resource_amount(value: JSONValue) -> JSONValue:
    """An amount of a resource: like `quantity`, and rounded up to thousandths."""
    return _rounded(str(quantity(value)))


@remembered(4096)
def _rounded(canonical: str) -> str:
    if not canonical.endswith(("n", "u")):
        return canonical
    return str(Quantity(Quantity(canonical).as_decimal().quantize(_THOUSANDTH, context=_EXACT)))


@remembered(4096)
def _canonical(written: str) -> str:
    try:
        return str(Quantity(written))
    except ValueError:
        raise MalformedScalar(_NO_QUANTITY) from None


def seconds_time(value: str) -> str:
    """A `metav1.Time`: RFC 3339, in UTC, cut to whole seconds."""
    if _PLAIN_TIME.fullmatch(value):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return value
    return f"{_in_utc(value, _SECONDS_LAYOUT).isoformat(timespec='seconds')}Z"


def micro_time(value: str) -> str:
    """A `metav1.MicroTime`: RFC 3339 with exactly six digits of fraction, in UTC."""
    return f"{_in_utc(value, _MICRO_LAYOUT).isoformat(timespec='microseconds')}Z"


def _in_utc(value: str, layout: str) -> datetime:
    try:
        return _parsed(value, layout).astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        # Hours before the first year or after the last: no time that anything can be compared with.
        raise MalformedScalar(f'parsing time "{value}": year out of range') from None


# The elements of Go's layouts with what each accepts, in order.
_ELEMENTS = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
    (".000000", r"\.\d{6}"),
    ("Z07:00", r"Z|[+-]\d\d:\d\d"),
)
_FRACTION = re.compile(r"[.,]\d+", re.ASCII)


def _parsed(value: str, layout: str) -> datetime:
    def refused(why: str) -> MalformedScalar:
        return MalformedScalar(f'parsing time "{value}"{why}')

    rest = value
    parts: list[str] = []
    for element, pattern in _ELEMENTS:
        if element == ".000000" and layout == _SECONDS_LAYOUT:
            # Go accepts a fraction that the layout does not have.
            fraction = _FRACTION.match(rest)
            parts.append(fraction[0].replace(",", ".")[:7] if fraction else "")
            rest = rest[fraction.end() :] if fraction else rest
            continue
        found = re.compile(pattern, re.ASCII).match(rest)
        if found is None:
            raise refused(f' as "{layout}": cannot parse "{rest}" as "{element}"')
        parts.append(found[0])
        rest = rest[found.end() :]
    if rest:
        raise refused(f': extra text: "{rest}"')
    limits = ((2, "month", 1, 12), (6, "hour", 0, 23), (8, "minute", 0, 59), (10, "second", 0, 59), (4, "day", 1, 31))
    for index, what, lowest, highest in limits:
        if not lowest <= int(parts[index]) <= highest:
            raise refused(f": {what} out of range")
    try:
        return datetime.fromisoformat("".join(parts))
    except ValueError:
        raise refused(": day out of range") from None


def base64_bytes(value: str | bytes) -> str:
    """Bytes as base64 with padding; line breaks are not part of them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    compact = value.replace("\n", "").replace("\r", "") if "\n" in value or "\r" in value else value
    octets = _decoded(compact)
    if octets is None:
        raise MalformedScalar(f"illegal base64 data at input byte {_first_illegal(compact)}")
    return base64.b64encode(octets).decode()


def _decoded(compact: str) -> bytes | None:
    # Python does not mind padding where none is needed, hence the check of the length.
    if len(compact) % 4:
        return None
    try:
        return binascii.a2b_base64(compact, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _first_illegal(value: str) -> int:
    """Where Go's decoder gives up: at the wrong character, or at the beginning of an incomplete group of four."""
    for index, character in enumerate(value):
        if character in _ALPHABET:
            continue
        within = index % 4
        if character != "=" or within < 2:
            return index
        if within == 2:
            if index + 1 == len(value):
                return len(value)
            if value[index + 1] != "=":
                return index
            return index + 2
        return index + 1
    return len(value) - len(value) % 4
