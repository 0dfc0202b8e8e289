from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from weakref import WeakSet, ref

import pytest

from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.manager import served_connection, serving
from kubewright.manager.served_connection import MAX_HEAD, ServedConnection
from kubewright.manager.serving import AddressError, EndpointRequest, EndpointResponse, Server

HERE = "127.0.0.1:0"


async def echo(request: EndpointRequest) -> EndpointResponse:
    return EndpointResponse(body=f"{request.path} {dict(request.parameters)}".encode())


@asynccontextmanager
async def serving_echo(max_connections: int = 200) -> AsyncIterator[Server]:
    server = Server(HERE, max_connections=max_connections)
    server.route("/echo", echo)
    server.route("/below/", echo)
    async with asyncio.timeout(20), server:
        yield server


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answer(reader: asyncio.StreamReader, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"])) if has_body else b""
    return int(head[0].split()[1]), headers, body


async def exchange(server: Server, request: bytes) -> bytes:
    """Everything the server says to this."""
    async with connected(server) as (reader, writer):
        writer.write(request)
        return await reader.read()


async def test_requests_are_answered_one_after_the_other_on_one_connection() -> None:
    async with serving_echo() as server, connected(server) as (reader, writer):
        for number in range(3):
            writer.write(f"GET /echo?n={number}&verbose HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            status, headers, body = await answer(reader)
            assert status == 200
            assert headers["connection"] == "keep-alive"
            assert headers["content-type"] == "text/plain; charset=utf-8"
            assert body.decode() == f"/echo {{'n': ['{number}'], 'verbose': ['']}}"


async def test_requests_sent_all_at_once_are_answered_in_their_order() -> None:
    async with serving_echo() as server, connected(server) as (reader, writer):
        writer.write(b"".join(f"GET /echo?n={number} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for number in range(50)))
        for number in range(50):
            assert f"'{number}'" in (await answer(reader))[2].decode()


async def test_a_request_may_come_byte_by_byte() -> None:
    async with serving_echo() as server, connected(server) as (reader, writer):
        for byte in b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await answer(reader))[0] == 200


async def test_head_is_answered_without_a_body() -> None:
    async with serving_echo() as server, connected(server) as (reader, writer):
        writer.write(b"HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        status, headers, _ = await answer(reader, has_body=False)
        assert status == 200
        assert headers["content-length"] == str(len("/echo {}"))
        writer.write(b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await answer(reader))[2] == b"/echo {}"


@pytest.mark.parametrize(
    "request_",
    [b"GET /echo HTTP/1.0\r\n\r\n", b"GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n"],
)
async def test_the_connection_is_closed_when_the_client_wants_that(request_: bytes) -> None:
    async with serving_echo() as server:
        answered = await exchange(server, request_)
        assert answered.startswith(b"HTTP/1.1 200 ")
        assert b"Connection: close\r\n" in answered


async def test_paths_are_decoded_and_the_longest_prefix_answers() -> None:
    async with serving_echo() as server:

        async def special(request: EndpointRequest) -> EndpointResponse:
            return EndpointResponse(body=b"special")

        server.route("/below/special/", special)
        assert b"/below/a b" in await exchange(server, b"GET /below/a%20b HTTP/1.0\r\n\r\n")
        assert b"special" in await exchange(server, b"GET /below/special/x HTTP/1.0\r\n\r\n")
        assert b" 404 " in await exchange(server, b"GET /nowhere HTTP/1.0\r\n\r\n")
        assert b" 404 " in await exchange(server, b"GET /echo/x HTTP/1.0\r\n\r\n")


async def test_any_status_may_be_answered() -> None:
    async def odd(request: EndpointRequest) -> EndpointResponse:
        return EndpointResponse(599)

    async with serving_echo() as server:
        server.route("/odd", odd)
        assert (await exchange(server, b"GET /odd HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 599 Unknown\r\n")


async def test_a_handler_may_return_its_response_at_once_and_then_no_task_is_made() -> None:
    seen: list[object] = []

    def at_once(request: EndpointRequest) -> EndpointResponse:
        seen.append(asyncio.current_task())
        return EndpointResponse(body=b"done")

    def broken(request: EndpointRequest) -> EndpointResponse:
        raise ValueError("with a secret")

    async with serving_echo() as server, connected(server) as (reader, writer):
        server.route("/at-once", at_once)
        server.route("/broken", broken)
        for _ in range(2):
            writer.write(b"GET /at-once HTTP/1.1\r\n\r\n")
            assert (await answer(reader))[2] == b"done"
        writer.write(b"GET /broken HTTP/1.1\r\n\r\n")
        assert (await answer(reader))[0] == 500
    assert seen == [None, None]


async def test_what_a_handler_sets_in_its_context_is_not_there_for_the_next_request() -> None:
    user = ContextVar("user", default="nobody")

    def remember(request: EndpointRequest) -> EndpointResponse:
        before = user.get()
        user.set("eve")
        return EndpointResponse(body=before.encode())

    async with serving_echo() as server, connected(server) as (reader, writer):
        server.route("/remember", remember)
        for _ in range(2):
            writer.write(b"GET /remember HTTP/1.1\r\n\r\n")
            assert (await answer(reader))[2] == b"nobody"


async def test_a_client_that_only_reads_any_more_still_gets_what_it_asked_for() -> None:
    requested, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(request: EndpointRequest) -> EndpointResponse:
        requested.set()
        await may_answer.wait()
        return EndpointResponse(body=b"done")

    async with serving_echo() as server, connected(server) as (reader, writer):
        server.route("/slow", slow)
        writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        writer.write_eof()
        await requested.wait()
        may_answer.set()
        assert (await answer(reader))[2] == b"done"
        assert await reader.read() == b""


async def test_requests_that_come_while_one_is_answered_wait_for_their_turn() -> None:
    may_answer = asyncio.Semaphore(0)

    async def slow(request: EndpointRequest) -> EndpointResponse:
        await may_answer.acquire()
        return EndpointResponse(body=request.parameters["n"][0].encode())

    async with serving_echo() as server, connected(server) as (reader, writer):
        server.route("/slow", slow)
        for number in range(5):
            writer.write(f"GET /slow?n={number} HTTP/1.1\r\n\r\n".encode())
            await exchange(server, b"GET /echo HTTP/1.0\r\n\r\n")  # the server has read by then
        writer.write(b"DELETE /slow HTTP/1.1\r\n\r\n")
        for number in range(5):
            may_answer.release()
            assert (await answer(reader))[2] == str(number).encode()
        assert (await answer(reader))[0] == 405
        assert await reader.read() == b""


async def test_a_client_that_leaves_does_not_end_the_handler_and_closing_waits_for_it() -> None:
    requested, may_answer, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(request: EndpointRequest) -> EndpointResponse:
        requested.set()
        await may_answer.wait()
        answered.set()
        return EndpointResponse(body=b"done")

    async with serving_echo() as server:
        server.route("/slow", slow)
        async with connected(server) as (_, writer):
            writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
            await requested.wait()
            writer.transport.abort()
        asyncio.get_running_loop().call_later(0.05, may_answer.set)
    assert answered.is_set()


async def test_header_fields_reach_the_handler() -> None:
    async with serving_echo() as server:

        async def who(request: EndpointRequest) -> EndpointResponse:
            return EndpointResponse(body=request.headers["authorization"].encode())

        server.route("/who", who)
        assert (await exchange(server, b"GET /who HTTP/1.0\r\nAuthorization: Bearer x\r\n\r\n")).endswith(b"Bearer x")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\nbroken\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.0\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 405),
        (b"DELETE /echo HTTP/1.1\r\n\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", 405),
        (b"GET /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 413),
        (b"GET /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 413),
        (b"GET /echo HTTP/1.1\r\nX: " + b"x" * 2 * MAX_HEAD + b"\r\n\r\n", 431),
        (b"GET /echo HTTP/1.1\r\nX: " + b"x" * 20 * MAX_HEAD, 431),
        (b"GET /" + b"x" * 2 * MAX_HEAD + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET /echo HTTP/1.1\r\n" + b"X: y\r\n" * MAX_HEAD, 431),
    ],
)
async def test_a_malformed_request_is_answered_and_the_connection_closed(
    request_: bytes, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving_echo() as server:
        answered = await exchange(server, request_)
        assert answered.startswith(f"HTTP/1.1 {status} ".encode())
        assert b"Connection: close\r\n" in answered
        assert len(re.findall(rb"HTTP/1\.1 \d", answered)) == 1
    assert caplog.records == []


CHUNKED = b"POST /echo HTTP/1.1\r\nContent-Type: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"0\r\nContent-Type: b\r\n\r\n", 200),
        (b"0\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(MAX_HEAD)) + b"\r\n", 431),
        (b"0\r\nX: " + b"x" * 20 * MAX_HEAD, 431),
        (b"5;" + b"x" * 20 * MAX_HEAD, 431),
        (b"2\r\nab\r\n" * MAX_HEAD + b"0\r\n\r\n", 431),
    ],
)
async def test_what_is_around_the_chunks_of_a_body_is_limited_and_changes_nothing(rest: bytes, status: int) -> None:
    async def show(request: EndpointRequest) -> EndpointResponse:
        return EndpointResponse(body=f"{request.body.decode()} {request.headers['content-type']}".encode())

    server = Server(HERE, max_body_size=10_000_000)
    server.route("/echo", show)
    async with asyncio.timeout(20), server, connected(server) as (reader, writer):
        writer.write(CHUNKED + rest)
        found, _, body = await answer(reader)
        assert found == status
        assert status != 200 or body == b"hello a"


async def test_the_chunks_of_a_body_may_be_many() -> None:
    async def show(request: EndpointRequest) -> EndpointResponse:
        return EndpointResponse(body=b"%d %b" % (len(request.body), request.body[-5:]))

    server = Server(HERE, max_body_size=10_000_000)
    server.route("/echo", show)
    async with asyncio.timeout(20), server, connected(server) as (reader, writer):
        writer.write(CHUNKED + b"8\r\nabcdefgh\r\n" * 20_000 + b"5\r\nworld\r\n0\r\n\r\n")
        assert (await answer(reader))[2] == b"160010 world"


async def test_valid_requests_before_a_malformed_one_are_still_answered() -> None:
    async with serving_echo() as server:
        answered = await exchange(
            server, b"GET /echo HTTP/1.1\r\n\r\nPOST /echo HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\n\r\n"
        )
        assert re.findall(rb"HTTP/1\.1 (\d+)", answered) == [b"200", b"405"]


async def test_an_upgrade_is_ignored() -> None:
    async with serving_echo() as server:
        answered = await exchange(
            server, b"GET /echo HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nwhatever"
        )
        assert answered.startswith(b"HTTP/1.1 200 ")


async def test_a_handler_that_fails_is_a_500_and_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: EndpointRequest) -> EndpointResponse:
        raise ValueError("with a secret")

    async with serving_echo() as server:
        server.route("/broken", broken)
        with caplog.at_level(logging.ERROR):
            answered = await exchange(server, b"GET /broken HTTP/1.0\r\n\r\n")
        assert answered.startswith(b"HTTP/1.1 500 ")
        assert b"secret" not in answered
        assert "answering /broken failed" in caplog.text


@pytest.mark.parametrize("sent", [b"", b"GET /echo HT", b"GET /echo HTTP/1.1\r\nX: y\r\n"])
async def test_the_connection_of_a_client_that_is_too_slow_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_connection, "FIRST_TIMEOUT", 0.05)
    monkeypatch.setattr(served_connection, "HEAD_TIMEOUT", 0.05)
    async with serving_echo() as server:
        assert await exchange(server, sent) == b""


async def test_a_client_that_has_sent_a_request_may_be_idle_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_connection, "FIRST_TIMEOUT", 3600)
    monkeypatch.setattr(served_connection, "IDLE_TIMEOUT", 0.05)
    async with serving_echo() as server, connected(server) as (reader, writer):
        writer.write(b"GET /echo HTTP/1.1\r\n\r\n")
        assert (await answer(reader))[0] == 200
        assert await reader.read() == b""


async def test_a_client_that_sends_byte_by_byte_does_not_get_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_connection, "HEAD_TIMEOUT", 0.1)
    async with serving_echo() as server, connected(server) as (reader, writer):
        writer.write(b"GET /echo HTTP/1.1\r\n")

        async def dribble() -> None:
            while True:
                writer.write(b"X: y\r\n")
                await asyncio.sleep(0.01)

        dribbling = asyncio.create_task(dribble())
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        dribbling.cancel()
        await asyncio.wait([dribbling])


async def test_the_connection_of_a_client_that_does_not_read_its_response_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served_connection, "WRITE_TIMEOUT", 0.05)
    answered = asyncio.Event()

    async def large(request: EndpointRequest) -> EndpointResponse:
        answered.set()
        return EndpointResponse(body=b"x" * 64 * 1024 * 1024)

    async with serving_echo() as server:
        server.route("/large", large)
        async with connected(server) as (reader, writer):
            writer.write(b"GET /large HTTP/1.1\r\n\r\n")
            await answered.wait()
            # The buffers on the way are much smaller than that.
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            with contextlib.suppress(ConnectionError):
                assert len(await reader.read()) < 64 * 1024 * 1024


