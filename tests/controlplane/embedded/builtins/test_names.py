from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.builtins import names
from kubewright.controlplane.embedded.builtins.names import Rule


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
def test_good_values_have_no_complaints(rule: Rule, value: str) -> None:
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
def test_bad_values_are_told_apart(rule: Rule, value: str, complaint: str) -> None:
    assert complaint in rule(value)


def test_a_trailing_newline_is_not_overlooked() -> None:
    assert names.dns_label("a\n")
    assert names.label_value("a\n")
    assert names.qualified_name("a\n")
