"""How answers are framed, and everything that can be wrong with one."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from kubewright.client.errors import ConnectionFailed, ConnectionLost, ProtocolError, RequestTimeout
from kubewright.client.http.connection import MAX_HEAD, Connection, Owner
from kubewright.client.http.deadlines import Deadlines
from kubewright.client.http.transport import HTTPTransport

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve, Server


@asynccontextmanager
async def _client(
    server: Server, tls: ssl.SSLContext | None = None, *, max_body: int = 1 << 30
) -> AsyncIterator[HTTPTransport]:
    scheme = "http" if tls is None else "https"
    transport = HTTPTransport(f"{scheme}://{server.address}", tls=tls, max_body=max_body)
    try:
        yield transport
    finally:
        await transport.aclose()


def _saying(answer: bytes, *, then_close: bool = False, split: int = 0) -> Callable[[Peer], object]:
    """A handler that gives the same bytes to every request, in pieces of `split` bytes if that is not 0."""

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            step = split or len(answer)
            for position in range(0, len(answer), step):
                await peer.send(answer[position : position + step])
                await asyncio.sleep(0)
            if then_close:
                return

    return handler


@pytest.mark.parametrize("split", [0, 1, 7])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n", 200, b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n", 200, b"x"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201, b""),
    ],
)
async def test_an_answer_with_a_marked_end_keeps_the_connection(
    serve: Serve, answer: bytes, status: int, body: bytes, split: int
) -> None:
    server = await serve(_saying(answer, split=split))
    async with _client(server) as client:
        for _ in range(3):
            response = await client.request("GET", "/")
            assert (response.status, response.body) == (status, body)
            assert response.headers.get("link") is None
    assert server.accepted == 1


async def test_an_answer_without_a_marked_end_lasts_until_the_server_closes(serve: Serve) -> None:
    server = await serve(_saying(b"HTTP/1.1 200 OK\r\n\r\nhello", then_close=True))
    async with _client(server) as client:
        for _ in range(2):
            assert (await client.request("GET", "/")).body == b"hello"
        async with await client.stream("GET", "/") as response:
            assert await response.read() == b"hello"
    assert server.accepted == 3


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.0 200 OK\r\n"])
async def test_a_connection_that_the_server_will_close_is_not_used_again(serve: Serve, head: str) -> None:
    server = await serve(_saying(f"{head}Content-Length: 2\r\n\r\nok".encode()))
    async with _client(server) as client:
        for _ in range(3):
            assert (await client.request("GET", "/")).body == b"ok"
    assert server.accepted == 3


async def test_the_answer_to_head_has_no_body_whatever_its_length_says(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            await peer.send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + (b"" if head.startswith("HEAD") else b"hello")
            )

    server = await serve(handler)
    async with _client(server) as client:
        for method, body in (("HEAD", b""), ("GET", b"hello"), ("HEAD", b"")):
            response = await client.request(method, "/")
            assert (response.body, response.headers.get("content-length")) == (body, "5")
        async with await client.stream("HEAD", "/") as streamed:
            assert await streamed.read() == b""
    assert server.accepted == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", "within the body of the response, after 5 of 50 bytes"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "within the body of the response, after 5 bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n",
            "within the body of the response, after 5 bytes",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: identity , chunked \r\n\r\n5\r\nhello\r\n",
            "within the body of the response, after 5 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "within the head"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "within the head"),
        (b"", "without a response"),
    ],
)
@pytest.mark.parametrize("ending", ["closed", "reset"])
async def test_an_answer_that_is_cut_off_is_a_lost_connection(
    serve: Serve, answer: bytes, message: str, ending: str
) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        if answer:
            await peer.send(answer)
        if ending == "reset":
            peer.reset()

    server = await serve(handler)
    async with _client(server) as client:
        with pytest.raises(ConnectionLost) as caught:
            await client.request("GET", "/?token=s3cret", [("Authorization", "Bearer s3cret")])
    assert str(caught.value).startswith(f"GET {server.address}: ")
    assert message in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert server.accepted == 1


async def test_a_stream_that_is_cut_off_returns_what_came_and_then_raises(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\none\ntwo\n\r\n")
        peer.reset()

    server = await serve(handler)
    async with _client(server) as client, await client.stream("GET", "/") as response:
        lines = response.lines()
        assert [await anext(lines), await anext(lines)] == [b"one", b"two"]
        with pytest.raises(ConnectionLost, match="after 8 bytes"):
            await anext(lines)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>hello</html>\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nrubbish\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
async def test_an_answer_that_is_not_http_is_a_protocol_error(serve: Serve, answer: bytes) -> None:
    server = await serve(_saying(answer))
    async with _client(server) as client:
        with pytest.raises(ProtocolError, match=f"^GET {server.address}: "):
            await client.request("GET", "/")


async def test_a_head_without_end_is_refused(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n")
        while True:
            await peer.send(b"X-Padding: " + b"x" * 10_000 + b"\r\n")

    server = await serve(handler)
    async with _client(server) as client:
        with pytest.raises(ProtocolError, match=f"head of the response is longer than {MAX_HEAD} bytes"):
            await client.request("GET", "/")


async def test_a_body_over_the_limit_is_refused_while_it_comes(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await peer.send(b"400\r\n" + b"x" * 0x400 + b"\r\n")

    server = await serve(handler)
    async with _client(server, max_body=10_000) as client:
        with pytest.raises(ProtocolError, match="longer than max_body, 10000 bytes"):
            await client.request("GET", "/")


@pytest.mark.parametrize(
    "extra",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 200 OK\r\nX-Evil: 1\r\n",
        b"evil",
    ],
)
async def test_unsolicited_bytes_never_become_a_response(serve: Serve, extra: bytes) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + extra)

    server = await serve(handler)
    async with _client(server) as client:
        for _ in range(3):
            assert (await client.request("GET", "/")).body == b"ok"
    assert server.accepted == 3


async def test_bytes_on_an_idle_connection_close_it(serve: Serve) -> None:
    """Load balancers send 408 on an idle connection before they close it."""
    closed = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer()
        if peer.number == 0:
            await peer.send(b"HTTP/1.1 408 Request Timeout\r\n")
            await peer.gone()
            closed.set()

    server = await serve(handler)
    async with _client(server) as client:
        await client.request("GET", "/")
        await closed.wait()
        assert (await client.request("POST", "/")).body == b"ok"
    assert server.accepted == 2


async def test_a_timeout_names_method_host_and_seconds_and_closes_the_connection(serve: Serve) -> None:
    closed = asyncio.Event()

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
        await peer.gone()
        closed.set()

    server = await serve(handler)
    async with _client(server) as client:
        with pytest.raises(RequestTimeout) as caught:
            await client.request("PATCH", "/x?token=s3cret", timeout=0.05)
        assert str(caught.value) == f"PATCH {server.address}: no complete response within 0.05 s"
        await closed.wait()


async def test_a_stream_without_a_head_is_a_timeout(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    server = await serve(handler)
    async with _client(server) as client:
        with pytest.raises(RequestTimeout, match=rf"^GET {server.address}: no response within 0\.05 s$"):
            await client.stream("GET", "/", timeout=0.05)


async def test_the_timeout_of_a_stream_is_for_its_head_alone(serve: Serve) -> None:
    go_on = asyncio.Event()

    async def handler(peer: Peer) -> None:
        head, _ = await peer.request()
        if head.startswith("GET /never"):
            await peer.gone()
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        await go_on.wait()
        await peer.send(b"ok")

    server = await serve(handler)
    async with _client(server) as client, await client.stream("GET", "/", timeout=0.05) as response:
        # Another request that runs out of time later shows that the time of the stream is over, too.
        with pytest.raises(RequestTimeout):
            await client.request("GET", "/never", timeout=0.1)
        go_on.set()
        assert await response.read() == b"ok"


async def test_silence_on_a_stream_is_a_timeout(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        await peer.gone()

    server = await serve(handler)
    async with _client(server) as client, await client.stream("GET", "/") as response:
        lines = response.lines(idle_timeout=0.05)
        assert await anext(lines) == b"one"
        with pytest.raises(RequestTimeout, match=rf"^GET {server.address}: the server sent nothing for 0\.05 s$"):
            await anext(lines)


def _watch_pauses(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when a connection has stopped reading."""
    paused = asyncio.Event()
    pause_reading = Connection.pause_reading

    def pause(connection: Connection) -> None:
        pause_reading(connection)
        paused.set()

    monkeypatch.setattr(Connection, "pause_reading", pause)
    return paused


