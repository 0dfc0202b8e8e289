"""Scripted servers, and certificates good and bad.

Every test that uses `serve` or `refuse` runs on the asyncio loop and on uvloop.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.api.markers import JSONValue
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.http.response import Headers, Response, StreamedResponse
from kubewright.testing.virtual_time import VirtualTimeLoop

T = TypeVar("T")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if not {"serve", "refuse"}.isdisjoint(getattr(item, "fixturenames", ())):
        return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        """0 for the first connection that the server got, 1 for the second…"""

    async def request(self) -> tuple[str, bytes]:
        """The next request: its head as text, its body. `EOFError` when the client has gone."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        return head, await self.reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes = b"ok", status: str = "200 OK", fields: str = "") -> None:
        await self.send(f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def gone(self) -> None:
        """Return when the client has closed its end."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while await self.reader.read(65536):
                pass

    def reset(self) -> None:
        """Close as a crashed server does: the client's next read or write fails."""
        linger_for_no_time = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_no_time)
        self.writer.transport.abort()


Handler = Callable[[Peer], Awaitable[None]]


class Server:
    """A listening server; one task per connection runs the handler, and closes the connection at its end."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0
        self.open = 0
        self.port = 0
        self._listener: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def listen(self, context: ssl.SSLContext | None, host: str) -> None:
        self._listener = await asyncio.start_server(self._accept, host, 0, ssl=context)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        peer = Peer(reader, writer, self.accepted)
        self.accepted += 1
        self.open += 1
        try:
            with contextlib.suppress(ConnectionError, EOFError, ssl.SSLError, asyncio.CancelledError):
                await self._handler(peer)
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError, asyncio.CancelledError):
                await peer.gone()
        finally:
            writer.transport.abort()
            self.open -= 1
            self.tasks.discard(task)


Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """`await serve(handler, context=None, host="127.0.0.1")` starts a server that ends with the test."""
    servers: list[Server] = []

    async def start(handler: Handler, context: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> Server:
        server = Server(handler)
        servers.append(server)
        await server.listen(context, host)
        return server

    yield start
    for server in servers:
        await server.aclose()


@pytest.fixture
def refuse() -> Iterator[Callable[[ssl.SSLContext], str]]:
    """`refuse(context)` gives the address of a server for one connection, whose TLS handshake is expected to fail.

    It sends the alert that says why, as real servers do and the servers of asyncio do not.
    """
    threads: list[threading.Thread] = []

    def start(context: ssl.SSLContext) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(10)
        threads.append(threading.Thread(target=_refuse, args=(listener, context)))
        threads[-1].start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join()


def _refuse(listener: socket.socket, context: ssl.SSLContext) -> None:
    with listener, listener.accept()[0] as connection:
        connection.settimeout(10)
        # The TLS layer gets a copy of the socket: closing with bytes unread would reset the connection, and the alert
        # could get lost.
        with contextlib.suppress(ssl.SSLError):
            context.wrap_socket(connection.dup(), server_side=True).close()
        while connection.recv(65536):
            pass


# Python 3.13 and newer refuse an authority that does not say so, and certificates that do not name their issuer's key.
_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Certificates:
    """A directory of PEM files.

    For servers: `server` (127.0.0.1, localhost), `expired`, `lasting`, which outlives its authority, `other` (of
    another name), `below`, whose authority is `intermediate`, which `ca` has signed. For clients: `client`, and
    `stranger`, whose authority is not trusted.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        local = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        ca = self._authority("ca")
        self._issue(ca, "server", local, now - day, now + day)
        self._issue(ca, "expired", local, now - 2 * day, now - day)
        self._issue(ca, "lasting", local, now - day, now + 99 * day)
        self._issue(ca, "other", [x509.DNSName("elsewhere.example.com")], now - day, now + day)
        self._issue(ca, "client", [x509.DNSName("client")], now - day, now + day)
        self._issue(self._authority("intermediate", ca), "below", local, now - day, now + day)
        self._issue(self._authority("unknown"), "stranger", [x509.DNSName("client")], now - day, now + day)

    def server(self, name: str = "server", *, client_certificate: bool = False) -> ssl.SSLContext:
        """The context of a server that shows the certificate `name`."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.directory / f"{name}.pem", self.directory / f"{name}-key.pem")
        if client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.directory / "ca.pem")
        return context

    def client(self, name: str | None = None, *, authority: str = "ca") -> ssl.SSLContext:
        """The context of a client that trusts `authority` and shows the certificate `name`."""
        context = ssl.create_default_context(cafile=str(self.directory / f"{authority}.pem"))
        if name is not None:
            context.load_cert_chain(self.directory / f"{name}.pem", self.directory / f"{name}-key.pem")
        return context

    def _authority(
        self, name: str, above: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None
    ) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
        now = datetime.datetime.now(datetime.UTC)
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer, issuer_key = above or (subject, key)
        builder = self._builder(
            subject, issuer, key, now - datetime.timedelta(days=9), now + datetime.timedelta(days=9)
        )
        certificate = builder.add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        ).add_extension(_SIGNS_CERTIFICATES, critical=True)
        self._write(name, certificate.sign(issuer_key, hashes.SHA256()), key)
        return subject, key

    def _issue(
        self,
        authority: tuple[x509.Name, ec.EllipticCurvePrivateKey],
        name: str,
        names: list[x509.GeneralName],
        start: datetime.datetime,
        end: datetime.datetime,
    ) -> None:
        issuer, issuer_key = authority
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            self._builder(subject, issuer, key, start, end)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        )
        self._write(name, certificate.sign(issuer_key, hashes.SHA256()), key)

    @staticmethod
    def _builder(
        subject: x509.Name,
        issuer: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        start: datetime.datetime,
        end: datetime.datetime,
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        (self.directory / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (self.directory / f"{name}-key.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@dataclass(frozen=True)
class Sent:
    """A request as it was handed to a `ScriptedServer`."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes | None
    timeout: float | None

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True, strict_parsing="?" in self.target))

    @property
    def json(self) -> JSONValue:
        assert self.body is not None
        content: JSONValue = json.loads(self.body)
        return content

    def header(self, name: str) -> list[str]:
        return [value for found, value in self.headers if found.lower() == name.lower()]


