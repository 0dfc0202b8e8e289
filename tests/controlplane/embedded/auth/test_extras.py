from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.auth.extras import what_is_wrong_with


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("example.com/scope", "a", ""),
        ("", "a", "impersonating the empty string key in extra is not allowed"),
        ("example.com/scope", "", "impersonating the empty string value in extra is not allowed"),
        (
            "scope",
            "a",
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scope": '
            'must be a domain-prefixed path (such as "acme.io/foo")',
        ),
        (
            "example.com/a b",
            "a",
            'impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "a b": '
            r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')",
        ),
    ],
)
def test_extras_need_a_domain_and_a_value(key: str, value: str, wrong: str) -> None:
    assert what_is_wrong_with({key: (value,)}) == wrong


def test_a_domain_must_be_a_dns_name() -> None:
    assert "a lowercase RFC 1123 subdomain must consist of" in what_is_wrong_with({"a_b/c": ("x",)})
