"""What an observer of requests is given."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from kubewright.client.config.config import Config
from kubewright.client.errors import ConnectionLost
from kubewright.client.request_observer import RequestAttempt
from kubewright.client.session import Session

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer, VirtualTime

    from kubewright.client.http.response import Response

HOST = "kubernetes.example.com"


@pytest.mark.parametrize(
    ("target", "template"),
    [
        ("/api/v1/pods?limit=500", "/api/v1/pods"),
        ("/api/v1/namespaces", "/api/v1/namespaces"),
        ("/api/v1/namespaces/shop", "/api/v1/namespaces/{name}"),
        ("/api/v1/namespaces/shop/pods", "/api/v1/namespaces/{namespace}/pods"),
        ("/api/v1/namespaces/shop/pods/web-1", "/api/v1/namespaces/{namespace}/pods/{name}"),
        ("/api/v1/namespaces/shop/pods/web-1/log?tailLines=1", "/api/v1/namespaces/{namespace}/pods/{name}/log"),
        (
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
        ),
        ("/apis/example.com/v1/shops/one/status", "/apis/example.com/v1/shops/{name}/status"),
        ("/apis/example.com/v1", "/apis/example.com/v1"),
        ("/version", "/version"),
    ],
)
def test_a_template_names_no_object(target: str, template: str) -> None:
    assert RequestAttempt("GET", HOST, target, "200", 0.1).template == template


class Slow:
    """The scripted server, three seconds later."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self.stream = server.stream
        self.aclose = server.aclose

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        await asyncio.sleep(3)
        return await self._server.request(method, target, headers, body, timeout=timeout)


def test_each_attempt_is_observed_with_its_duration_by_the_clock_of_the_loop(
    server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    session = Session(Config(server=f"https://{HOST}"), transport=Slow(server))
    server.answers(status=503, headers={"Retry-After": "7"})
    server.answers(status=201)
    seen: list[RequestAttempt] = []

    async def main() -> None:
        session.observe(seen.append)
        await session.request("POST", "/api/v1/pods", request="create Pod", body=b"{}")

    virtual_time.run(main())
    assert seen == [
        RequestAttempt("POST", f"{HOST}:443", "/api/v1/pods", "503", 3.0),
        RequestAttempt("POST", f"{HOST}:443", "/api/v1/pods", "201", 3.0),
    ]


def test_nothing_is_observed_after_unsubscribing(server: ScriptedServer, virtual_time: VirtualTime) -> None:
    session = Session(Config(server=f"https://{HOST}"), transport=server)
    server.answers()
    server.answers()
    seen: list[RequestAttempt] = []

    async def main() -> None:
        unsubscribe = session.observe(seen.append)
        await session.separate().request("GET", "/one", request="get one")
        unsubscribe()
        await session.request("GET", "/two", request="get two")

    virtual_time.run(main())
    assert [each.target for each in seen] == ["/one"]


def test_an_attempt_without_an_answer_is_an_error_to_the_observer(
    server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    session = Session(Config(server=f"https://{HOST}"), transport=server)
    server.fails(ConnectionLost("gone"))
    seen: list[RequestAttempt] = []

    async def main() -> None:
        session.observe(seen.append)
        with pytest.raises(ConnectionLost):
            await session.request("PUT", "/api/v1/nodes/n", request="update Node n", body=b"{}")

    virtual_time.run(main())
    assert [each.code for each in seen] == ["<error>"]
