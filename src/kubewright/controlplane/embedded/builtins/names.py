"""What Kubernetes allows as a name, a label, a port or a key, and its messages about invalid ones.

Every rule takes a value and returns its complaints, none when it is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from kubewright.controlplane.embedded.apimachinery.remembered import remembered

NameRule: TypeAlias = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character"
)
_OLD_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_KEY_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_TEXT = f"a valid label must be an empty string or {_KEY_TEXT.removeprefix('must ')}"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_MATCHES_LABEL = re.compile(_LABEL)
_MATCHES_SUBDOMAIN = re.compile(_SUBDOMAIN)
_MATCHES_OLD_LABEL = re.compile(_OLD_LABEL)
_MATCHES_WILDCARD = re.compile(rf"\*\.{_SUBDOMAIN}")
_MATCHES_KEY = re.compile(_KEY)
_MATCHES_CONFIG_KEY = re.compile(_CONFIG_KEY)
_MATCHES_HEADER = re.compile("[-A-Za-z0-9]+")
_MATCHES_PERCENT = re.compile("[0-9]+%")


def explained(text: str, pattern: str, *examples: str) -> str:
    """A complaint with its pattern, and values that match it."""
    if not examples:
        return f"{text} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def too_long(length: int) -> str:
    """More characters than allowed."""
    return f"must be no more than {length} characters"


def between(lowest: int, highest: int) -> str:
    """A number outside of its range."""
    return f"must be between {lowest} and {highest}, inclusive"


def dns_label(value: str) -> list[str]:
    """One part of a host name: `my-name`."""
    wrong = [too_long(63)] if len(value) > 63 else []
    if not _MATCHES_LABEL.fullmatch(value):
        if _MATCHES_SUBDOMAIN.fullmatch(value):
            wrong.append("must not contain dots")
        else:
            wrong.append(explained(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
    return wrong


@remembered(4096)
def _subdomain(value: str) -> tuple[str, ...]:
    wrong = [too_long(253)] if len(value) > 253 else []
    if not _MATCHES_SUBDOMAIN.fullmatch(value):
        wrong.append(explained(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    return tuple(wrong)


def dns_subdomain(value: str) -> list[str]:
    """A host name: `example.com`."""
    return list(_subdomain(value))


def old_dns_label(value: str) -> list[str]:
    """A label that begins with a letter, as RFC 1035 has it."""
    wrong = [too_long(63)] if len(value) > 63 else []
    if not _MATCHES_OLD_LABEL.fullmatch(value):
        wrong.append(explained(_OLD_LABEL_TEXT, _OLD_LABEL, "my-name", "abc-123"))
    return wrong


def wildcard_subdomain(value: str) -> list[str]:
    """`*.example.com`."""
    wrong = [too_long(253)] if len(value) > 253 else []
    if not _MATCHES_WILDCARD.fullmatch(value):
        wrong.append(explained(_WILDCARD_TEXT, rf"\*\.{_SUBDOMAIN}", "*.example.com"))
    return wrong


def path_segment(value: str) -> list[str]:
    """A name that only has to fit into a URL, as those of roles."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in value]


def _size(value: str) -> int:
    return len(value.encode("utf-8", "surrogatepass"))


@remembered(4096)
def _qualified_name(value: str) -> tuple[str, ...]:
    parts = value.split("/")
    key_text = explained(_KEY_TEXT, _KEY, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        text = f"a valid label key {key_text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (text,)
    wrong = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            wrong.append("prefix part must be non-empty")
        else:
            if _size(prefix) > 253:
                wrong.append("prefix part must be no more than 253 bytes")
            if not _MATCHES_SUBDOMAIN.fullmatch(prefix):
                wrong.append("prefix part " + explained(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com"))
    name = parts[-1]
    if not name:
        wrong.append("name part must be non-empty")
    elif _size(name) > 63:
        wrong.append("name part must be no more than 63 bytes")
    if not _MATCHES_KEY.fullmatch(name):
        wrong.append(f"name part {key_text}")
    return tuple(wrong)


def qualified_name(value: str) -> list[str]:
    """The key of a label or annotation, a finalizer, a resource: `name` or `example.com/name`."""
    return list(_qualified_name(value))


@remembered(4096)
def _label_value(value: str) -> tuple[str, ...]:
    wrong = ["must be no more than 63 bytes"] if _size(value) > 63 else []
    if value and not _MATCHES_KEY.fullmatch(value):
        wrong.append(explained(_VALUE_TEXT, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return tuple(wrong)


def label_value(value: str) -> list[str]:
    """The value of a label."""
    return list(_label_value(value))


def config_key(value: str) -> list[str]:
    """A key of a ConfigMap or Secret: it becomes a file name."""
    wrong = [too_long(253)] if len(value) > 253 else []
    if not _MATCHES_CONFIG_KEY.fullmatch(value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        wrong.append(explained(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if value in (".", ".."):
        wrong.append(f"must not be '{value}'")
    elif value.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def environment_name(value: str) -> list[str]:
    """The name of an environment variable."""
    if not value:
        return ["environment variable name must be non-empty"]
    if any(not " " <= character <= "~" or character == "=" for character in value):
        return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]
    return []


def port_name(value: str) -> list[str]:
    """The name of a container's port."""
    wrong = [too_long(15)] if len(value) > 15 else []
    if not re.fullmatch("[-a-z0-9]+", value):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in value:
        wrong.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def port_number(value: int) -> list[str]:
    """A port of TCP, UDP or SCTP."""
    return [] if 1 <= value <= 65535 else [between(1, 65535)]


def http_header(value: str) -> list[str]:
    """The name of an HTTP header."""
    if _MATCHES_HEADER.fullmatch(value):
        return []
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [explained(text, "[-A-Za-z0-9]+", "X-Header-Name")]


def percentage(value: str) -> list[str]:
    """`25%`."""
    if _MATCHES_PERCENT.fullmatch(value):
        return []
    text = "a valid percent string must be a numeric string followed by an ending '%'"
    return [explained(text, "[0-9]+%", "1%", "93%")]


def first_complaint(rule: NameRule) -> Callable[[str], str | None]:
    """A rule in the form of `Strategy.validate_name`."""

    def complaint(value: str) -> str | None:
        wrong = rule(value)
        return wrong[0] if wrong else None

    return complaint
