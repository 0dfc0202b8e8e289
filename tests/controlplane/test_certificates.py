from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kubewright.controlplane.certificates import CertificateAuthority, KeyPair, signing_key


def parse(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate.encode())


def trusted(authority: CertificateAuthority) -> PolicyBuilder:
    return PolicyBuilder().store(Store([parse(authority.pair)]))


@pytest.mark.parametrize(
    "host", [x509.DNSName("kubernetes.default.svc"), x509.IPAddress(ip_address("127.0.0.1"))], ids=str
)
def test_a_server_certificate_is_valid_for_each_of_its_hosts(host: x509.DNSName | x509.IPAddress) -> None:
    authority = CertificateAuthority()
    certificate = parse(authority.server("api", hosts=["kubernetes.default.svc", "127.0.0.1"]))

    trusted(authority).build_server_verifier(host).verify(certificate, [])


def test_a_server_certificate_is_not_valid_for_another_host() -> None:
    authority = CertificateAuthority()
    certificate = parse(authority.server("api", hosts=["localhost"]))

    with pytest.raises(VerificationError):
        trusted(authority).build_server_verifier(x509.DNSName("example.com")).verify(certificate, [])


def test_two_authorities_do_not_trust_each_other() -> None:
    certificate = parse(CertificateAuthority().server("api", hosts=["localhost"]))

    with pytest.raises(VerificationError):
        trusted(CertificateAuthority()).build_server_verifier(x509.DNSName("localhost")).verify(certificate, [])


def test_a_client_certificate_names_the_user_and_every_group() -> None:
    certificate = parse(CertificateAuthority().client("jane", ["developers", "system:masters"]))

    names = [name.value for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [name.value for name in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert (names, groups) == (["jane"], ["developers", "system:masters"])


def test_a_client_certificate_cannot_serve() -> None:
    usage = parse(CertificateAuthority().client("jane")).extensions.get_extension_for_class(x509.ExtendedKeyUsage)

    assert list(usage.value) == [x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH]


@pytest.mark.parametrize(("user", "groups"), [("", []), ("x" * 65, []), ("jane", ["g" * 65]), ("jane", [""])])
def test_a_name_that_does_not_fit_is_refused(user: str, groups: list[str]) -> None:
    with pytest.raises(ValueError, match="a certificate holds 1 to 64"):
        CertificateAuthority().client(user, groups)


def test_the_private_key_is_in_no_repr() -> None:
    pair = CertificateAuthority().client("jane")

    assert "PRIVATE" not in repr(pair)


def test_keys_are_elliptic_curve_keys_of_256_bits() -> None:
    for text in (CertificateAuthority().pair.key, CertificateAuthority().client("jane").key, signing_key()):
        key = load_pem_private_key(text.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.key_size == 256


def signing_request(*extensions: x509.ExtensionType) -> x509.CertificateSigningRequest:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def certified(
    authority: CertificateAuthority, request: x509.CertificateSigningRequest, end: datetime
) -> x509.Certificate:
    begin = datetime.now(UTC) - timedelta(minutes=5)
    return x509.load_pem_x509_certificate(authority.certify(request, ["client auth"], begin=begin, end=end).encode())


def test_a_certificate_that_was_requested_takes_over_names_and_nothing_else() -> None:
    authority, names = CertificateAuthority(), [x509.DNSName("a"), x509.IPAddress(ip_address("::1"))]
    request = signing_request(
        x509.SubjectAlternativeName([*names, x509.DirectoryName(x509.Name([]))]),
        x509.BasicConstraints(ca=True, path_length=None),
        x509.OCSPNoCheck(),
    )
    certificate = certified(authority, request, datetime.now(UTC) + timedelta(days=1))

    trusted(authority).build_client_verifier().verify(certificate, [])
    assert certificate.subject == request.subject
    assert list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == names
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert len(certificate.extensions) == 4


def test_a_certificate_does_not_outlive_its_authority() -> None:
    authority = CertificateAuthority()
    certificate = certified(authority, signing_request(), datetime.now(UTC) + timedelta(days=10_000))

    assert certificate.not_valid_after_utc == parse(authority.pair).not_valid_after_utc
