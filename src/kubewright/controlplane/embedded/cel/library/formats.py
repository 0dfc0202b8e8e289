"""Named formats: `format.dns1123Label().validate(self.name)` returns the errors of a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.library.times import parsed_date
from kubewright.controlplane.embedded.cel.library.urls import parse_request_uri
from kubewright.controlplane.embedded.cel.types import STRING, CelType, list_of, optional_of
from kubewright.controlplane.embedded.cel.values import NONE, Opaque, Optional

FORMAT: Final = CelType("struct", "kubernetes.NamedFormat")

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_BASE64: Final = "(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=|[A-Za-z0-9+\\/]{4})"
_UUID: Final = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_TIME: Final = "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """A format and what it finds wrong; two are equal when their names are."""

    name: str
    faults: Callable[[str], list[str]]

    type_name = "kubernetes.NamedFormat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def _too_long(text: str, maximum: int, unit: str = "characters") -> list[str]:
    return [f"must be no more than {maximum} {unit}"] if len(text.encode()) > maximum else []


def _expected(what: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


def _label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if re.fullmatch(_LABEL, text):
        return faults
    if re.fullmatch(_SUBDOMAIN, text):
        return [*faults, "must not contain dots"]
    what = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character"
    )
    return [*faults, _expected(what, _LABEL, "my-name", "123-abc")]


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    faults = _too_long(text, 253, unit)
    if re.fullmatch(_SUBDOMAIN, text):
        return faults
    what = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character"
    )
    return [*faults, _expected(what, _SUBDOMAIN, "example.com")]


def _label_1035(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if re.fullmatch(_LABEL_1035, text):
        return faults
    what = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return [*faults, _expected(what, _LABEL_1035, "my-name", "abc-123")]


def _qualified_name(text: str) -> list[str]:
    what = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character"
    )
    wrong = _expected(what, _KEY, "MyName", "my.name", "123-abc")
    parts = text.split("/")
    if len(parts) > 2:
        return [f"a valid label key {wrong} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    faults: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            faults.append("prefix part must be non-empty")
        else:
            faults += [f"prefix part {fault}" for fault in _subdomain(parts[0], "bytes")]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    faults += [f"name part {fault}" for fault in _too_long(name, 63, "bytes")]
    if not re.fullmatch(_KEY, name):
        faults.append(f"name part {wrong}")
    return faults


def _label_value(text: str) -> list[str]:
    faults = _too_long(text, 63, "bytes")
    if re.fullmatch(f"({_KEY})?", text):
        return faults
    what = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character"
    )
    return [*faults, _expected(what, f"({_KEY})?", "MyValue", "my_value", "12345")]


def _prefix(faults: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def of(text: str) -> list[str]:
        # A name will be completed: a dash at the end is fine.
        return faults(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return of


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


def _matching(pattern: str, fault: str) -> Callable[[str], list[str]]:
    compiled = re.compile(pattern)
    return lambda text: [] if compiled.fullmatch(text) else [fault]


def _is_date(text: str) -> bool:
    try:
        parsed_date(text)
    except ValueError:
        return False
    return True


def _date_time(text: str) -> list[str]:
    date, _, rest = text.lower().partition("t")
    found = re.fullmatch(_TIME, rest.partition("t")[0])
    valid = _is_date(date) and found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"
    return [] if valid else ["invalid datetime"]


_FORMATS: Final = {
    name: NamedFormat(shown, faults)
    for name, shown, faults in (
        ("dns1123Label", "DNS1123Label", _label),
        ("dns1123Subdomain", "DNS1123Subdomain", _subdomain),
        ("dns1035Label", "DNS1035Label", _label_1035),
        ("qualifiedName", "QualifiedName", _qualified_name),
        ("dns1123LabelPrefix", "DNS1123LabelPrefix", _prefix(_label)),
        ("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", _prefix(_subdomain)),
        ("dns1035LabelPrefix", "DNS1035LabelPrefix", _prefix(_label_1035)),
        ("labelValue", "LabelValue", _label_value),
        ("uri", "URI", _uri),
        ("uuid", "uuid", _matching(_UUID, "does not match the UUID format")),
        ("byte", "byte", _matching(_BASE64, "invalid base64")),
        ("date", "date", lambda text: [] if _is_date(text) else ["invalid date"]),
        ("datetime", "datetime", _date_time),
    )
}


def _named(name: str) -> Optional:
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(True, found)


def _validate(format_: NamedFormat, text: str) -> Optional:
    faults: list[object] = list(format_.faults(text))
    return Optional(True, faults) if faults else NONE


def _constant(value: NamedFormat) -> Callable[[], object]:
    return lambda: value


FORMAT_FUNCTIONS: Final[list[Overload]] = [
    *(function(f"format.{name}", [], FORMAT, _constant(value)) for name, value in _FORMATS.items()),
    function("format.named", [STRING], optional_of(FORMAT), _named),
    method("validate", [FORMAT, STRING], optional_of(list_of(STRING)), _validate),
]
