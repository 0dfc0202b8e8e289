"""Paths with escapes, and the old paths of watches."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask, Fetch

CONFIG_MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        (f"{CONFIG_MAPS}/%2e%2e", 400, "Name parameter invalid: \"..\": may not be '..'"),
        (f"{CONFIG_MAPS}/.", 400, "Name parameter invalid: \".\": may not be '.'"),
        (f"{CONFIG_MAPS}/a%25b", 400, "Name parameter invalid: \"a%b\": may not contain '%'"),
        (f"{CONFIG_MAPS}/a%2fb", 404, "the server could not find the requested resource"),
        ("/api/v1/namespaces/%2e%2e/configmaps", 500, 'invalid key: "/configmaps/.."'),
        ("/api/v1/%2e%2e/v1/pods", 404, "the server could not find the requested resource"),
        ("/api/../version", 404, "the server could not find the requested resource"),
    ],
)
async def test_no_step_leads_upwards(ask: Ask, path: str, code: int, message: str) -> None:
    answer = await ask("GET", path)
    assert (answer.code, answer.body.get("message")) == (code, message)


async def test_the_old_paths_of_watches_are_served(ask: Ask, fetch: Fetch, namespace: str) -> None:
    for name in ("a", "b"):
        assert (await ask("POST", CONFIG_MAPS, {"metadata": {"name": name}})).code == 201
    path = f"/api/v1/watch/namespaces/{namespace}/configmaps"
    every, single = [
        await fetch(f"{target}?timeoutSeconds=1&resourceVersion=0&labelSelector=!x") for target in (path, f"{path}/a")
    ]
    assert {b'"name":"a"' in every.body, b'"name":"b"' in every.body, b'"name":"a"' in single.body} == {True}
    assert b'"name":"b"' not in single.body
    assert single.body.startswith(b'{"type":"ADDED","object":{"kind":"ConfigMap"')
    assert (await ask("POST", "/api/v1/watch/configmaps", {})).code == 405
