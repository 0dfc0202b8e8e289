"""The checks of logs, exec, attach, portforward and proxy before a kubelet is contacted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.conformance.asking import Answer, Ask, Fetch

from kubewright.testing.namespaces import unique_name

PODS = "/api/v1/namespaces/NAMESPACE/pods"
ENDPOINTS = ("exec?command=ls&stdout=true", "attach?stdout=true", "portforward")


@pytest.fixture
async def node(ask: Ask, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A node without an address, as none is behind it."""
    name = unique_name(request.node.name)
    await ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    yield name
    await ask("DELETE", f"/api/v1/nodes/{name}")


async def create_pod(ask: Ask, name: str, node: str = "") -> None:
    containers = [{"name": "main", "image": "web:1"}]
    answer = await ask("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": containers, "nodeName": node}})
    assert answer.code == 201, answer.body


async def streams(ask: Ask, pod: str) -> list[Answer]:
    return [await ask("GET" if end == "log" else "POST", f"{PODS}/{pod}/{end}") for end in (*ENDPOINTS, "log")]


async def test_a_pod_without_a_node_has_no_log_and_no_process(ask: Ask, fetch: Fetch, namespace: str) -> None:
    await create_pod(ask, "free")
    *refused, _ = await streams(ask, "free")
    log = await fetch(f"{PODS.replace('NAMESPACE', namespace)}/free/log")

    assert [answer.refusal for answer in refused] == [(400, "BadRequest", "pod free does not have a host assigned")] * 3
    assert (log.status, log.body, log.headers.get("Content-Type")) == (204, b"", None)


async def test_a_pod_on_an_absent_node_is_reported(ask: Ask) -> None:
    await create_pod(ask, "lost", "nowhere")

    for answer in await streams(ask, "lost"):
        assert answer.refusal == (404, "NotFound", 'pods "nowhere" not found')
        assert answer.body["details"] == {"name": "nowhere", "kind": "pods"}


async def test_a_node_without_an_address_is_not_reached(ask: Ask, node: str) -> None:
    await create_pod(ask, "quiet", node)

    for answer in [*await streams(ask, "quiet"), await ask("GET", f"/api/v1/nodes/{node}/proxy")]:
        assert answer.refusal == (500, "", "no preferred addresses found; known addresses: []")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z",
            422,
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        ("stream=Stdout", 422, "stream: Forbidden: may not be specified"),
        ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("container=x", 400, "container x is not valid for pod free"),
    ],
)
async def test_the_options_of_a_log_request_are_validated(ask: Ask, query: str, code: int, message: str) -> None:
    await create_pod(ask, "free")
    answer = await ask("GET", f"{PODS}/free/log?{query}")

    invalid = f'PodLogOptions "free" is invalid: {message}'
    assert answer.refusal == ((422, "Invalid", invalid) if code == 422 else (400, "BadRequest", message))
