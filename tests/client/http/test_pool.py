"""Who gets which connection, and how many there are."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from kubewright.client.errors import ConnectionFailed, ConnectionLost, RequestTimeout, TLSError
from kubewright.client.http import pool as pool_module
from kubewright.client.http.connection import Connection
from kubewright.client.http.deadlines import Deadlines
from kubewright.client.http.pool import Pool
from kubewright.client.http.transport import HTTPTransport

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve, Server


@asynccontextmanager
async def _client(server: Server, max_connections: int = 2) -> AsyncIterator[HTTPTransport]:
    transport = HTTPTransport(f"http://{server.address}", max_connections=max_connections)
    try:
        yield transport
    finally:
        await transport.aclose()


class _Gate:
    """A handler whose answers to /slow wait until the test lets them go; remembers the order of requests."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.changed = asyncio.Condition()
        self.is_open = False

    async def __call__(self, peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            async with self.changed:
                self.seen.append(head.split(" ")[1])
                self.changed.notify_all()
                if "slow" in self.seen[-1]:
                    await self.changed.wait_for(lambda: self.is_open)
            await peer.answer(str(peer.number).encode())

    async def wait_for(self, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.seen) >= count)

    async def open(self) -> None:
        async with self.changed:
            self.is_open = True
            self.changed.notify_all()


