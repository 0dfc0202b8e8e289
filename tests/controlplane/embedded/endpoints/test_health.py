"""What is compared with the real server's answers is in tests/conformance/test_endpoints.py."""

from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.endpoints.health import CHECKS, health_response
from kubewright.controlplane.embedded.endpoints.request import parse_query


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_every_check_has_a_path_of_its_own(name: str) -> None:
    for check in CHECKS[name]:
        response = health_response(f"/{name}/{check}", parse_query(""))
        assert response is not None
        assert response.body == b"ok"


@pytest.mark.parametrize("path", ["/healthz/nothing", "/health", "/", "/livez/shutdown"])
def test_other_paths_are_none_of_it(path: str) -> None:
    assert health_response(path, parse_query("verbose")) is None


def test_nothing_is_listed_twice() -> None:
    for checks in CHECKS.values():
        assert len(set(checks)) == len(checks)
