"""The certificates of one throw-away control plane.

A fresh authority per control plane, P-256 keys, no renewal: nothing here is meant to outlive a test run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=365)
# What RFC 5280 has for certificates without an end.
_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
# Containers and virtual machines that were paused come back with a clock that is behind.
_CLOCK_SKEW = timedelta(hours=1)
# X.520 bounds common and organization names; OpenSSL-based clients refuse longer ones.
_MAX_NAME_LENGTH = 64
_EXTENDED_USAGES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
_ALTERNATIVES = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str = field(repr=False)


class CertificateAuthority:
    """Signs server certificates that are valid for one year, client certificates, and the requests of others.

    A client certificate has no end: whether it has expired would be decided by the clock of the API server, which a
    test may set to any time.
    """

    def __init__(self, name: str = "kubewright") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(self._subject, self._key, datetime.now(UTC) + _LIFETIME)
            .issuer_name(self._subject)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs=True, signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self._end = certificate.not_valid_after_utc
        self.pair = KeyPair(_certificate_pem(certificate), _key_pem(self._key))

    @property
    def certificate(self) -> str:
        """The authority's own certificate, PEM: what clients must trust."""
        return self.pair.certificate

    def server(self, name: str, *, hosts: Iterable[str]) -> KeyPair:
        """A certificate for a TLS server that is reached by any of `hosts` (DNS names and IP addresses)."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        # The machine's clock and not a test's: clients check certificates by it.
        end = datetime.now(UTC) + _LIFETIME
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, end, alternatives)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A certificate that Kubernetes reads as `user` in `groups`.

        Raises ValueError when a name is empty or longer than a certificate can hold (64 characters).
        """
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, _checked("group", group)) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, _checked("user", user)))
        return self._issue(x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, _NEVER)

    def certify(
        self, request: x509.CertificateSigningRequest, usages: Collection[str], *, begin: datetime, end: datetime
    ) -> str:
        """A certificate (PEM) of the subject, the key and the alternative names in a request, for those usages.

        Usages are Kubernetes' own: "digital signature", "key encipherment", "client auth", "server auth". Of other
        extensions in the request nothing is taken over. The certificate ends with the authority's own at the latest;
        raises ValueError when that has ended already.
        """
        builder = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(self._subject)
            .public_key(request.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(min(end, self._end))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        signs, enciphers = "digital signature" in usages, "key encipherment" in usages
        if signs or enciphers:
            builder = builder.add_extension(_key_usage(signs=signs, enciphers=enciphers), critical=True)
        if extended := [usage for name, usage in _EXTENDED_USAGES.items() if name in usages]:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        if alternatives := _alternatives(request):
            is_only_name = not list(request.subject)
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=is_only_name)
        return _certificate_pem(builder.sign(self._key, hashes.SHA256()))

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        end: datetime,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, key, end)
            .issuer_name(self._subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return KeyPair(_certificate_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def signing_key() -> str:
    """A fresh private key, PEM, with which an API server signs and checks service-account tokens."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - _CLOCK_SKEW)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs: bool, enciphers: bool = False, signs_certificates: bool = False) -> x509.KeyUsage:
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


def _alternatives(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The alternative names of a subject, as far as clients check them."""
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for name in names if isinstance(name, _ALTERNATIVES)]


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _checked(what: str, name: str) -> str:
    if not 0 < len(name) <= _MAX_NAME_LENGTH:
        raise ValueError(
            f"the {what} name {name!r} has {len(name)} characters, a certificate holds 1 to {_MAX_NAME_LENGTH}"
        )
    return name


def _certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    # SEC 1 ("EC PRIVATE KEY"): the only form kube-apiserver takes for --service-account-key-file.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode("ascii")