async def test_requests_beyond_the_limit_wait_in_line(serve: Serve) -> None:
    gate = _Gate()
    server = await serve(gate)
    async with _client(server) as client:
        slow = [asyncio.create_task(client.request("GET", f"/slow/{number}")) for number in range(2)]
        await gate.wait_for(2)
        waiting = [asyncio.create_task(client.request("GET", f"/{number}")) for number in range(5)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(gate.seen) == 2
        await gate.open()
        await asyncio.gather(*slow, *waiting)
    assert gate.seen[2:] == [f"/{number}" for number in range(5)]
    assert server.accepted == 2


async def test_the_most_recently_used_connection_is_taken_first(serve: Serve) -> None:
    """So that a burst leaves connections that grow old and are closed."""
    gate = _Gate()
    server = await serve(gate)
    async with _client(server, max_connections=5) as client:
        slow = [asyncio.create_task(client.request("GET", f"/slow/{number}")) for number in range(5)]
        await gate.wait_for(5)
        await gate.open()
        await asyncio.gather(*slow)
        bodies = [(await client.request("GET", "/")).body for _ in range(5)]
    assert len(set(bodies)) == 1


async def test_streams_do_not_count_against_the_limit_of_requests(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            if head.startswith("GET /watch"):
                await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                await peer.gone()
            await peer.answer()

    server = await serve(handler)
    async with _client(server, max_connections=1) as client:
        await client.request("GET", "/")
        streams = [await client.stream("GET", "/watch") for _ in range(20)]
        assert (await client.request("GET", "/")).status == 200
        for stream in streams:
            await stream.aclose()
        assert (await client.request("GET", "/")).status == 200


async def test_a_finished_stream_leaves_its_connection_only_when_there_is_room(serve: Serve) -> None:
    gate = _Gate()
    server = await serve(gate)
    async with _client(server, max_connections=1) as client:
        streams = [asyncio.create_task(client.stream("GET", f"/slow/{number}")) for number in range(3)]
        await gate.wait_for(3)
        await gate.open()
        for stream in streams:
            await (await stream).read()
        bodies = {(await client.request("GET", "/")).body for _ in range(3)}
        assert len(bodies) == 1
        while server.open > 1:
            await asyncio.sleep(0)
    assert server.accepted == 3


async def test_a_cancelled_waiter_is_skipped(serve: Serve) -> None:
    gate = _Gate()
    server = await serve(gate)
    async with _client(server, max_connections=1) as client:
        slow = asyncio.create_task(client.request("GET", "/slow"))
        await gate.wait_for(1)
        waiting = [asyncio.create_task(client.request("GET", f"/{number}")) for number in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[2].cancel()
        await gate.open()
        await asyncio.gather(slow, waiting[1], waiting[3])
    assert gate.seen == ["/slow", "/1", "/3"]
    assert server.accepted == 1


async def test_waiting_in_line_has_a_deadline(serve: Serve) -> None:
    gate = _Gate()
    server = await serve(gate)
    async with _client(server, max_connections=1) as client:
        slow = asyncio.create_task(client.request("GET", "/slow"))
        await gate.wait_for(1)
        with pytest.raises(RequestTimeout, match=rf"^PUT {server.address}: no connection within 0\.05 s$"):
            await client.request("PUT", "/", timeout=0.05)
        await gate.open()
        await slow
        await client.request("GET", "/")
    assert gate.seen == ["/slow", "/"]


async def test_a_connection_that_is_lost_makes_room_for_the_next_in_line(serve: Serve) -> None:
    requested, go_on = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            requested.set()
            await go_on.wait()
            peer.reset()
        else:
            await peer.answer()

    server = await serve(handler)
    async with _client(server, max_connections=1) as client:
        lost = asyncio.create_task(client.request("POST", "/"))
        await requested.wait()
        waiting = asyncio.create_task(client.request("POST", "/"))
        await asyncio.sleep(0)
        go_on.set()
        assert (await waiting).status == 200
        with pytest.raises(ConnectionLost):
            await lost


async def test_every_waiter_gets_the_error_when_the_server_is_down(serve: Serve) -> None:
    server = await serve(_Gate())
    await server.aclose()
    async with _client(server, max_connections=1) as client:
        results = await asyncio.gather(*(client.request("GET", "/") for _ in range(5)), return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionFailed] * 5


async def test_the_handshake_of_a_cancelled_request_is_not_wasted(serve: Serve) -> None:
    server = await serve(_Gate())
    async with _client(server) as client:
        task = asyncio.create_task(client.request("GET", "/cancelled"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert (await client.request("GET", "/")).body == b"0"
        assert (await client.request("GET", "/")).body == b"0"
    assert server.accepted == 1


async def test_connections_that_are_idle_for_too_long_are_closed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "IDLE_SECONDS", 0.05)
    closed = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        await peer.gone()
        closed.set()

    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        await closed.wait()


def test_idle_connections_are_closed_clearly_before_the_server_does_it() -> None:
    """kube-apiserver, 90 s. A write on a connection that the server is about to close is lost."""
    assert pool_module.IDLE_SECONDS <= 60


@pytest.mark.parametrize("what", ["request", "stream"])
async def test_a_connection_that_was_idle_for_too_long_is_not_used_even_if_it_is_still_open(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A process that was frozen finds its connections before the timer that should have closed them."""
    server = await serve(_Gate())
    async with _client(server) as client:
        assert (await client.request("POST", "/")).body == b"0"
        monkeypatch.setattr(pool_module, "IDLE_SECONDS", 0.0)
        if what == "request":
            assert (await client.request("POST", "/")).body == b"1"
        else:
            assert await (await client.stream("GET", "/")).read() == b"1"


@pytest.mark.parametrize("what", ["request", "stream"])
async def test_a_connection_that_was_begun_with_old_credentials_is_not_used(serve: Serve, what: str) -> None:
    async def work(client: HTTPTransport) -> bytes:
        if what == "request":
            return (await client.request("GET", "/")).body
        return await (await client.stream("GET", "/")).read()

    server = await serve(_Gate())
    async with _client(server) as client:
        task = asyncio.create_task(work(client))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        client.drop_idle()
        assert await task == b"1"
    assert server.accepted == 2


@pytest.mark.parametrize("secure", [False, True])
async def test_no_socket_is_left_when_closing_is_done(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    lost: list[Connection] = []

    class _Counting(Pool):
        def lost(self, connection: Connection) -> None:
            lost.append(connection)
            super().lost(connection)

    monkeypatch.setattr("kubewright.client.http.transport.Pool", _Counting)
    gate = _Gate()
    server = await serve(gate, certificates.server() if secure else None)
    client = HTTPTransport(
        f"{'https' if secure else 'http'}://{server.address}", tls=certificates.client() if secure else None
    )
    await client.request("GET", "/")
    # On a connection that was used before: its loss is not mistaken for one after which the request is sent again.
    busy = asyncio.create_task(client.request("GET", "/slow"))
    await gate.wait_for(2)
    stream = asyncio.create_task(client.stream("GET", "/slow"))
    await gate.wait_for(3)
    await client.request("GET", "/idle")
    await client.aclose()
    assert len(lost) == 3
    for task in (busy, stream):
        with pytest.raises(ConnectionLost, match="the client was closed"):
            await task
    assert server.accepted == 3


async def test_repeated_requests_do_not_leave_more_connections_than_allowed(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            if peer.number == 0 and server.accepted == 1 and requested:
                return
            requested.append(peer.number)
            await peer.answer()

    requested: list[int] = []
    server = await serve(handler)
    async with _client(server, max_connections=1) as client:
        await client.request("GET", "/")
        # The first is lost and goes to a connection of its own, while the connection it gave up goes to the second.
        await asyncio.gather(client.request("GET", "/"), client.request("GET", "/"))
        async with asyncio.timeout(5):
            while server.open > 1:
                await asyncio.sleep(0)
    assert server.accepted == 3


async def test_a_new_connection_lost_before_its_first_use_raises_the_reason() -> None:
    """Not by trying again and again: a server that refuses our certificate does so each time."""
    loop = asyncio.get_running_loop()
    dials = 0

    async def dial(connection: Connection) -> None:
        nonlocal dials
        dials += 1
        connection.attach(Mock(spec=asyncio.Transport), Mock(spec=asyncio.Transport))
        refusal = ssl.SSLError(1, "refused")
        refusal.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        loop.call_soon(connection.connection_lost, refusal)

    pool = Pool(loop, Deadlines(loop), dial, peer="host:1", limit=1, max_body=1)
    connection = await pool.wait("GET host:1", None, 0.0)
    with pytest.raises(TLSError, match="certificate required"):
        await connection.request("GET", [b""])
    assert dials == 1
    await pool.aclose()
