from __future__ import annotations

import asyncio
import datetime
import os
import ssl
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID

from kubewright.client.config import tls
from kubewright.client.config.tls import TLS, Certificate
from kubewright.client.errors import ConfigError


def self_signed(name: str, *, passphrase: bytes | None = None, names: x509.ExtensionType | None = None) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names or x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return Certificate(
        chain=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption),
        origin='of user "ci"',
    )


SERVER, CLIENT = self_signed("server.test"), self_signed("client")


async def handshake(client: ssl.SSLContext, name: str = "server.test") -> tuple[str | None, str | None, object]:
    """TLS version, application protocol and subject of the client as the server saw them."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SERVER.load_into(server)
    server.set_alpn_protocols(["h2", "http/1.1"])
    server.verify_mode = ssl.CERT_OPTIONAL
    server.load_verify_locations(cadata=CLIENT.chain.decode())
    seen: asyncio.Future[tuple[str | None, str | None, object]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("ssl_object")
        peer = connection.getpeercert()
        seen.set_result((connection.version(), connection.selected_alpn_protocol(), peer and peer["subject"]))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server) as listener:
        port = listener.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
        answer = await seen
        writer.close()
        await writer.wait_closed()
    return answer


async def test_certificate_is_presented_over_http_1_1_to_a_server_with_the_right_name() -> None:
    context = TLS(ca=SERVER.chain).context(CLIENT)

    version, protocol, subject = await handshake(context)

    assert (version, protocol, subject) == ("TLSv1.3", "http/1.1", ((("commonName", "client"),),))


async def test_server_of_another_authority_is_refused() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(TLS(ca=CLIENT.chain).context(None))


async def test_server_of_another_name_is_refused() -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await handshake(TLS(ca=SERVER.chain).context(None), name="other.test")


async def test_without_verification_any_server_is_accepted() -> None:
    _, _, subject = await handshake(TLS(verify=False).context(None), name="other.test")

    assert not subject


def server_context() -> ssl.SSLContext:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    SERVER.load_into(server)
    server.verify_mode = ssl.CERT_OPTIONAL
    server.load_verify_locations(cadata=CLIENT.chain.decode())
    return server


def connected(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "server.test") -> list[ssl.SSLObject]:
    """Both ends of a connection over which a byte has come from the server."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(down, up, server_hostname=name), server.wrap_bio(up, down, server_side=True)]
    for end in ends * 2:
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()
    ends[1].write(b"x")
    assert ends[0].read() == b"x"
    return ends


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
def test_further_connections_resume_the_session_of_the_first_as_the_same_user(version: ssl.TLSVersion) -> None:
    server = server_context()
    server.maximum_version = version
    context = TLS(ca=SERVER.chain).context(CLIENT)
    connections = [connected(context, server) for _ in range(3)]
    assert [client.session_reused for client, _ in connections] == [False, True, True]
    for _, seen in connections:
        assert (seen.getpeercert() or {})["subject"] == ((("commonName", "client"),),)


def test_a_server_that_does_not_know_the_session_makes_another_one() -> None:
    """It was restarted, or there are several behind one address."""
    context = TLS(ca=SERVER.chain).context(CLIENT)
    first, second = server_context(), server_context()
    connections = [connected(context, server) for server in (first, first, second, second)]
    assert [client.session_reused for client, _ in connections] == [False, True, False, True]


