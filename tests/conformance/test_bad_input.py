"""Bodies, queries and paths that no client should send: the right Status, and a server that keeps running."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
import pytest

from kubewright.client import Client
from kubewright.client.errors import Status
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane

JSON = "application/json"
Send = Callable[..., Awaitable[Status]]


@pytest.fixture
async def send(control_plane: ControlPlane, client: Client) -> AsyncIterator[Send]:
    """Send raw bytes as admin; gives the Status that came back, with code 200 for a success."""
    transport = HTTPTransport(control_plane.url, tls=control_plane.admin.ssl_context())

    async def send(
        method: str, path: str, body: bytes | None = None, content_type: str = JSON, accept: str = JSON
    ) -> Status:
        target = path.replace("NAMESPACE", client.namespace)
        headers = [("Content-Type", content_type), ("Accept", accept)]
        answer = await transport.request(method, target, headers, body, timeout=30)
        if answer.status < 300:
            return Status(code=answer.status, status="Success")
        if answer.headers.get("Content-Type") != JSON:
            return Status(code=answer.status, message=answer.body.decode())
        return msgspec.json.decode(answer.body, type=Status)

    yield send
    # Whatever was sent, the server is there for the next one.
    alive = await transport.request("GET", "/version", timeout=30)
    assert alive.status == 200
    await transport.aclose()


CONFIG_MAPS = "/api/v1/namespaces/NAMESPACE/configmaps"
NESTED = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}"


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        pytest.param(b"", 400, "BadRequest", id="empty"),
        pytest.param(b'{"apiVersion":"v1","kind":"ConfigMap","meta', 400, "BadRequest", id="truncated"),
        pytest.param(b"nonsense", 400, "BadRequest", id="no JSON"),
        pytest.param(b"[]", 400, "BadRequest", id="a list"),
        pytest.param(b'"text"', 400, "BadRequest", id="a string"),
        pytest.param(b'{"apiVersion":"v1","kind":"ConfigMap","data":{"a":NaN}}', 400, "BadRequest", id="NaN"),
        pytest.param(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}', 400, "BadRequest", id="other kind"),
        pytest.param(b'{"apiVersion":"v9","kind":"ConfigMap"}', 400, "BadRequest", id="other version"),
        pytest.param(NESTED, 400, "BadRequest", id="deeply nested"),
        pytest.param(b'{"metadata":{"name":"' + b"a" * (3 << 20) + b'"}}', 413, "RequestEntityTooLarge", id="large"),
        pytest.param(b'{"metadata":{"name":"UPPER"}}', 422, "Invalid", id="bad name"),
        pytest.param(b'{"metadata":{}}', 422, "Invalid", id="no name"),
        pytest.param(b'{"metadata":{"name":"a","namespace":"elsewhere"}}', 400, "BadRequest", id="other namespace"),
        pytest.param(b'{"metadata":{"name":"a","resourceVersion":"1"}}', 500, "", id="resourceVersion"),
        pytest.param(b'{"metadata":{"name":"a"},"data":{"a":1}}', 400, "BadRequest", id="number for string"),
    ],
)
async def test_a_body_that_cannot_be_created_is_refused(send: Send, body: bytes, code: int, reason: str) -> None:
    status = await send("POST", CONFIG_MAPS, body)
    assert (status.code, status.reason) == (code, reason), status.message
    assert status.message


async def test_fields_that_appear_twice_are_refused_when_strict(send: Send) -> None:
    body = b'{"metadata":{"name":"a","name":"b"},"data":{"x":"1"}}'
    status = await send("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body)
    assert (status.code, status.reason) == (400, "BadRequest")
    assert 'duplicate field "metadata.name"' in status.message


async def test_keys_that_appear_twice_in_yaml_are_refused_when_strict(send: Send) -> None:
    body = b"metadata:\n  name: a\ndata:\n  x: '1'\n  x: '2'\nmore: 1\n"
    status = await send("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body, "application/yaml")
    assert (status.code, status.message) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal errors:\n'
        '  line 5: key "x" already set in map, unknown field "more"',
    )


async def test_an_unknown_content_type_is_415(send: Send) -> None:
    status = await send("POST", CONFIG_MAPS, b"a=b", "application/x-www-form-urlencoded")
    assert (status.code, status.reason) == (415, "UnsupportedMediaType")


async def test_an_unknown_representation_is_406(send: Send) -> None:
    status = await send("GET", CONFIG_MAPS, accept="image/png")
    assert (status.code, status.reason) == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("query", "code", "reason"),
    [
        ("labelSelector=a+in+(", 400, "BadRequest"),
        ("fieldSelector=spec.nothing%3D1", 400, "BadRequest"),
        ("continue=nonsense", 400, "BadRequest"),
        ("resourceVersion=nonsense", 400, "BadRequest"),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        ("resourceVersion=1&resourceVersionMatch=Sometimes", 422, "Invalid"),
        ("watch=true&sendInitialEvents=true", 422, "Invalid"),
        ("limit=many", 400, "BadRequest"),
    ],
)
async def test_a_list_that_makes_no_sense_is_refused(send: Send, query: str, code: int, reason: str) -> None:
    status = await send("GET", f"{CONFIG_MAPS}?{query}")
    assert (status.code, status.reason) == (code, reason), status.message


@pytest.mark.parametrize(
    ("content_type", "body", "code"),
    [
        ("application/json-patch+json", b"{}", 400),
        ("application/json-patch+json", b'[{"op":"remove","path":"/data/nothing"}]', 422),
        ("application/merge-patch+json", b"[]", 400),
        ("application/merge-patch+json", b"nonsense", 400),
        ("application/strategic-merge-patch+json", b"nonsense", 400),
        ("application/apply-patch+yaml", b"a: [", 400),
        ("text/plain", b"{}", 415),
    ],
)
async def test_a_patch_that_makes_no_sense_is_refused(send: Send, content_type: str, body: bytes, code: int) -> None:
    await send("POST", CONFIG_MAPS, json.dumps({"metadata": {"name": "a"}, "data": {"x": "1"}}).encode())
    status = await send("PATCH", f"{CONFIG_MAPS}/a?fieldManager=tests", body, content_type)
    assert status.code == code, status.message


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/api/v1/nothing", 404, "NotFound"),
        ("GET", "/apis/nothing.example.com/v1/things", 404, ""),
        ("GET", "/api/v9/pods", 404, "NotFound"),
        ("GET", "/apis/policy/v1beta1/podsecuritypolicies", 404, "NotFound"),
        ("GET", "/apis/apps/v9/namespaces/default/deployments/a", 404, "NotFound"),
        ("GET", "//api/v1/pods", 404, ""),
        ("GET", f"{CONFIG_MAPS}/nothing", 404, "NotFound"),
        ("GET", f"{CONFIG_MAPS}/nothing/status", 404, "NotFound"),
        ("DELETE", f"{CONFIG_MAPS}/nothing", 404, "NotFound"),
        ("PUT", CONFIG_MAPS, 405, "MethodNotAllowed"),
        ("POST", f"{CONFIG_MAPS}/a", 405, "MethodNotAllowed"),
        ("DELETE", "/api/v1/namespaces/kube-system", 403, "Forbidden"),
    ],
)
async def test_a_path_that_leads_nowhere_is_refused(send: Send, method: str, path: str, code: int, reason: str) -> None:
    status = await send(method, path)
    assert (status.code, status.reason) == (code, reason), status.message
