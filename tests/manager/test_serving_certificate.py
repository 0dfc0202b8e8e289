"""The certificate of a server: from files that change, and from memory."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubewright.controlplane.certificates import CertificateAuthority, KeyPair
from kubewright.manager.metrics import Metrics
from kubewright.manager.serving import EndpointRequest, EndpointResponse, Server
from kubewright.manager.serving_certificate import (
    CertificateReads,
    HeldCertificate,
    ServingCertificateError,
    from_directory,
)

AUTHORITY = CertificateAuthority()


def write(directory: Path, pair: KeyPair) -> KeyPair:
    (directory / "tls.crt").write_text(pair.certificate)
    (directory / "tls.key").write_text(pair.key)
    return pair


def pair() -> KeyPair:
    return AUTHORITY.server("server", hosts=["127.0.0.1"])


async def answer(request: EndpointRequest) -> EndpointResponse:
    return EndpointResponse(body=b"ok")


@asynccontextmanager
async def serving(context: ssl.SSLContext) -> AsyncIterator[int]:
    server = Server("127.0.0.1:0", tls=lambda: context)
    server.route("/", answer)
    async with server:
        yield server.port


def trusting(client: KeyPair | None = None, directory: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.certificate)
    if client is not None and directory is not None:
        file = directory / "client.pem"
        file.write_text(client.certificate + client.key)
        context.load_cert_chain(file)
    return context


async def get(port: int, context: ssl.SSLContext) -> str:
    """The certificate that the server has shown, when it has also answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"ok")
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return ssl.DER_cert_to_PEM_cert(shown).strip()
    finally:
        writer.close()


async def test_files_are_replaced_under_load_without_a_failed_connection(tmp_path: Path) -> None:
    """As a kubelet does it: both at once, by a link to another directory."""

    def mount(pair: KeyPair, number: int) -> None:
        (tmp_path / str(number)).mkdir()
        write(tmp_path / str(number), pair)
        (tmp_path / "next").symlink_to(tmp_path / str(number))
        (tmp_path / "next").rename(tmp_path / "data")

    pairs = [pair() for _ in range(10)]
    mount(pairs[0], 0)
    shown: list[str] = []
    over = asyncio.Event()

    async def load() -> None:
        while not over.is_set():
            shown.append(await get(port, trusting()))

    async with asyncio.timeout(120), serving(from_directory(tmp_path / "data")) as port, asyncio.TaskGroup() as tasks:
        for _ in range(2):
            tasks.create_task(load())
        for number, each in enumerate(pairs):
            if number:
                mount(each, number)
            count = len(shown)
            while len(shown) < count + 3:  # two of them may have begun before
                await asyncio.sleep(0.001)
        over.set()
    assert shown[-1] == pairs[-1].certificate.strip()
    assert set(shown) == {each.certificate.strip() for each in pairs}


async def test_the_previous_certificate_stays_while_files_cannot_be_used_and_reads_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, metrics = write(tmp_path, pair()), Metrics()
    reads = CertificateReads.declared(metrics)
    async with asyncio.timeout(60), serving(from_directory(tmp_path, reads=reads)) as port:
        (tmp_path / "tls.key").write_text("hunter2")
        for _ in range(3):
            assert await get(port, trusting()) == first.certificate.strip()
        assert (reads.total.value, reads.errors.value) == (2, 1)
        (tmp_path / "tls.key").unlink()
        assert await get(port, trusting()) == first.certificate.strip()
        assert (reads.total.value, reads.errors.value) == (3, 2)
        second = write(tmp_path, pair())
        assert await get(port, trusting()) == second.certificate.strip()
        assert (reads.total.value, reads.errors.value) == (4, 2)
    exposed = (await metrics.answer(EndpointRequest("/metrics"))).body.decode()
    assert "\ncertwatcher_read_certificate_total 4\n" in exposed
    assert "\ncertwatcher_read_certificate_errors_total 2\n" in exposed
    assert [record.levelno for record in caplog.records if "previous certificate" in record.message] == [
        logging.WARNING,
        logging.WARNING,
    ]
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_is_not_resumed_once_the_authority_of_its_client_is_trusted_no_more(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    write(tmp_path, pair())
    old, new, file = CertificateAuthority("old"), CertificateAuthority("new"), tmp_path / "ca.crt"
    file.write_text(old.certificate)
    context = trusting(old.client("api-server"), tmp_path)
    context.minimum_version = context.maximum_version = version

    def asked(port: int, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None, bool | None]:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as connection,
        ):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            return answer, connection.session, connection.session_reused

    async with asyncio.timeout(60), serving(from_directory(tmp_path, file)) as port:
        first, session, _ = await asyncio.to_thread(asked, port, None)
        again, session, is_resumed = await asyncio.to_thread(asked, port, session)
        assert (first[-2:], again[-2:], is_resumed) == (b"ok", b"ok", True)
        file.write_text(new.certificate + "\n")
        try:
            answer = (await asyncio.to_thread(asked, port, session))[0]
        except OSError:  # an alert of TLS
            answer = b""
        assert answer == b""


async def test_the_authorities_of_clients_are_read_again_when_they_change(tmp_path: Path) -> None:
    write(tmp_path, pair())
    old, new, file = CertificateAuthority("old"), CertificateAuthority("new"), tmp_path / "ca.crt"
    file.write_text(old.certificate)

    async def is_served(authority: CertificateAuthority) -> bool:
        try:
            await get(port, trusting(authority.client("api-server"), tmp_path))
        except (OSError, AssertionError):  # an alert of TLS, unless the connection is closed before it is read
            return False
        return True

    async with asyncio.timeout(60), serving(from_directory(tmp_path, file)) as port:
        assert (await is_served(old), await is_served(new)) == (True, False)
        file.write_text(new.certificate)
        assert (await is_served(old), await is_served(new)) == (False, True)
        file.write_text("")
        assert (await is_served(old), await is_served(new)) == (False, True)


async def test_what_is_held_in_memory_is_served_at_once_and_nothing_of_it_is_written_or_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    held, first, second = HeldCertificate(), pair(), pair()
    with pytest.raises(ServingCertificateError, match="no certificate to serve with yet"):
        held.context()
    held.use(first.certificate, first.key, "in the Secret a/b")
    async with asyncio.timeout(60), serving(held.context()) as port:
        assert await get(port, trusting()) == first.certificate.strip()
        held.use(second.certificate, second.key, "in the Secret a/b")
        assert await get(port, trusting()) == second.certificate.strip()
        held.use(second.certificate, first.key, "in the Secret a/b")
        assert await get(port, trusting()) == second.certificate.strip()
    assert list(tmp_path.iterdir()) == []
    assert "PRIVATE" not in f"{held!r} {held.state()!r}"


@pytest.mark.parametrize(("version", "refusal"), [("TLSv1_1", "UNSUPPORTED_PROTOCOL"), ("TLSv1_2", None)])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_less_than_tls_1_2_is_refused(version: str, refusal: str | None, tmp_path: Path) -> None:
    write(tmp_path, pair())
    client = trusting()
    client.set_ciphers("ALL:@SECLEVEL=0")  # or OpenSSL would not even try
    client.minimum_version = client.maximum_version = ssl.TLSVersion[version]
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    serving = from_directory(tmp_path).wrap_bio(to_server, to_client, server_side=True)
    reason = None
    for each in (asking, serving, asking, serving):
        try:
            each.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            reason = error.reason
            break
    assert reason == refusal