def test_the_authorities_are_read_once_however_often_the_server_makes_another_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To read those of a system takes ten times as long as a handshake."""
    context = TLS(ca=SERVER.chain).context(None)
    authorities = context.get_ca_certs()
    reads: list[None] = []

    def read() -> object:
        reads.append(None)
        return authorities

    monkeypatch.setattr(context, "get_ca_certs", read)
    connections = [connected(context, server_context()) for _ in range(4)]
    assert not any(client.session_reused for client, _ in connections)
    assert len(reads) == 1


def test_beside_an_authority_that_python_cannot_read_each_connection_verifies_the_server() -> None:
    """OpenSSL trusts what it signs, so that a mail address in Latin-1 must not be an error here."""
    latin_1 = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, b"\x30\x07\x81\x05m\xfc@de")
    context = TLS(ca=SERVER.chain + self_signed("old", names=latin_1).chain).context(None)
    with pytest.raises(UnicodeDecodeError):
        context.get_ca_certs()
    server = server_context()
    connections = [connected(context, server) for _ in range(3)]
    assert [client.session_reused for client, _ in connections] == [False, False, False]


def test_a_session_is_not_offered_under_another_name() -> None:
    context, server = TLS(ca=SERVER.chain).context(None), server_context()
    connections = [connected(context, server) for _ in range(2)]
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(context, server, "other.test")
    assert connections[1][0].session_reused


def test_a_session_is_not_offered_with_another_certificate() -> None:
    server = server_context()
    assert connected(TLS(ca=SERVER.chain).context(CLIENT), server)[1].getpeercert()
    client, seen = connected(TLS(ca=SERVER.chain).context(None), server)
    assert not client.session_reused
    assert not seen.getpeercert()


def test_tls_1_1_is_refused() -> None:
    assert TLS().context(None).minimum_version is ssl.TLSVersion.TLSv1_2


def test_system_authorities_count_only_when_none_are_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundle = tmp_path / "system.pem"
    bundle.write_bytes(CLIENT.chain)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))

    assert [authority["subject"] for authority in TLS().context(None).get_ca_certs()] == [
        ((("commonName", "client"),),)
    ]
    assert [authority["subject"] for authority in TLS(ca=SERVER.chain).context(None).get_ca_certs()] == [
        ((("commonName", "server.test"),),)
    ]


def test_comments_between_the_authorities_do_not_matter() -> None:
    bundle = "# Főtanúsítvány\n".encode() + SERVER.chain + b"\xff\xfe\n" + CLIENT.chain

    assert len(TLS(ca=bundle).context(None).get_ca_certs()) == 2


@pytest.mark.parametrize(
    ("ca", "problem"),
    [
        (b"", "no PEM certificate was found"),
        (CLIENT.key, "no PEM certificate was found"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "the PEM data is damaged"),
    ],
)
def test_bad_authority_is_named(ca: bytes, problem: str) -> None:
    with pytest.raises(ConfigError, match=f'the certificate authority of cluster "c" cannot be used: {problem}'):
        TLS(ca=ca, origin='of cluster "c"').context(None)


def test_authority_and_no_verification_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r'of cluster "c" contradict each other.*remove one of the two'):
        TLS(ca=SERVER.chain, verify=False, origin='of cluster "c"')


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        (Certificate(chain=CLIENT.key, key=CLIENT.key), "no PEM certificate was found"),
        (Certificate(chain=CLIENT.chain, key=CLIENT.chain), "no PEM private key was found"),
        (Certificate(chain=CLIENT.chain, key=SERVER.key), "its key belongs to another certificate"),
        (self_signed("x", passphrase=b"hunter2"), "its key is encrypted; decrypt it with: openssl pkey"),
        (Certificate(chain=CLIENT.chain, key=CLIENT.key[:-40] + b"AAAA"), "the PEM data is damaged"),
        (Certificate(chain=CLIENT.chain[:60] + CLIENT.chain[90:], key=CLIENT.key), "the PEM data is damaged"),
    ],
)
def test_bad_certificate_is_named_and_not_shown(certificate: Certificate, problem: str) -> None:
    named = Certificate(chain=certificate.chain, key=certificate.key, origin='of user "ci"')

    with pytest.raises(ConfigError, match=f'the client certificate of user "ci" cannot be used: {problem}') as failure:
        named.check()
    assert all(line not in str(failure.value) for line in certificate.key.decode().splitlines()[1:-1])


@pytest.fixture(params=["memory files are forbidden", "there is no /proc"])
def only_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def forbidden(name: str) -> int:
        raise PermissionError(name)

    if request.param == "there is no /proc":
        monkeypatch.setattr(tls, "_DESCRIPTORS", tmp_path / "proc")
    else:
        monkeypatch.setattr(os, "memfd_create", forbidden)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory")
def test_key_is_not_written_to_disk_where_memory_suffices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    descriptors = len(list(Path("/proc/self/fd").iterdir()))

    CLIENT.check()
    with pytest.raises(ConfigError, match="its key belongs to another certificate"):
        Certificate(chain=CLIENT.chain, key=SERVER.key).check()

    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.usefixtures("only_disk")
def test_files_with_the_key_are_gone_afterwards(tmp_path: Path) -> None:
    CLIENT.check()
    with pytest.raises(ConfigError):
        Certificate(chain=CLIENT.chain, key=SERVER.key).check()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("only_disk")
def test_files_with_the_key_are_private(tmp_path: Path) -> None:
    modes: list[int] = []

    class Spy(ssl.SSLContext):
        def load_cert_chain(self, *arguments: object, **keywords: object) -> None:
            modes.extend(file.stat().st_mode & 0o777 for file in tmp_path.iterdir())

    CLIENT.load_into(Spy(ssl.PROTOCOL_TLS_CLIENT))

    assert modes == [0o600, 0o600]


@pytest.mark.usefixtures("only_disk")
def test_lack_of_a_temporary_directory_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))

    with pytest.raises(ConfigError, match="set TMPDIR to a writable directory"):
        CLIENT.check()


def test_repr_shows_no_key() -> None:
    assert repr(CLIENT) == "Certificate(origin='of user \"ci\"')"
    assert "BEGIN" not in repr(TLS(ca=SERVER.chain))


def test_origin_makes_no_difference_to_equality() -> None:
    certificate, settings = Certificate(chain=b"chain", key=b"key"), TLS(server_name="api", verify=False)
    elsewhere = Certificate(chain=b"chain", key=b"key", origin="x"), TLS(server_name="api", verify=False, origin="x")

    assert (certificate, settings) == elsewhere
    assert (certificate != elsewhere[0], settings != elsewhere[1]) == (False, False)
    assert {certificate, settings} == set(elsewhere)
    assert certificate != Certificate(chain=b"chain", key=b"other")
    assert settings != TLS(server_name="api")