@pytest.mark.parametrize(
    ("sent", "rest"),
    [
        (b"", b"GET /echo HTTP/1.1\r\n\r\n"),
        (b"GET /echo HT", b"TP/1.1\r\n\r\n"),
        (b"GET /echo HTTP/1.1\r\n\r\n", b"GET /echo HTTP/1.1\r\n\r\n"),
        (b"GET /large HTTP/1.1\r\n\r\n", b""),
    ],
    ids=["silent", "slow to ask", "idle", "slow to take the answer"],
)
async def test_clients_that_are_silent_or_slow_do_not_keep_others_from_being_answered(sent: bytes, rest: bytes) -> None:
    size = 16 * 1024 * 1024  # more than the buffers on the way hold

    async def large(request: EndpointRequest) -> EndpointResponse:
        return EndpointResponse(body=b"x" * size)

    async with serving_echo(max_connections=4) as server, contextlib.AsyncExitStack() as stack:
        server.route("/large", large)
        many = [await stack.enter_async_context(connected(server)) for _ in range(4)]
        for reader, writer in many:
            writer.write(sent)
            if sent.endswith(b"\r\n\r\n"):
                await reader.readuntil(b"\r\n\r\n")
        for _ in range(3):
            assert (await exchange(server, b"GET /echo HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        # Only the connection that has waited longest was closed.
        received = 0
        with contextlib.suppress(ConnectionError):
            while data := await many[0][0].read(1024 * 1024):
                received += len(data)
        assert received < size
        reader, writer = many[-1]
        writer.write(rest)
        assert await reader.readexactly(8 if rest else size)


async def test_requests_under_way_are_not_closed_for_others() -> None:
    requested, may_answer = asyncio.Semaphore(0), asyncio.Event()

    async def slow(request: EndpointRequest) -> EndpointResponse:
        requested.release()
        await may_answer.wait()
        return EndpointResponse(body=b"done")

    async with serving_echo(max_connections=2) as server, connected(server) as one, connected(server) as two:
        server.route("/slow", slow)
        for _, writer in (one, two):
            writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
            await requested.acquire()
        with contextlib.suppress(ConnectionError):
            assert await exchange(server, b"GET /echo HTTP/1.1\r\n\r\n") == b""
        may_answer.set()
        for reader, _ in (one, two):
            assert (await answer(reader))[2] == b"done"


async def test_closing_lets_a_request_under_way_finish_and_drops_the_idle_ones() -> None:
    requested, may_answer = asyncio.Event(), asyncio.Event()

    async def slow(request: EndpointRequest) -> EndpointResponse:
        requested.set()
        await may_answer.wait()
        return EndpointResponse(body=b"done")

    server = Server(HERE)
    server.route("/slow", slow)
    async with asyncio.timeout(20), contextlib.AsyncExitStack() as stack:
        await server.__aenter__()
        port = server.port
        busy_reader, busy_writer = await stack.enter_async_context(connected(server))
        idle_reader, idle_writer = await stack.enter_async_context(connected(server))
        idle_writer.write(b"GET /nowhere HTTP/1.1\r\n\r\n")
        await answer(idle_reader)
        busy_writer.write(b"GET /slow HTTP/1.1\r\n\r\n")
        await requested.wait()
        closing = asyncio.create_task(server.__aexit__(None, None, None))
        assert await idle_reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        may_answer.set()
        assert (await answer(busy_reader))[2] == b"done"
        assert await busy_reader.read() == b""
        await closing
        assert server.port == 0


async def test_a_handler_that_never_ends_does_not_keep_the_server_from_closing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "CLOSE_GRACE", 0.05)
    requested = asyncio.Event()

    async def forever(request: EndpointRequest) -> EndpointResponse:
        requested.set()
        await asyncio.Event().wait()
        raise AssertionError

    before = asyncio.all_tasks()
    async with serving_echo() as server:
        server.route("/forever", forever)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /forever HTTP/1.1\r\n\r\n")
        await requested.wait()
    assert asyncio.all_tasks() == before
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_a_taken_port_is_an_error_that_names_the_option() -> None:
    async with serving_echo() as server:
        address = f"127.0.0.1:{server.port}"
        expected = (
            f'cannot listen on "{address}" (metrics_address): another program listens there; '
            'choose another address, or "0" to do without'
        )
        with pytest.raises(AddressError, match=re.escape(expected)):
            async with Server(address, option="metrics_address"):
                raise AssertionError


async def test_a_host_that_does_not_exist_is_an_error_that_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    expected = 'cannot listen on "nowhere:0" (health_address): Name or service not known; choose another address'
    with pytest.raises(AddressError, match=re.escape(expected)):
        async with Server("nowhere:0", option="health_address"):
            raise AssertionError


async def test_a_host_that_cannot_exist_is_an_error_that_names_the_option() -> None:
    with pytest.raises(AddressError, match=re.escape('cannot listen on "a..b:0" (health_address): ')):
        async with Server("a..b:0", option="health_address"):
            raise AssertionError


@pytest.mark.parametrize("address", ["", "8080", ":http", "localhost", "::1:8080", ":70000", "a:-1", "[::1]"])
def test_an_address_that_makes_no_sense_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match=re.escape(f'"{address}" (health_address) is not an address to listen on')):
        Server(address, option="health_address")


