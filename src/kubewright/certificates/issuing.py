"""Making certificates: P-256 keys, SHA-256 signatures, and the extensions that Go and OpenSSL check.

Times are the caller's: nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import ClassVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright.client.redacted import Redacted

CLOCK_SKEW = timedelta(days=2)
"""By how much a certificate is valid before it was made: machines that were paused come back with a clock that is
behind, and what a replica with a clock that is a day ahead has made is shown to all clients."""

MAX_NAME_LENGTH = 64
"""X.520 bounds common and organization names; OpenSSL-based clients refuse longer ones."""

UNREADABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
)
"""What reading and checking damaged certificates and keys raises."""


class KeyPair(Redacted, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str
    __shown__: ClassVar = ("certificate",)


class Authority:
    """Signs certificates with the key of its own. ValueError when the pair is none."""

    def __init__(self, pair: KeyPair) -> None:
        self.pair = pair
        self.certificate = x509.load_pem_x509_certificate(pair.certificate.encode())
        self._key = private_key(pair)

    @classmethod
    def create(cls, name: str, *, begin: datetime, end: datetime) -> Authority:
        """A new one, which signs itself."""
        subject, key = common_name(name), ec.generate_private_key(ec.SECP256R1())
        extensions = [
            (x509.BasicConstraints(ca=True, path_length=None), True),
            (key_usage(signs=True, signs_certificates=True), True),
            (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        ]
        made = _signed(subject, key.public_key(), subject, key, begin, end, extensions)
        return cls(KeyPair(made, key_pem(key)))

    def issue(
        self,
        subject: x509.Name,
        public_key: CertificatePublicKeyTypes,
        extensions: Iterable[tuple[x509.ExtensionType, bool]],
        *,
        begin: datetime,
        end: datetime,
    ) -> str:
        """A certificate (PEM) of what is no authority, with further extensions, each critical or not."""
        fixed = [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False),
        ]
        issuer = self.certificate.subject
        return _signed(subject, public_key, issuer, self._key, begin, end, [*fixed, *extensions])

    def server(self, name: str, hosts: Iterable[str], *, begin: datetime, end: datetime) -> KeyPair:
        """A certificate for a TLS server that is reached by any of `hosts` (DNS names and IP addresses)."""
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = _server_extensions(key, hosts)
        return KeyPair(self.issue(common_name(name), key.public_key(), extensions, begin=begin, end=end), key_pem(key))

    def client(self, subject: x509.Name, *, begin: datetime, end: datetime) -> KeyPair:
        """A certificate for a TLS client."""
        key = ec.generate_private_key(ec.SECP256R1())
        extensions = _leaf_extensions(key, ExtendedKeyUsageOID.CLIENT_AUTH)
        return KeyPair(self.issue(subject, key.public_key(), extensions, begin=begin, end=end), key_pem(key))


def self_signed(name: str, hosts: Iterable[str], *, begin: datetime, end: datetime) -> KeyPair:
    """A certificate for a TLS server without any authority: clients can only trust it by itself."""
    subject, key = common_name(name), ec.generate_private_key(ec.SECP256R1())
    made = _signed(subject, key.public_key(), subject, key, begin, end, _server_extensions(key, hosts))
    return KeyPair(made, key_pem(key))


def new_key() -> str:
    """A fresh private key, PEM."""
    return key_pem(ec.generate_private_key(ec.SECP256R1()))


def private_key(pair: KeyPair) -> ec.EllipticCurvePrivateKey:
    """The private key of a pair. ValueError, without a word of its content, when it is not that of the certificate."""
    try:
        public_key = x509.load_pem_x509_certificate(pair.certificate.encode()).public_key()
    except UNREADABLE:
        raise ValueError("the certificate cannot be read") from None
    try:
        key = serialization.load_pem_private_key(pair.key.encode(), None)
    except UNREADABLE:
        raise ValueError("the private key cannot be read") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != public_key:
        raise ValueError("the private key belongs to another certificate")
    return key


def has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Whether a certificate is, to the last bit, as the authority has signed it."""
    try:
        certificate.verify_directly_issued_by(authority)
    except UNREADABLE:
        return False
    return True


def common_name(name: str) -> x509.Name:
    """A subject, cut to the length that fits: what is checked of a server is its alternative names."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:MAX_NAME_LENGTH])])


def key_usage(*, signs: bool, enciphers: bool = False, signs_certificates: bool = False) -> x509.KeyUsage:
    """The extension with these usages."""
    return x509.KeyUsage(
        digital_signature=signs,
        key_encipherment=enciphers,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    """SEC 1 ("EC PRIVATE KEY"): the only form kube-apiserver takes for --service-account-key-file."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode("ascii")


def _server_extensions(key: ec.EllipticCurvePrivateKey, hosts: Iterable[str]) -> list[tuple[x509.ExtensionType, bool]]:
    alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    return [*_leaf_extensions(key, ExtendedKeyUsageOID.SERVER_AUTH), (alternatives, False)]


def _leaf_extensions(
    key: ec.EllipticCurvePrivateKey, usage: x509.ObjectIdentifier
) -> list[tuple[x509.ExtensionType, bool]]:
    return [
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
        (key_usage(signs=True), True),
        (x509.ExtendedKeyUsage([usage]), False),
    ]


def _signed(
    subject: x509.Name,
    public_key: CertificatePublicKeyTypes,
    issuer: x509.Name,
    signing_key: ec.EllipticCurvePrivateKey,
    begin: datetime,
    end: datetime,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
) -> str:
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )
    for extension, is_critical in extensions:
        builder = builder.add_extension(extension, critical=is_critical)
    return builder.sign(signing_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
