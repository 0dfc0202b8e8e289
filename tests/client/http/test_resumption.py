"""A resumed TLS session is worth no more than what was verified for it."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from kubewright.api.time import clock_set_to
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Credential
from kubewright.client.config.tls import TLS, Certificate
from kubewright.client.errors import TLSError
from kubewright.client.http.response import StreamedResponse
from kubewright.client.session import Session

if TYPE_CHECKING:
    from tests.client.conftest import Certificates, Peer, Serve

SECOND = datetime.timedelta(seconds=1)


class Clock:
    """The present as `kubewright.now` has it; OpenSSL goes by the machine's."""

    def __init__(self) -> None:
        self.present = datetime.datetime.now(datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.present


@pytest.fixture
def clock() -> Iterator[Clock]:
    clock = Clock()
    with clock_set_to(clock):
        yield clock


class Shown:
    """Credentials by a client certificate, which the test exchanges."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        self.certificate = certificate

    async def current(self) -> Credential:
        return Credential(certificate=self.certificate)

    async def rejected(self, credential: Credential) -> bool:
        return False


class Connections:
    """Connections of one session, all of them open; `resumed` says of each whether it resumed a TLS session."""

    def __init__(self, session: Session, resumed: list[bool]) -> None:
        self._session = session
        self._streams: list[StreamedResponse] = []
        self.resumed = resumed

    async def one_more(self) -> None:
        self._streams.append(await self._session.stream("GET", "/", request="watch Pod"))


@asynccontextmanager
async def connections_to(
    serve: Serve, context: ssl.SSLContext, tls: TLS, credentials: Shown | None = None
) -> AsyncIterator[Connections]:
    resumed: list[bool] = []

    async def streaming(peer: Peer) -> None:
        resumed.append(bool(peer.writer.get_extra_info("ssl_object").session_reused))
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await peer.gone()

    server = await serve(streaming, context)
    session = Session(Config(server=f"https://{server.address}", tls=tls, credentials=credentials or Shown()))
    try:
        yield Connections(session, resumed)
    finally:
        await session.aclose()


def pem(certificates: Certificates, name: str) -> bytes:
    return (certificates.directory / f"{name}.pem").read_bytes()


def show_expired(certificates: Certificates, context: ssl.SSLContext) -> None:
    """From now on the server shows an expired certificate to those who do not resume a session."""
    context.load_cert_chain(certificates.directory / "expired.pem", certificates.directory / "expired-key.pem")


async def test_after_five_minutes_the_server_has_to_show_its_certificate_again(
    serve: Serve, certificates: Certificates, clock: Clock
) -> None:
    context = certificates.server()
    async with connections_to(serve, context, TLS(ca=pem(certificates, "ca"))) as connections:
        await connections.one_more()
        show_expired(certificates, context)
        clock.present += 299 * SECOND
        await connections.one_more()
        clock.present += SECOND
        with pytest.raises(TLSError, match="expired"):
            await connections.one_more()
    assert connections.resumed == [False, True]


@pytest.mark.parametrize(("server", "expiring"), [("server", "server"), ("lasting", "ca")])
async def test_no_session_outlives_the_certificate_of_the_server_or_of_the_authority(
    serve: Serve, certificates: Certificates, clock: Clock, server: str, expiring: str
) -> None:
    context = certificates.server(server)
    clock.present = x509.load_pem_x509_certificate(pem(certificates, expiring)).not_valid_after_utc - 9 * SECOND
    async with connections_to(serve, context, TLS(ca=pem(certificates, "ca"))) as connections:
        await connections.one_more()
        show_expired(certificates, context)
        clock.present += 8 * SECOND
        await connections.one_more()
        clock.present += SECOND
        with pytest.raises(TLSError, match="expired"):
            await connections.one_more()
    assert connections.resumed == [False, True]


async def test_an_authority_that_had_expired_before_changes_nothing(
    serve: Serve, certificates: Certificates, clock: Clock
) -> None:
    """Bundles keep them for years."""
    clock.present += datetime.timedelta(days=50)  # `ca` is in the bundle, and was not what made `lasting` trusted
    bundle = pem(certificates, "ca") + pem(certificates, "lasting")
    async with connections_to(serve, certificates.server("lasting"), TLS(ca=bundle)) as connections:
        await connections.one_more()
        await connections.one_more()
    assert connections.resumed == [False, True]


async def test_no_session_is_used_once_its_authority_is_not_trusted_any_more(
    serve: Serve, certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(pem(certificates, "ca"))
    tls = TLS(ca=file.read_bytes(), ca_file=file)
    async with connections_to(serve, certificates.server(), tls) as connections:
        await connections.one_more()
        await connections.one_more()
        file.write_bytes(pem(certificates, "unknown"))
        with pytest.raises(TLSError, match="certificate authority"):
            await connections.one_more()
        file.write_bytes(pem(certificates, "ca"))
        await connections.one_more()
    assert connections.resumed == [False, True, False]


async def test_no_session_is_used_with_another_client_certificate(serve: Serve, certificates: Certificates) -> None:
    def certificate(name: str) -> Certificate:
        return Certificate(chain=pem(certificates, name), key=pem(certificates, f"{name}-key"))

    credentials = Shown(certificate("client"))
    context = certificates.server(client_certificate=True)
    async with connections_to(serve, context, TLS(ca=pem(certificates, "ca")), credentials) as connections:
        await connections.one_more()
        await connections.one_more()
        credentials.certificate = certificate("other")
        await connections.one_more()
    assert connections.resumed == [False, True, False]