@pytest.mark.parametrize("secure", [False, True])
async def test_a_slow_reader_stops_the_server_and_still_gets_every_byte(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    paused = _watch_pauses(monkeypatch)
    size = 48 * 1024 * 1024  # more than the buffers of both sockets hold
    piece = bytes(range(256)) * 256
    sent = 0

    async def handler(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        while sent < size:
            await peer.send(piece)
            sent += len(piece)

    server = await serve(handler, certificates.server() if secure else None)
    async with (
        _client(server, certificates.client() if secure else None) as client,
        await client.stream("GET", "/") as response,
    ):
        await paused.wait()
        before = -1
        while before != sent:  # until the server is stuck
            before = sent
            for _ in range(50):
                await asyncio.sleep(0)
        assert sent < size
        assert await response.read() == piece * (size // len(piece))


@pytest.mark.parametrize("secure", [False, True])
async def test_what_came_before_the_server_closed_is_not_lost_on_a_slow_reader(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, secure: bool
) -> None:
    paused = _watch_pauses(monkeypatch)
    closed = asyncio.Event()
    body = bytes(range(256)) * 4 * 1024

    async def handler(peer: Peer) -> None:
        await peer.request()
        await peer.answer(body)
        peer.writer.transport.abort()
        closed.set()

    server = await serve(handler, certificates.server() if secure else None)
    async with (
        _client(server, certificates.client() if secure else None) as client,
        await client.stream("GET", "/") as response,
    ):
        await paused.wait()
        await closed.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert await response.read() == body


async def test_an_early_answer_to_a_large_body_is_read(serve: Serve) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        if peer.number == 0:
            await peer.answer(b"too large", "413 Request Entity Too Large", "Connection: keep-alive\r\n")
            await peer.gone()
        else:
            await peer.answer()

    server = await serve(handler)
    async with _client(server) as client:
        response = await client.request("POST", "/", body=b"x" * (32 * 1024 * 1024))
        assert (response.status, response.body) == (413, b"too large")
        # The rest of the large body would be taken for the next request.
        assert (await client.request("GET", "/")).status == 200
    assert server.accepted == 2


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2048, 64 * 1024, 64 * 1024 + 1, 3 * 1024 * 1024])
async def test_a_body_of_any_size_arrives_unchanged(
    serve: Serve, certificates: Certificates, size: int, secure: bool
) -> None:
    async def handler(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            await peer.answer(body)

    server = await serve(handler, certificates.server() if secure else None)
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    async with _client(server, certificates.client() if secure else None) as client:
        for _ in range(2):
            assert (await client.request("PUT", "/", body=body)).body == body
    assert server.accepted == 1


class _Owner:
    def __init__(self) -> None:
        self.events: list[str] = []

    def release(self, connection: Connection) -> None:
        self.events.append("release")

    def lost(self, connection: Connection) -> None:
        self.events.append("lost")


def _alone() -> tuple[Connection, _Owner, Mock]:
    """A connection without a network; the transport records its calls."""
    loop = asyncio.get_running_loop()
    owner = _Owner()
    transport = Mock(spec=asyncio.Transport)
    transport.is_closing.return_value = False
    transport.get_write_buffer_size.return_value = 0
    transport.get_extra_info.return_value = None  # no socket
    return Connection(owner, loop, Deadlines(loop), "host:1", 1000), owner, transport


async def test_a_half_closed_connection_ends_the_exchange_without_waiting_for_the_rest_of_the_request() -> None:
    """A server that has stopped reading would never take that rest."""
    connection, _, transport = _alone()
    connection.attach(transport, transport)
    request = connection.request("PUT", [b"head", b"body"])
    connection.eof_received()
    with pytest.raises(ConnectionLost, match=r"^PUT host:1: the server closed the connection without a response$"):
        await request
    transport.abort.assert_called()


async def test_a_connection_that_was_lost_while_it_was_made_cannot_be_attached() -> None:
    connection, owner, transport = _alone()
    connection.connection_lost(None)
    with pytest.raises(ConnectionFailed, match="host:1: the connection was closed as soon as it was made"):
        connection.attach(transport, transport)
    assert owner.events == ["lost"]


async def test_a_connection_is_released_once_per_complete_answer() -> None:
    connection, owner, transport = _alone()
    connection.attach(transport, transport)
    for _ in range(2):
        request = connection.request("GET", [b"head"])
        connection.data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        assert (await request).body == b"ok"
    assert owner.events == ["release", "release"]
    assert connection.reused


@pytest.mark.parametrize("ending", ["closed", "reset", "reset in a stream", "reset in the handshake", "dropped"])
@pytest.mark.parametrize("secure", [False, True])
async def test_a_connection_that_is_gone_leaves_nothing_to_the_garbage_collector(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, ending: str, secure: bool
) -> None:
    """With TLS it is 40 KB, which add up between two collections while a server is restarted."""
    made: list[weakref.ref[object]] = []

    class Remembered(Connection):
        def __init__(
            self, owner: Owner, loop: asyncio.AbstractEventLoop, deadlines: Deadlines, peer: str, max_body: int
        ) -> None:
            super().__init__(owner, loop, deadlines, peer, max_body)
            made.append(weakref.ref(self))

        def attach(self, transport: asyncio.Transport, socket: asyncio.Transport) -> None:
            super().attach(transport, socket)
            if secure:
                made.append(weakref.ref(transport.get_extra_info("ssl_object")))

    monkeypatch.setattr("kubewright.client.http.pool.Connection", Remembered)

    async def handler(peer: Peer) -> None:
        if ending == "reset in the handshake":
            await peer.reader.read(1)
            peer.reset()
            return
        await peer.request()
        if ending in ("closed", "dropped"):
            await peer.answer(fields="Connection: close\r\n" if ending == "closed" else "")
            await peer.gone()
            return
        if ending == "reset in a stream":
            await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n")
        peer.reset()

    async def ask(client: HTTPTransport) -> None:
        if ending == "reset in a stream":
            await (await client.stream("GET", "/")).read()
        await client.request("POST", "/")

    speaks_tls = secure and ending != "reset in the handshake"
    server = await serve(handler, certificates.server() if speaks_tls else None)
    scheme = "https" if secure else "http"
    client = HTTPTransport(f"{scheme}://{server.address}", tls=certificates.client() if secure else None)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            with suppress(ConnectionLost, ConnectionFailed):
                await ask(client)
            client.drop_idle()
        assert len(made) >= 5
        async with asyncio.timeout(10):
            while any(reference() is not None for reference in made):
                await asyncio.sleep(0)
    finally:
        gc.enable()
        await client.aclose()
