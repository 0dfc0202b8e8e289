"""Every way in which a connection cannot be made, and the proxies on the way."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from kubewright.client.errors import ConfigError, ConnectionFailed, ConnectionLost, TLSError, TransportError
from kubewright.client.http import tcp
from kubewright.client.http.transport import HTTPTransport

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve


@asynccontextmanager
async def _client(
    server: str,
    tls: Callable[[], Awaitable[ssl.SSLContext | None]] | ssl.SSLContext | None = None,
    *,
    proxy: str | None = None,
    proxy_tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    connect_timeout: float = 10.0,
) -> AsyncIterator[HTTPTransport]:
    transport = HTTPTransport(
        server,
        tls=tls,
        proxy=proxy,
        proxy_tls=proxy_tls,
        server_name=server_name,
        connect_timeout=connect_timeout,
    )
    try:
        yield transport
    finally:
        await transport.aclose()


async def _ok(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer()


async def _failure(client: HTTPTransport) -> TransportError:
    with pytest.raises(TransportError) as caught:
        await client.request("GET", "/?token=s3cret", [("Authorization", "Bearer s3cret")], timeout=5)
    assert "s3cret" not in str(caught.value)
    return caught.value


async def test_a_server_that_is_down_is_named(serve: Serve) -> None:
    server = await serve(_ok)
    await server.aclose()
    async with _client(f"http://{server.address}") as client:
        error = await _failure(client)
    assert isinstance(error, ConnectionFailed)
    assert str(error) == f"cannot connect to {server.address}: Connection refused"


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b"])
async def test_a_name_that_cannot_be_resolved_is_named(serve: Serve, host: str) -> None:
    async with _client(f"http://{host}:6443") as client:
        error = await _failure(client)
    assert isinstance(error, ConnectionFailed)
    assert f"{host}:6443" in str(error)
    assert "name" in str(error)


async def test_a_handshake_that_hangs_times_out(serve: Serve, certificates: Certificates) -> None:
    async def handler(peer: Peer) -> None:
        await peer.gone()

    server = await serve(handler)
    async with _client(f"https://{server.address}", certificates.client(), connect_timeout=0.05) as client:
        error = await _failure(client)
    assert isinstance(error, ConnectionFailed)
    assert str(error) == f"cannot connect to {server.address}: no connection within 0.05 s"


@pytest.mark.parametrize("ending", ["closed", "reset"])
async def test_a_server_that_hangs_up_during_the_handshake_is_a_failed_connection(
    serve: Serve, certificates: Certificates, ending: str
) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1)
        if ending == "reset":
            peer.reset()

    server = await serve(handler)
    async with _client(f"https://{server.address}", certificates.client()) as client:
        error = await _failure(client)
    assert isinstance(error, ConnectionFailed)
    assert "closed during the TLS handshake" in str(error)


@pytest.mark.parametrize("moment", ["before the handshake", "within the handshake", "after the handshake"])
async def test_a_reset_around_the_handshake_is_raised_to_the_caller_and_not_logged(
    serve: Serve, certificates: Certificates, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """uvloop logs a stack trace when a handshake begins on a connection that is closed already."""
    connect = tcp.connect

    async def connect_and_notice_the_reset(
        loop: asyncio.AbstractEventLoop, make_protocol: Callable[[], tcp.P], host: str, port: int
    ) -> tuple[asyncio.Transport, tcp.P]:
        transport, protocol = await connect(loop, make_protocol, host, port)
        async with asyncio.timeout(10):
            while not transport.is_closing():
                await asyncio.sleep(0)
        return transport, protocol

    async def handler(peer: Peer) -> None:
        if moment != "before the handshake":
            await peer.reader.read(1)
        peer.reset()

    if moment == "before the handshake":
        monkeypatch.setattr(tcp, "connect", connect_and_notice_the_reset)
    logged: list[dict[str, object]] = []
    loop = asyncio.get_running_loop()
    server = await serve(handler, certificates.server() if moment == "after the handshake" else None)
    loop.set_exception_handler(lambda _, context: logged.append(context))
    async with _client(f"https://{server.address}", certificates.client()) as client:
        error = await _failure(client)
    for _ in range(5):
        await asyncio.sleep(0)
    assert isinstance(error, ConnectionFailed | ConnectionLost)
    assert logged == []


@pytest.mark.parametrize(
    ("certificate", "authority", "expected"),
    [
        ("server", "unknown", "certificate authority data"),
        ("expired", "ca", "expired"),
        ("other", "ca", "tls-server-name"),
    ],
)
async def test_a_server_certificate_that_is_not_accepted_says_why(
    serve: Serve, certificates: Certificates, certificate: str, authority: str, expected: str
) -> None:
    server = await serve(_ok, certificates.server(certificate))
    async with _client(f"https://{server.address}", certificates.client(authority=authority)) as client:
        error = await _failure(client)
    assert isinstance(error, TLSError)
    assert not error.is_temporary
    assert server.address in str(error)
    assert expected in str(error)


async def test_the_name_to_check_can_be_another_than_the_host(serve: Serve, certificates: Certificates) -> None:
    server = await serve(_ok, certificates.server("other"))
    async with _client(
        f"https://{server.address}", certificates.client(), server_name="elsewhere.example.com"
    ) as client:
        assert (await client.request("GET", "/")).status == 200


async def test_a_client_certificate_is_presented(serve: Serve, certificates: Certificates) -> None:
    server = await serve(_ok, certificates.server(client_certificate=True))
    async with _client(f"https://{server.address}", certificates.client("client")) as client:
        assert (await client.request("GET", "/")).status == 200


@pytest.mark.parametrize("shown", [None, "stranger"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_that_is_refused_says_so(
    refuse: Callable[[ssl.SSLContext], str], certificates: Certificates, shown: str | None, version: ssl.TLSVersion
) -> None:
    """With TLS 1.3 the client's handshake succeeds, and the refusal comes where the answer is expected."""
    context = certificates.server(client_certificate=True)
    context.maximum_version = version
    address = refuse(context)
    async with _client(f"https://{address}", certificates.client(shown)) as client:
        error = await _failure(client)
    assert isinstance(error, TLSError)
    assert "our client certificate" in str(error)
    assert address in str(error)