async def test_zero_listens_nowhere() -> None:
    async with Server("0") as server:
        assert server.port == 0


@pytest.mark.parametrize(
    ("address", "hosts"), [(":0", ["127.0.0.1", "::1"]), ("[::1]:0", ["::1"]), ("localhost:0", [])]
)
async def test_all_forms_of_addresses_listen(address: str, hosts: list[str]) -> None:
    if not socket.has_dualstack_ipv6():
        hosts = [host for host in hosts if ":" not in host]
    async with Server(address) as server:
        assert server.port > 0
        for host in hosts:
            _, writer = await asyncio.open_connection(host, server.port)
            writer.close()
            await writer.wait_closed()


async def test_a_path_has_one_handler() -> None:
    server = Server("0", option="metrics_address")
    server.route("/echo", echo)
    with pytest.raises(ValueError, match='"/echo" is answered already by another handler of metrics_address'):
        server.route("/echo", echo)


def contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """To serve with, and to trust that."""
    authority = CertificateAuthority()
    pair = authority.server("kubewright", hosts={"127.0.0.1"})
    (directory / "tls.pem").write_text(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.pem")
    return context, ssl.create_default_context(cadata=authority.certificate)


async def test_what_a_connection_held_is_freed_when_its_client_leaves_and_not_by_a_later_collection(
    tmp_path: Path,
) -> None:
    context, trusting = contexts(tmp_path)
    server = Server(HERE, tls=lambda: context)
    server.route("/echo", echo)
    before = WeakSet(living_connections())
    gc.disable()
    try:
        async with asyncio.timeout(20), server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
            writer.write(b"GET /echo HTTP/1.1\r\n\r\n")
            assert (await answer(reader))[2] == b"/echo {}"
            [held] = [ref(each) for each in living_connections() if each not in before]
            writer.close()
            await writer.wait_closed()
            while held() is not None:
                await asyncio.sleep(0.01)
    finally:
        gc.enable()


def living_connections() -> list[ServedConnection]:
    """Of this process, in which other tests may have left some, and objects that lie about their class."""
    return [each for each in gc.get_objects() if type(each) is ServedConnection]


async def test_a_client_without_a_handshake_does_not_keep_the_server_from_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From Python 3.12 on, servers of asyncio wait for such a client."""
    monkeypatch.setattr(served_connection, "HEAD_TIMEOUT", 3600.0)
    context, trusting = contexts(tmp_path)
    server = Server(HERE, tls=lambda: context)
    server.route("/echo", echo)
    async with asyncio.timeout(20):
        async with server:
            silent, silent_writer = await asyncio.open_connection("127.0.0.1", server.port)
            # One that came later is answered: the server knows of the first one.
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
            writer.write(b"GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n")
            assert (await answer(reader))[0] == 200
            writer.close()
        silent_writer.write_eof()
        assert await silent.read() == b""
        silent_writer.close()


async def test_tls_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    context, trusting = contexts(tmp_path)
    server = Server(HERE, tls=lambda: context)
    server.route("/echo", echo)
    async with asyncio.timeout(20), server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
        writer.write(b"GET /echo HTTP/1.1\r\n\r\n")
        assert (await answer(reader))[2] == b"/echo {}"
        writer.close()
        await writer.wait_closed()
        # Plain HTTP, and a client that hangs up in the middle of the handshake.
        with contextlib.suppress(ConnectionError):
            assert await exchange(server, b"GET /echo HTTP/1.1\r\n\r\n") == b""
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01")
        writer.close()
        await writer.wait_closed()
    assert caplog.records == []
