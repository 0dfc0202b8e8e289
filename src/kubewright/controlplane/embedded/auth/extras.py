"""Which extras of a user may be impersonated in the constrained way: those with keys like `example.com/key`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value
from kubewright.controlplane.embedded.builtins.names import dns_subdomain

_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def what_is_wrong_with(extra: Mapping[str, tuple[str, ...]]) -> str:
    """Why these extras cannot be impersonated, with Kubernetes' message; empty when they can."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if wrong := _wrong_key(key):
            return f"impersonating an invalid key in extra is not allowed: {wrong[0]}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _wrong_key(key: str) -> list[FieldError]:
    domain, _, path = key.partition("/")
    if not domain or not path:
        return [invalid_value("extra.key", key, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    if problems := dns_subdomain(domain):
        return [invalid_value("extra.key", domain, problem) for problem in problems]
    if not re.fullmatch(_PATH, path):
        return [invalid_value("extra.key", path, f"Invalid path (regex used for validation is '{_PATH}')")]
    return []
