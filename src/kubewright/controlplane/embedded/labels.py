"""What a label may be called and hold, and what Kubernetes says of one that breaks the rules."""

from __future__ import annotations

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_is_name = re.compile(_NAME).fullmatch
_is_value = re.compile(_VALUE).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch

_MUST = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_RULE = (
    f"must consist of {_MUST} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    f"a valid label must be an empty string or consist of {_MUST}"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
    f" (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def label_key_problems(key: str) -> list[str]:
    """What is wrong with the key of a label, or with any other qualified name; nothing when it is valid."""
    if key.count("/") > 1:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    prefix, slash, name = key.rpartition("/")
    if slash:
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _is_name(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """What is wrong with the value of a label; nothing when it is valid."""
    problems = []
    if _size(value) > 63:
        problems.append("must be no more than 63 bytes")
    if not _is_value(value):
        problems.append(_VALUE_RULE)
    return problems


def subdomain_problems(name: str) -> list[str]:
    """What is wrong with a DNS subdomain; nothing when it is valid."""
    problems = []
    if _size(name) > 253:
        problems.append("must be no more than 253 bytes")
    if not _is_subdomain(name):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