class ScriptedBody:
    """A body that arrives in the given pieces; an exception among them is raised when its turn comes."""

    def __init__(self, *pieces: bytes | Exception, ends: bool = True) -> None:
        self._pieces = deque(pieces)
        self._ends = ends
        self.is_closed = False
        self.idle_timeout: float | None = None
        self.gather: float | None = None

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        self.idle_timeout = idle_timeout
        self.gather = gather
        if not self._pieces:
            if not self._ends:
                await asyncio.Event().wait()
            return b""
        piece = self._pieces.popleft()
        if isinstance(piece, Exception):
            raise piece
        return piece

    async def aclose(self) -> None:
        self.is_closed = True


class ScriptedServer:
    """A `Transport` without sockets: returns scripted responses in order, and records the requests."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.is_closed = False
        self.left: deque[tuple[int, Headers, ScriptedBody] | Exception] = deque()

    def answers(
        self,
        body: Mapping[str, JSONValue] | bytes = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> ScriptedBody:
        """The next answer: JSON, or bytes as they are."""
        return self.streams(
            body if isinstance(body, bytes) else json.dumps(body).encode(), status=status, headers=headers
        )

    def refuses(self, code: int, reason: str, message: str = "no", **details: JSONValue) -> None:
        """The next answer is a failure as an API server words it."""
        status: dict[str, JSONValue] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        self.answers(
            {**status, "message": message, "reason": reason, "code": code, "details": details},
            status=code,
            headers={"Content-Type": "application/json"},
        )

    def streams(
        self,
        *pieces: bytes | Exception,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        ends: bool = True,
    ) -> ScriptedBody:
        """The next answer, its body in pieces; without `ends` it stays silent after the last one."""
        body = ScriptedBody(*pieces, ends=ends)
        raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self.left.append((status, Headers(raw), body))
        return body

    def fails(self, error: Exception) -> None:
        """There is no next answer, but this error."""
        self.left.append(error)

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        streamed = await self.stream(method, target, headers, body, timeout=timeout)
        return Response(streamed.status, streamed.headers, await streamed.read())

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        self.sent.append(Sent(method, target, headers, body, timeout))
        assert self.left, f"nothing was scripted for {method} {target}"
        answer = self.left.popleft()
        if isinstance(answer, Exception):
            raise answer
        return StreamedResponse(*answer)

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server for the test to script. A scripted response that is never requested fails the test."""
    scripted = ScriptedServer()
    yield scripted
    assert not scripted.left, f"{len(scripted.left)} scripted responses were never requested"


@pytest.fixture
def client(server: ScriptedServer) -> Client:
    """A client of `server`, whose namespace is "shop"."""
    return Client(Config(server="https://kubernetes.example.com", namespace="shop"), transport=server)


class VirtualTime:
    """Runs coroutines on a loop without waiting; `elapsed` is how long they would have taken."""

    elapsed = 0.0

    def run(self, main: Coroutine[object, object, T]) -> T:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            try:
                return runner.run(main)
            finally:
                self.elapsed = runner.get_loop().time()


@pytest.fixture
def virtual_time() -> VirtualTime:
    return VirtualTime()