async def test_a_server_that_hangs_up_right_after_the_handshake_may_have_refused_the_certificate(
    serve: Serve, certificates: Certificates
) -> None:
    """The reason is an alert that can get lost on the way."""
    server = await serve(_ok, certificates.server(client_certificate=True))
    async with _client(f"https://{server.address}", certificates.client("stranger")) as client:
        error = await _failure(client)
    assert isinstance(error, TLSError | ConnectionLost)
    assert "our client certificate" in str(error)
    assert server.address in str(error)


async def test_a_server_that_does_not_speak_tls_says_so(serve: Serve, certificates: Certificates) -> None:
    async def handler(peer: Peer) -> None:
        await peer.reader.read(1)
        await peer.send(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent something else to an HTTP server.\n")
        await peer.gone()

    server = await serve(handler)
    async with _client(f"https://{server.address}", certificates.client()) as client:
        error = await _failure(client)
    assert isinstance(error, TLSError)
    assert "does not speak TLS" in str(error)


async def test_the_tls_context_is_requested_for_each_connection(serve: Serve, certificates: Certificates) -> None:
    contexts = 0

    async def tls() -> ssl.SSLContext:
        nonlocal contexts
        contexts += 1
        return certificates.client("client" if contexts > 1 else "stranger")

    server = await serve(_ok, certificates.server(client_certificate=True))
    async with _client(f"https://{server.address}", tls) as client:
        await _failure(client)
        client.drop_idle()
        for _ in range(3):
            assert (await client.request("GET", "/")).status == 200
    assert contexts == 2


async def test_an_error_of_the_tls_source_reaches_the_caller(serve: Serve) -> None:
    async def tls() -> ssl.SSLContext:
        raise ConfigError("no certificate here")

    server = await serve(_ok)
    async with _client(f"https://{server.address}", tls) as client:
        with pytest.raises(ConfigError, match="no certificate here"):
            await client.request("GET", "/")
    assert server.accepted == 0


@pytest.mark.skipif(not socket.has_ipv6, reason="the machine has no IPv6")
async def test_an_ipv6_address_works(serve: Serve) -> None:
    heads = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.answer()

    server = await serve(handler, None, "::1")
    async with _client(f"http://[::1]:{server.port}") as client:
        assert (await client.request("GET", "/")).status == 200
    assert f"Host: [::1]:{server.port}\r\n" in heads[0]


class _Proxy:
    """An HTTP proxy that forwards bytes after CONNECT."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n") -> None:
        self._answer = answer
        self.heads: list[str] = []
        self.left = asyncio.Event()
        """Set when the client has closed a connection for which there was no tunnel."""

    async def __call__(self, peer: Peer) -> None:
        head, _ = await peer.request()
        self.heads.append(head)
        await peer.send(self._answer)
        if b" 200 " not in self._answer:
            if b"\r\n\r\n" in self._answer or len(self._answer) > 1000:
                await peer.gone()
            self.left.set()
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(peer.reader, writer))
                group.create_task(_copy(reader, peer.writer))
        finally:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    raise EOFError


@pytest.mark.parametrize("secure", [False, True])
async def test_a_proxy_is_asked_for_a_tunnel_and_sees_nothing_of_the_request(
    serve: Serve, certificates: Certificates, secure: bool
) -> None:
    server = await serve(_ok, certificates.server(client_certificate=True))
    proxy = _Proxy()
    proxy_server = await serve(proxy, certificates.server() if secure else None)
    async with _client(
        f"https://{server.address}",
        certificates.client("client"),
        proxy=f"{'https' if secure else 'http'}://bob:p%40ss@{proxy_server.address}",
        proxy_tls=certificates.client() if secure else None,
    ) as client:
        for _ in range(3):
            assert (await client.request("PUT", "/", body=b"x" * 100_000)).status == 200
    assert proxy.heads == [
        f"CONNECT {server.address} HTTP/1.1\r\nHost: {server.address}\r\n"
        "Proxy-Authorization: Basic Ym9iOnBAc3M=\r\n\r\n"
    ]


async def test_a_plain_server_behind_a_proxy_is_named_in_the_request(serve: Serve) -> None:
    heads = []

    async def handler(peer: Peer) -> None:
        heads.append((await peer.request())[0])
        await peer.answer()

    proxy = await serve(handler)
    async with _client("http://api.example.com:8080/prefix", proxy=f"http://bob:pass@{proxy.address}") as client:
        assert (await client.request("GET", "/api")).status == 200
    assert heads[0].startswith("GET http://api.example.com:8080/prefix/api HTTP/1.1\r\nHost: api.example.com:8080\r\n")
    assert "Proxy-Authorization: Basic Ym9iOnBhc3M=\r\n" in heads[0]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nwho?", "asks for a user name"),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", "it answered 503"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 403 Forb", "closed the connection"),
        (b"HTTP/1.1 502 Bad Gateway\r\n" + b"X: " + b"x" * 100_000, "longer than"),
    ],
)
async def test_a_proxy_that_refuses_is_named(
    serve: Serve, certificates: Certificates, answer: bytes, expected: str
) -> None:
    proxy = _Proxy(answer)
    server = await serve(proxy)
    async with _client(
        "https://api.example.com", certificates.client(), proxy=f"http://bob:s3cret@{server.address}"
    ) as client:
        error = await _failure(client)
        async with asyncio.timeout(5):
            await proxy.left.wait()
    assert isinstance(error, ConnectionFailed)
    assert f"the proxy {server.address}" in str(error)
    assert expected in str(error)


async def test_a_proxy_that_is_down_is_named(serve: Serve, certificates: Certificates) -> None:
    proxy = await serve(_ok)
    await proxy.aclose()
    async with _client(
        "https://api.example.com", certificates.client(), proxy=f"http://bob:s3cret@{proxy.address}"
    ) as client:
        error = await _failure(client)
    assert str(error) == f"cannot connect to {proxy.address}: Connection refused"


async def test_a_proxy_that_never_answers_times_out(serve: Serve, certificates: Certificates) -> None:
    async def handler(peer: Peer) -> None:
        await peer.gone()

    proxy = await serve(handler)
    async with _client(
        "https://api.example.com", certificates.client(), proxy=f"http://{proxy.address}", connect_timeout=0.05
    ) as client:
        error = await _failure(client)
    assert isinstance(error, ConnectionFailed)
    assert "no connection within 0.05 s" in str(error)
