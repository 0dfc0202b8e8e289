"""The string formats of custom resources, each as exact as the Go function that the real server calls.

A format is looked up without its dashes, as the real server does: `date-time` and `datetime` are one. Formats that are
not here are not checked.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Mapping

from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.schema.patterns import go_pattern

FormatCheck = Callable[[str], bool]

_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_WORDED_DURATION = re.compile(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]+)")
_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "wk", "week"),
)
# Letters and symbols of any script are folded to `a` and `1` before this is applied.
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9](?:-?[a-zA-Z0-9]{0,62})?|(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,63}"
)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\x{80}-\x{10ffff}-]+"
_QUOTED = r'"(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*"'
_ADDRESS = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_ATOM}(?:\.{_ATOM})*|\[[^\[\]\\\x00-\x1f]*\])"
# Its parts can be read in very many ways, which only an engine that follows all of them at once does in time.
_EMAIL = go_pattern(rf"(?s)^\s*(?:{_ADDRESS}|(?:(?:{_ATOM}(?:\.{_ATOM})*\.?|{_QUOTED})\s*)*<\s*{_ADDRESS}\s*>)\s*$")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:<>\"\u0080-\U0010ffff]|%[0-9A-Fa-f]{2})*")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _matching(pattern: str, limit: int | None = None) -> FormatCheck:
    match = re.compile(pattern).fullmatch
    if limit is None:
        return lambda text: match(text) is not None
    return lambda text: len(text) <= limit and match(text) is not None


def _is_date(text: str) -> bool:
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    # Go knows the year 0, a leap year; Python's calendar starts later.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not _is_date(parts[0]):
        return False
    found = _TIME.fullmatch(parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        return True
    # Anything that names an amount and a unit passes, as in Scala's durations.
    return any(_is_unit(unit.lower()) for _, unit in _WORDED_DURATION.findall(text))


def _is_unit(unit: str) -> bool:
    return any(unit in variants or unit.startswith(variants[-1]) for variants in _UNITS)


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255 or any(len(label.encode()) > 63 for label in text.split(".")):
        return False
    return _HOSTNAME.fullmatch("".join(map(_folded, text))) is not None


def _folded(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in ".-"):
        return character
    category = unicodedata.category(character)[0]
    return "a" if category == "L" else "1" if category == "S" else " "


def _without_leading_zeros(address: str) -> str:
    return ".".join(part.lstrip("0") or ("0" if part else "") for part in address.split("."))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_ipv4(text: str) -> bool:
    return "." in text and _is_ip(text if ":" in text else _without_leading_zeros(text))


def _is_ipv6(text: str) -> bool:
    return ":" in text and _is_ip(text)


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch(r"[0-9]+", length):
        return False
    if ":" in address:
        return _is_ipv6(address) and bounded_integer(length) <= 128
    return _is_ipv4(address) and bounded_integer(length) <= 32


def _is_mac(text: str) -> bool:
    octets = (6, 8, 20)
    return any(
        re.fullmatch(rf"[0-9a-fA-F]{{2}}(?:{separator}[0-9a-fA-F]{{2}}){{{count - 1}}}", text)
        for separator in ":-"
        for count in octets
    ) or any(re.fullmatch(rf"[0-9a-fA-F]{{4}}(?:\.[0-9a-fA-F]{{4}}){{{count // 2 - 1}}}", text) for count in octets)


def _is_uri(text: str) -> bool:
    """As Go's `url.ParseRequestURI`: absolute, or an absolute path."""
    if not text or any(character < " " or character == "\x7f" for character in text):
        return False
    if text == "*":
        return True
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).split("?", 1)[0]
    if not rest.startswith("/"):
        return scheme is not None
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return _is_authority(authority) and not _BAD_ESCAPE.search(slash + path)
    return not _BAD_ESCAPE.search(rest)


def _is_authority(text: str) -> bool:
    user, at, host = text.rpartition("@")
    if at and not (_USER.fullmatch(user) and not _BAD_ESCAPE.search(user)):
        return False
    if host.startswith("["):
        address, bracket, port = host[1:].rpartition("]")
        return (
            bool(bracket) and _is_ipv6(address.partition("%25")[0]) and re.fullmatch(r"(?::[0-9]*)?", port) is not None
        )
    name, colon, port = host.rpartition(":")
    if colon and (":" in name or not re.fullmatch(r"[0-9]*", port)):
        return False
    return _HOST.fullmatch(host) is not None


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{9}X|[0-9]{10}", digits):
        return False
    total = sum((index + 1) * int(digit) for index, digit in enumerate(digits[:9]))
    return (total + 10 * (10 if digits[9] == "X" else int(digits[9]))) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    total = sum((3 if index % 2 else 1) * int(digit) for index, digit in enumerate(digits[:12]))
    return int(digits[12]) == (10 - total % 10) % 10


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_COLOR_PART = r"\s*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*"
_SHORT_NAME = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_HEX = "[0-9a-fA-F]"

FORMATS: Mapping[str, FormatCheck] = {
    "bsonobjectid": _matching(_HEX + "{24}"),
    "uri": _is_uri,
    "email": _EMAIL.matches,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "uuid": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _matching(r"[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}"),
    "hexcolor": _matching(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(rf"rgb\({_COLOR_PART},{_COLOR_PART},{_COLOR_PART}\)"),
    "byte": _matching(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda text: True,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8sshortname": _matching(_SHORT_NAME, 63),
    "k8slongname": _matching(rf"{_SHORT_NAME}(?:\.{_SHORT_NAME})*", 253),
}


def recognized(format_: str, type_: str) -> bool:
    """Whether values of this type are held to this format; a definition that uses another one gets a warning."""
    if type_ in ("", "string"):
        return format_.replace("-", "") in FORMATS
    if type_ == "integer":
        return format_ in ("int32", "int64")
    return type_ == "number" and format_ in ("float", "double")
