"""Requests to a server of the test's own, without controllers: only the test changes anything."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]


@pytest.fixture
async def send() -> AsyncIterator[Send]:
    """`await send("PUT", "/api/v1/...", body)`: the status of the answer and what is in it."""
    async with ControlPlane.embedded(controllers=[]) as plane:
        transport = HTTPTransport(plane.url, tls=plane.admin.ssl_context())

        async def send(method: str, target: str, body: JSONValue = None, *, patch: str = "") -> tuple[int, JSONObject]:
            kind = {"apply": "application/apply-patch+yaml", "": "application/json"}.get(
                patch, f"application/{patch}-patch+json"
            )
            headers = [("Content-Type", kind), ("User-Agent", "tester/1")]
            content = None if body is None else json.dumps(body).encode()
            answer = await transport.request(method, target, headers, content, timeout=60)
            return answer.status, msgspec.json.decode(answer.body, type=JSONObject)

        yield send
        await transport.aclose()


@pytest.fixture
async def gears(send: Send) -> str:
    """The path of a custom kind: `size` is a number, `color` a text."""
    properties: JSONObject = {"size": {"type": "integer", "maximum": 5}, "color": {"type": "string", "enum": ["red"]}}
    schema: JSONObject = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": properties}, "status": {"type": "object"}},
    }
    status, _ = await send(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "metadata": {"name": "gears.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "gears", "kind": "Gear"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        },
    )
    assert status == 201
    return "/apis/example.com/v1/namespaces/default/gears"
