from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.builtins import names
from kubewright.controlplane.embedded.builtins.names import NameRule


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (names.dns_label, "a-1"),
        (names.dns_subdomain, "a.b-c.1"),
        (names.old_dns_label, "a1"),
        (names.wildcard_subdomain, "*.example.com"),
        (names.path_segment, "system:any thing"),
        (names.qualified_name, "example.com/My_name.1"),
        (names.qualified_name, "a" * 63),
        (names.label_value, ""),
        (names.config_key, ".hidden"),
        (names.environment_name, "a b"),
        (names.port_name, "web-1"),
        (names.http_header, "X-Header"),
        (names.percentage, "200%"),
    ],
)
def test_good_values_have_no_complaints(rule: NameRule, value: str) -> None:
    assert rule(value) == []


@pytest.mark.parametrize(
    ("rule", "value", "complaint"),
    [
        (names.dns_label, "a" * 64, "must be no more than 63 characters"),
        (names.dns_label, "a.b", "must not contain dots"),
        (names.dns_subdomain, "a" * 254, "must be no more than 253 characters"),
        (names.qualified_name, "a" * 64, "name part must be no more than 63 bytes"),
        (names.qualified_name, f"{'a' * 254}/x", "prefix part must be no more than 253 bytes"),
        (names.label_value, "ä" * 32, "must be no more than 63 bytes"),
        (names.config_key, "..a", "must not start with '..'"),
        (names.config_key, "a" * 254, "must be no more than 253 characters"),
        (names.environment_name, "", "environment variable name must be non-empty"),
        (names.port_name, "a--b", "must not contain consecutive hyphens"),
        (names.port_name, "-a", "must not begin or end with a hyphen"),
        (names.path_segment, "a%b", "may not contain '%'"),
    ],
)
def test_bad_values_are_distinguished(rule: NameRule, value: str, complaint: str) -> None:
    assert complaint in rule(value)


def test_a_trailing_newline_is_not_overlooked() -> None:
    assert names.dns_label("a\n")
    assert names.label_value("a\n")
    assert names.qualified_name("a\n")


NAME = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
VALUE = "a valid label must be an empty string or consist of"


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/a", "a.b-c/X", "a" * 63, f"{'a' * 253}/b"])
def test_a_valid_label_key_has_no_complaints(key: str) -> None:
    assert names.qualified_name(key) == []


@pytest.mark.parametrize(
    ("rule", "value", "complaints"),
    [
        (names.qualified_name, "", ["name part must be non-empty", f"name part {NAME} (e.g."]),
        (names.qualified_name, "-a", [f"name part {NAME} (e.g."]),
        (names.qualified_name, "é" * 32, ["name part must be no more than 63 bytes", f"name part {NAME}"]),
        (names.qualified_name, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name, "x/", ["name part must be non-empty", f"name part {NAME}"]),
        (names.qualified_name, "A/a", ["prefix part a lowercase RFC 1123 subdomain must consist of lower case"]),
        (names.qualified_name, "a/b/c", [f"a valid label key {NAME}"]),
        (names.label_value, "a" * 64, ["must be no more than 63 bytes"]),
        (names.label_value, ".a", [VALUE]),
        (names.label_value, "a/b", [VALUE]),
        (names.label_value, "-" * 64, ["must be no more than 63 bytes", VALUE]),
    ],
)
def test_everything_that_is_wrong_with_a_label_is_reported(rule: NameRule, value: str, complaints: list[str]) -> None:
    found = rule(value)

    assert len(found) == len(complaints)
    for complaint, beginning in zip(found, complaints, strict=True):
        assert complaint.startswith(beginning)


def test_a_complaint_shows_the_pattern_and_an_example() -> None:
    assert names.dns_subdomain("a..b") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
