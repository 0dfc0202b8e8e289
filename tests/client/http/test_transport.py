"""What a caller relies on: requests reach the server as written, are repeated only when that is safe, and end."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from kubewright.client.errors import ConnectionLost
from kubewright.client.http.connection import Connection
from kubewright.client.http.dial import Dialer
from kubewright.client.http.pool import Pool
from kubewright.client.http.transport import HTTPTransport

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve, Server


@asynccontextmanager
async def _client(
    server: Server, tls: ssl.SSLContext | None = None, path: str = "", max_connections: int = 10
) -> AsyncIterator[HTTPTransport]:
    scheme = "http" if tls is None else "https"
    transport = HTTPTransport(f"{scheme}://{server.address}{path}", tls=tls, max_connections=max_connections)
    try:
        yield transport
    finally:
        await transport.aclose()


async def _echo(peer: Peer) -> None:
    while True:
        head, body = await peer.request()
        await peer.answer(head.encode() + body)


async def test_a_request_arrives_as_it_was_written(serve: Serve) -> None:
    server = await serve(_echo)
    async with _client(server, path="/k8s/clusters/c-1") as client:
        fields = [("Accept", "application/json"), ("Impersonate-User", "zoë")]
        response = await client.request("PUT", "/api/v1/pods?limit=5", fields, b"{}")
    assert response.body.decode() == (
        "PUT /k8s/clusters/c-1/api/v1/pods?limit=5 HTTP/1.1\r\n"
        f"Host: {server.address}\r\n"
        "Accept: application/json\r\n"
        "Impersonate-User: zoë\r\n"
        "Content-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(("method", "announced"), [("POST", True), ("PUT", True), ("GET", False), ("DELETE", False)])
async def test_an_empty_body_is_announced_where_a_server_expects_one(
    serve: Serve, method: str, announced: bool
) -> None:
    server = await serve(_echo)
    async with _client(server) as client:
        response = await client.request(method, "/")
    assert (b"Content-Length: 0" in response.body) == announced


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        ("/", [("X-Name", "a\r\nX-Evil: 1")]),
        ("/", [("X-Name", "a\nb")]),
        ("/", [("X\r\nName", "a")]),
        ("/a b", []),
        ("/a\r\nX-Evil: 1", []),
        ("/ä", []),
        ("api", []),
    ],
)
async def test_what_would_break_out_of_its_line_is_refused(target: str, fields: list[tuple[str, str]]) -> None:
    client = HTTPTransport("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"line break|not a request target"):
        await client.request("GET", f"{target}?token=s3cret", fields)
    with pytest.raises(ValueError, match=r"line break|not a request target") as caught:
        await client.stream("GET", f"{target}?token=s3cret", fields)
    assert "s3cret" not in str(caught.value)


async def test_one_connection_carries_requests_and_streams_in_turn(serve: Serve) -> None:
    server = await serve(_echo)
    async with _client(server) as client:
        for _ in range(3):
            await client.request("GET", "/")
            async with await client.stream("GET", "/") as response:
                assert (await response.read()).startswith(b"GET /")
    assert server.accepted == 1


def _closing_when_asked_again() -> tuple[Callable[[Peer], Awaitable[None]], list[str]]:
    """The first connection answers once, and is closed by the server instead of answering again."""
    seen: list[str] = []

    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            if peer.number == 0 and seen:
                return
            seen.append(head.split(" ")[0])
            await peer.answer()

    return handler, seen


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("secure", [False, True])
async def test_a_safe_request_that_met_a_closing_idle_connection_is_sent_again(
    serve: Serve, certificates: Certificates, method: str, secure: bool
) -> None:
    handler, seen = _closing_when_asked_again()
    server = await serve(handler, certificates.server() if secure else None)
    async with _client(server, certificates.client() if secure else None) as client:
        await client.request("GET", "/")
        assert (await client.request(method, "/")).status == 200
    assert seen == ["GET", method]
    assert server.accepted == 2


async def test_a_stream_that_met_a_closing_idle_connection_is_opened_again(serve: Serve) -> None:
    handler, _ = _closing_when_asked_again()
    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        async with await client.stream("GET", "/") as response:
            assert await response.read() == b"ok"
    assert server.accepted == 2


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH"])
@pytest.mark.parametrize("ending", ["closed", "reset"])
@pytest.mark.parametrize("secure", [False, True])
async def test_a_write_that_the_server_has_read_is_not_sent_again(
    serve: Serve, certificates: Certificates, method: str, ending: str, secure: bool
) -> None:
    """It may have taken effect, and another client may have written since."""
    read: list[str] = []

    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            read.append(head.split(" ")[0])
            if len(read) == 2:
                if ending == "reset":
                    peer.reset()
                return
            await peer.answer()

    server = await serve(handler, certificates.server() if secure else None)
    async with _client(server, certificates.client() if secure else None) as client:
        await client.request("GET", "/")
        with pytest.raises(ConnectionLost, match="without a response"):
            await client.request(method, "/", body=b"{}")
        assert read == ["GET", method]
        assert server.accepted == 1
        assert (await client.request(method, "/", body=b"{}")).status == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST", "PATCH"])
async def test_a_write_that_has_left_is_not_sent_again_even_if_the_server_never_read_it(
    serve: Serve, method: str
) -> None:
    """The client cannot distinguish the two."""
    arrived = bytearray()

    async def handler(peer: Peer) -> None:
        await peer.request()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # typed as one that can only write
        await peer.answer()
        with socket.socket(fileno=os.dup(peer.writer.get_extra_info("socket").fileno())) as end:
            while not arrived:
                await asyncio.sleep(0)
                with suppress(BlockingIOError):
                    arrived.extend(end.recv(4, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        peer.reset()

    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        with pytest.raises(ConnectionLost, match="without a response"):
            await client.request(method, "/", body=b"{}")
    assert method.encode().startswith(arrived.strip())
    assert server.accepted == 1


async def test_any_request_is_sent_again_when_certainly_nothing_was_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    dial = Dialer.dial
    dials = 0

    async def dial_and_lose_the_first(dialer: Dialer, connection: Connection) -> None:
        nonlocal dials
        await dial(dialer, connection)
        dials += 1
        if dials == 1:
            connection.abort()

    monkeypatch.setattr(Dialer, "dial", dial_and_lose_the_first)
    server = await serve(_echo)
    async with _client(server) as client:
        assert (await client.request("POST", "/")).status == 200
    assert dials == 2


async def test_a_request_is_not_sent_again_when_its_answer_had_begun(serve: Serve) -> None:
    count = 0

    async def handler(peer: Peer) -> None:
        nonlocal count
        while True:
            await peer.request()
            count += 1
            if count == 2:
                await peer.send(b"H")
                return
            await peer.answer()

    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        with pytest.raises(ConnectionLost, match="head of the response"):
            await client.request("GET", "/")
    assert count == 2


async def test_a_request_is_sent_again_only_once(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await peer.answer()
            await peer.request()

    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        with pytest.raises(ConnectionLost, match="without a response"):
            await client.request("GET", "/")
    assert server.accepted == 2


@pytest.mark.parametrize("secure", [False, True])
async def test_an_idle_connection_that_the_server_closed_is_not_used(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    """Not even for a POST, which would be lost: the end of the connection is noticed while it is idle."""
    noticed = asyncio.Event()
    lost = Pool.lost

    def notice(pool: Pool, connection: Connection) -> None:
        lost(pool, connection)
        noticed.set()

    monkeypatch.setattr(Pool, "lost", notice)

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer()

    server = await serve(handler, certificates.server() if secure else None)
    async with _client(server, certificates.client() if secure else None) as client:
        for _ in range(3):
            assert (await client.request("POST", "/")).status == 200
            await noticed.wait()
            noticed.clear()
    assert server.accepted == 3


async def test_new_credentials_close_idle_connections_now_and_busy_ones_after_their_answer(serve: Serve) -> None:
    requested, go_on = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            if head.startswith("GET /slow"):
                requested.set()
                await go_on.wait()
            await peer.answer(str(peer.number).encode())

    server = await serve(handler)
    async with _client(server) as client:
        assert (await client.request("GET", "/")).body == b"0"
        slow = asyncio.create_task(client.request("GET", "/slow"))
        await requested.wait()
        assert (await client.request("GET", "/")).body == b"1"
        client.drop_idle()
        assert (await client.request("GET", "/")).body == b"2"
        go_on.set()
        assert (await slow).body == b"0"
        assert {(await client.request("GET", "/")).body for _ in range(3)} == {b"2"}
    assert server.accepted == 3


@pytest.mark.parametrize("what", ["request", "stream", "line"])
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("secure", [False, True])
async def test_cancelling_at_any_moment_leaves_the_pool_usable_and_nothing_open(
    serve: Serve, certificates: Certificates, what: str, fresh: bool, secure: bool
) -> None:
    """Cancels after 0, 1, 2… turns of the loop, until the work is done before the cancellation comes."""

    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
            if head.startswith("GET /endless"):
                await peer.gone()
            await peer.send(b"0\r\n\r\n")

    async def work(client: HTTPTransport) -> None:
        if what == "request":
            await client.request("PUT", "/", body=b"{}", timeout=5)
            return
        # If the cancellation comes after the head and before the block, only the transport can close this stream.
        async with await client.stream("GET", "/endless", timeout=5) as response:
            if what == "line":
                assert await anext(response.lines(idle_timeout=5)) == b"one"

    server = await serve(handler, certificates.server() if secure else None)
    turns = 0
    done = False
    while not done:
        async with _client(server, certificates.client() if secure else None, max_connections=1) as client:
            if not fresh:
                await client.request("GET", "/", timeout=5)
            task = asyncio.create_task(work(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            done = task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert (await client.request("GET", "/", timeout=5)).body == b"one\n"
            async with asyncio.timeout(5):
                while server.open > 1:
                    await asyncio.sleep(0)
        turns += 1
        assert turns < 500
    assert turns > 3  # else it was done at once, and nothing was tested


@pytest.mark.parametrize("what", ["request", "stream"])
async def test_a_cancelled_request_does_not_wait_for_its_answer(serve: Serve, what: str) -> None:
    requested, gone = asyncio.Event(), asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        if peer.number:
            await peer.answer()
            return
        requested.set()
        await peer.gone()
        gone.set()

    server = await serve(handler)
    async with _client(server, max_connections=1) as client, asyncio.timeout(5):
        task = asyncio.create_task(client.request("GET", "/") if what == "request" else client.stream("GET", "/"))
        await requested.wait()
        task.cancel()
        assert (await client.request("GET", "/")).status == 200
        await gone.wait()
        assert task.cancelled()


@pytest.mark.parametrize("given_up", ["cancelled", "timed out"])
@pytest.mark.parametrize("secure", [False, True])
async def test_nothing_of_a_cancelled_write_arrives_later(
    serve: Serve, certificates: Certificates, given_up: str, secure: bool
) -> None:
    """The kernel would deliver what is in its buffer, after a partition heals and another leads, say."""
    requested, ended = asyncio.Event(), asyncio.Event()
    endings: list[type[BaseException] | None] = []

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        try:
            await peer.request()
            requested.set()
            while await peer.reader.read(1):
                pass
            endings.append(None)
        except OSError as error:
            endings.append(type(error))
        ended.set()

    server = await serve(handler, certificates.server() if secure else None)
    async with _client(server, certificates.client() if secure else None) as client, asyncio.timeout(10):
        await client.request("GET", "/")
        timeout = 0.05 if given_up == "timed out" else None
        task = asyncio.create_task(client.request("PUT", "/", body=b"{}", timeout=timeout))
        await requested.wait()
        if given_up == "cancelled":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await ended.wait()
    assert endings == [ConnectionResetError]


@pytest.mark.parametrize("what", ["request", "line of requests", "stream"])
@pytest.mark.parametrize("secure", [False, True])
async def test_closing_at_any_moment_ends_what_is_under_way(
    serve: Serve, certificates: Certificates, what: str, secure: bool
) -> None:
    """Closes after 0, 1, 2… turns of the loop, until the work is done before that."""

    async def work(client: HTTPTransport) -> None:
        if what == "request":
            await client.request("PUT", "/")
        elif what == "stream":
            await (await client.stream("GET", "/")).read()
        else:
            await asyncio.gather(*(client.request("PUT", "/") for _ in range(3)))

    server = await serve(_echo, certificates.server() if secure else None)
    turns = 0
    done = False
    while not done:
        async with _client(server, certificates.client() if secure else None, max_connections=1) as client:
            task = asyncio.create_task(work(client))
            for _ in range(turns):
                await asyncio.sleep(0)
            done = task.done()
            await client.aclose()
            assert not any("Pool." in repr(other) for other in asyncio.all_tasks())
            async with asyncio.timeout(5):
                (result,) = await asyncio.gather(task, return_exceptions=True)
            assert result is None or (isinstance(result, ConnectionLost | RuntimeError) and "closed" in str(result))
            assert not any("Pool." in repr(other) for other in asyncio.all_tasks())
        turns += 1
        assert turns < 500
    assert turns > 3
    async with asyncio.timeout(5):
        while server.open:
            await asyncio.sleep(0)


async def test_closing_ends_a_stream_and_its_reader(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await peer.gone()

    server = await serve(handler)
    async with _client(server) as client:
        response = await client.stream("GET", "/")
        reading = asyncio.create_task(response.read())
        await asyncio.sleep(0)
    with pytest.raises(ConnectionLost, match="the client was closed"):
        await reading


async def test_a_closed_transport_says_so(serve: Serve) -> None:
    server = await serve(_echo)
    async with _client(server) as client:
        await client.request("GET", "/")
    with pytest.raises(RuntimeError, match=f"{server.address}> is closed"):
        await client.request("GET", "/")
    await client.aclose()


async def test_closing_a_transport_that_was_never_used_is_fine() -> None:
    await HTTPTransport("https://127.0.0.1:1").aclose()


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("later", range(4))
async def test_a_write_can_be_dropped_at_any_moment_of_losing_its_connection(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, secure: bool, later: int
) -> None:
    """The socket is closed a turn of the loop before a connection with TLS hears of it."""
    sockets: list[asyncio.Transport] = []
    attach = Connection.attach

    def remember(connection: Connection, transport: asyncio.Transport, socket: asyncio.Transport) -> None:
        sockets.append(socket)
        attach(connection, transport, socket)

    monkeypatch.setattr(Connection, "attach", remember)
    arrived = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        arrived.set()
        await peer.gone()

    server = await serve(handler, certificates.server() if secure else None)
    async with _client(server, certificates.client() if secure else None) as client:
        write = asyncio.create_task(client.request("POST", "/"))
        await arrived.wait()
        sockets[0].abort()
        for _ in range(later):
            await asyncio.sleep(0)
        client.drop_writes()
        with pytest.raises(ConnectionLost):
            await write
