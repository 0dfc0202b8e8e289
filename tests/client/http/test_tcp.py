"""Which address is connected to, and what the kernel is configured to probe."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from kubewright.client.errors import ConnectionFailed
from kubewright.client.http import tcp
from kubewright.client.http.connection import Connection
from kubewright.client.http.transport import HTTPTransport

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve

HOST = "api.example.com"


async def _ok(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer()


def _resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def resolve(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
        assert host == HOST
        return list(addresses)

    monkeypatch.setattr(tcp, "resolve", resolve)


@contextmanager
def _dead(address: str, port: int) -> Iterator[None]:
    """An address that never answers: its queue of connections to accept is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((address, port), backlog=0))
        for _ in range(8):
            end = stack.enter_context(socket.socket())
            end.setblocking(False)
            end.connect_ex(listener.getsockname())
        yield


async def test_an_address_that_never_answers_does_not_take_the_time_of_the_others(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host with an IPv6 address that leads nowhere is reached by its IPv4 address."""
    server = await serve(_ok)
    _resolving(monkeypatch, "127.0.0.2", "127.0.0.1")
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    with _dead("127.0.0.2", server.port):
        assert (await client.request("GET", "/")).status == 200
        await client.aclose()


async def test_after_a_refusal_the_next_address_is_tried_at_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "ATTEMPT_DELAY", 3600)
    server = await serve(_ok)
    _resolving(monkeypatch, "127.0.0.2", "127.0.0.3", "127.0.0.1")
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    assert (await client.request("GET", "/")).status == 200
    await client.aclose()


async def test_the_first_address_is_used_when_it_answers(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "ATTEMPT_DELAY", 3600)
    server = await serve(_ok)
    _resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    with _dead("127.0.0.2", server.port):
        assert (await client.request("GET", "/")).status == 200
        await client.aclose()


async def test_the_reasons_of_all_addresses_are_reported_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await serve(_ok)
    await server.aclose()
    _resolving(monkeypatch, "127.0.0.1", "127.0.0.2", "127.0.0.3")
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    with pytest.raises(ConnectionFailed) as caught:
        await client.request("GET", "/")
    await client.aclose()
    assert str(caught.value) == f"cannot connect to {HOST}:{server.port}: Connection refused"


async def test_only_one_connection_is_left_of_a_race(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "ATTEMPT_DELAY", 0)
    server = await serve(_ok, None, "0.0.0.0")  # to have several addresses
    _resolving(monkeypatch, *(f"127.0.0.{number}" for number in range(1, 9)))
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    for _ in range(3):
        assert (await client.request("GET", "/")).status == 200
        async with asyncio.timeout(10):
            while server.open != 1:
                await asyncio.sleep(0)
        client.drop_idle()
    await client.aclose()


async def test_a_dial_that_is_cancelled_leaves_no_attempt(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await serve(_ok)
    _resolving(monkeypatch, "127.0.0.2", "127.0.0.3")
    client = HTTPTransport(f"http://{HOST}:{server.port}", connect_timeout=0.05)
    with (
        _dead("127.0.0.2", server.port),
        _dead("127.0.0.3", server.port),
        pytest.raises(ConnectionFailed, match=r"no connection within 0\.05 s"),
    ):
        await client.request("GET", "/")
    assert asyncio.all_tasks() == {asyncio.current_task(), *server.tasks}
    await client.aclose()


async def test_a_dial_that_is_cancelled_after_the_race_leaves_no_connection() -> None:
    ending, left = asyncio.Event(), asyncio.Event()
    transport = Mock(asyncio.Transport)

    async def slow() -> tcp.Made[asyncio.Protocol]:
        try:
            await asyncio.Future[None]()
        finally:
            ending.set()
            await left.wait()
        raise AssertionError("cancelled")

    async def quick() -> tcp.Made[asyncio.Protocol]:
        return transport, asyncio.Protocol()

    race = asyncio.create_task(tcp._race([slow, quick]))
    await ending.wait()
    race.cancel()
    left.set()
    with pytest.raises(asyncio.CancelledError):
        await race
    transport.abort.assert_called_once_with()


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.2", "127.0.0.1"]])
async def test_a_connection_that_is_reset_as_it_is_made_is_a_failed_one(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    async def handler(peer: Peer) -> None:
        peer.reset()

    keep_alive = tcp._keep_alive

    def after_the_reset(transport: asyncio.Transport) -> None:
        transport.abort()
        keep_alive(transport)

    monkeypatch.setattr(tcp, "_keep_alive", after_the_reset)
    server = await serve(handler)
    _resolving(monkeypatch, *addresses)
    client = HTTPTransport(f"http://{HOST}:{server.port}")
    with pytest.raises(ConnectionFailed, match="the connection was closed as soon as it was made"):
        await client.request("POST", "/")
    await client.aclose()


async def test_ipv6_and_ipv4_addresses_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def getaddrinfo(host: str, port: int, *, type: int) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
        v6 = [(socket.AF_INET6, type, 6, "", (f"fd00::{number}", port, 0, 0)) for number in range(1, 4)]
        v4 = [(socket.AF_INET, type, 6, "", (f"10.0.0.{number}", port)) for number in (1, 2, 1)]
        return [*v6, *v4]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    assert await tcp.resolve(loop, HOST, 443) == ["fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2", "fd00::3"]


@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1"])
async def test_an_address_needs_no_resolver(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "getaddrinfo", None)
    assert await tcp.resolve(loop, address, 443) == [address]


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("what", ["request", "stream"])
async def test_the_kernel_probes_every_connection(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, what: str, secure: bool
) -> None:
    """A peer whose machine is gone is noticed within 45 s, as by client-go."""
    options: dict[str, int] = {}
    attach = Connection.attach

    def look(connection: Connection, transport: asyncio.Transport, lowest: asyncio.Transport) -> None:
        end = transport.get_extra_info("socket")
        options["SO_KEEPALIVE"] = end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"):
            options[name] = end.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        attach(connection, transport, lowest)

    monkeypatch.setattr(Connection, "attach", look)
    server = await serve(_ok, certificates.server() if secure else None)
    scheme = "https" if secure else "http"
    client = HTTPTransport(f"{scheme}://{server.address}", tls=certificates.client() if secure else None)
    if what == "request":
        await client.request("GET", "/")
    else:
        await (await client.stream("GET", "/")).read()
    await client.aclose()
    assert options["SO_KEEPALIVE"]
    assert options["TCP_KEEPIDLE"] + options["TCP_KEEPINTVL"] * options["TCP_KEEPCNT"] == 45
    assert options["TCP_USER_TIMEOUT"] == 45_000
