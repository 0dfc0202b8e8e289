"""The certificates of one throw-away control plane.

A fresh authority per control plane, no renewal: nothing here is meant to outlive a test run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright.certificates.issuing import CLOCK_SKEW, MAX_NAME_LENGTH, Authority, KeyPair, key_usage, new_key

__all__ = ["CertificateAuthority", "KeyPair", "signing_key"]

_LIFETIME = timedelta(days=365)
# What RFC 5280 has for certificates without an end.
_NEVER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_EXTENDED_USAGES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
_ALTERNATIVES = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)


class CertificateAuthority:
    """Signs server certificates that are valid for one year, client certificates, and the requests of others.

    A client certificate has no end: whether it has expired would be decided by the clock of the API server, which a
    test may set to any time.
    """

    def __init__(self, name: str = "kubewright") -> None:
        begin = _begin()
        self._authority = Authority.create(name, begin=begin, end=begin + CLOCK_SKEW + _LIFETIME)
        self.pair = self._authority.pair

    @property
    def certificate(self) -> str:
        """The authority's own certificate, PEM: what clients must trust."""
        return self.pair.certificate

    def server(self, name: str, *, hosts: Iterable[str]) -> KeyPair:
        """A certificate for a TLS server that is reached by any of `hosts` (DNS names and IP addresses)."""
        begin = _begin()
        return self._authority.server(name, hosts, begin=begin, end=begin + CLOCK_SKEW + _LIFETIME)

    def client(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A certificate that Kubernetes reads as `user` in `groups`.

        Raises ValueError when a name is empty or longer than a certificate can hold (64 characters).
        """
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, _checked("group", group)) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, _checked("user", user)))
        return self._authority.client(x509.Name(attributes), begin=_begin(), end=_NEVER)

    def certify(
        self, request: x509.CertificateSigningRequest, usages: Collection[str], *, begin: datetime, end: datetime
    ) -> str:
        """A certificate (PEM) of the subject, the key and the alternative names in a request, for those usages.

        Usages are Kubernetes' own: "digital signature", "key encipherment", "client auth", "server auth". Of other
        extensions in the request nothing is taken over. The certificate ends with the authority's own at the latest;
        raises ValueError when that has ended already.
        """
        extensions: list[tuple[x509.ExtensionType, bool]] = []
        signs, enciphers = "digital signature" in usages, "key encipherment" in usages
        if signs or enciphers:
            extensions.append((key_usage(signs=signs, enciphers=enciphers), True))
        if extended := [usage for name, usage in _EXTENDED_USAGES.items() if name in usages]:
            extensions.append((x509.ExtendedKeyUsage(extended), False))
        if alternatives := _alternatives(request):
            is_only_name = not list(request.subject)
            extensions.append((x509.SubjectAlternativeName(alternatives), is_only_name))
        end = min(end, self._authority.certificate.not_valid_after_utc)
        return self._authority.issue(request.subject, request.public_key(), extensions, begin=begin, end=end)


def signing_key() -> str:
    """A fresh private key, PEM, with which an API server signs and checks service-account tokens."""
    return new_key()


def _begin() -> datetime:
    # The machine's clock and not a test's: clients check certificates by it.
    return datetime.now(UTC) - CLOCK_SKEW


def _alternatives(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The alternative names of a subject, as far as clients check them."""
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for name in names if isinstance(name, _ALTERNATIVES)]


def _checked(what: str, name: str) -> str:
    if not 0 < len(name) <= MAX_NAME_LENGTH:
        raise ValueError(
            f"the {what} name {name!r} has {len(name)} characters, a certificate holds 1 to {MAX_NAME_LENGTH}"
        )
    return name
