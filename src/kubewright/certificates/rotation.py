"""Which certificates there are, and which there should be next.

A set has the authorities that clients trust, newest first, the key of the newest, and the serving certificate. The
order of a rotation, of which each step is a set of its own and can be the last before a crash:

    [A], served by A  →  [B, A], served by A  →  [B, A], served by B  →  [B], served by B
                      A grows old           all trust B           no certificate of A can be valid any more

Nothing but the set, the time and whether all trust the newest authority decides, so that any replica may take the next
step. The key of an authority is forgotten as soon as there is a newer one.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from cryptography import x509
from msgspec import Struct

from kubewright.api.kinds import ObjectKey
from kubewright.certificates.issuing import CLOCK_SKEW, UNREADABLE, Authority, KeyPair, has_issued, private_key

AUTHORITIES, AUTHORITY_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""The entries of the Secret; all but the second are as cert-manager has them."""


class Lifetimes(Struct, frozen=True):
    """How long certificates are valid. After two thirds of that they are replaced."""

    authority: timedelta = timedelta(days=365)
    serving: timedelta = timedelta(days=90)
    propagation: timedelta = timedelta(minutes=1)
    """For how long every registration has had a new authority before a certificate of it is served: API servers act on
    what they have read of a registration, which is a moment later than it was written."""


class DamagedCertificates(ValueError):
    """The content of a Secret is no set of certificates; the message has nothing of it."""


class CertificateSet:
    """Authorities, newest first, the key of the newest, and a serving certificate, if there is a usable one."""

    def __init__(self, authorities: Sequence[str], authority_key: str, serving: KeyPair | None) -> None:
        """ValueError when the key is not that of the first authority."""
        self.authorities = tuple(authorities)
        self.authority = Authority(KeyPair(authorities[0], authority_key))
        self.serving = serving

    @classmethod
    def of_secret(cls, data: Mapping[str, str]) -> CertificateSet:
        """The set that a Secret has. Raises `DamagedCertificates`; a damaged serving certificate is left out."""
        authorities, authority_key = _decoded(data, AUTHORITIES), _decoded(data, AUTHORITY_KEY)
        try:
            parsed = x509.load_pem_x509_certificates(authorities.encode())
            pems = [_pem(each) for each in parsed if has_issued(each, each)]
        except UNREADABLE:
            raise DamagedCertificates(f"the certificates in {AUTHORITIES} cannot be read") from None
        if len(pems) < len(parsed):
            raise DamagedCertificates(f"a certificate in {AUTHORITIES} is no authority that has signed itself")
        try:
            found = cls(pems, authority_key, None)
        except ValueError as error:
            raise DamagedCertificates(f"{AUTHORITIES} and {AUTHORITY_KEY}: {error}") from None
        try:
            found.serving = KeyPair(_decoded(data, CERTIFICATE), _decoded(data, KEY))
            private_key(found.serving)
        except ValueError:
            found.serving = None
        return found

    def to_secret(self) -> dict[str, str]:
        """The data of a Secret."""
        serving = self.serving or KeyPair("", "")
        content = {
            AUTHORITIES: "".join(self.authorities),
            AUTHORITY_KEY: self.authority.pair.key,
            CERTIFICATE: serving.certificate,
            KEY: serving.key,
        }
        return {name: b64encode(text.encode()).decode() for name, text in content.items()}

    @property
    def bundle(self) -> str:
        """What a `caBundle` has."""
        return b64encode("".join(self.authorities).encode()).decode()

    @cached_property
    def parsed_authorities(self) -> list[x509.Certificate]:
        """The certificates of the authorities, newest first."""
        return [x509.load_pem_x509_certificate(each.encode()) for each in self.authorities]

    @property
    def is_served_by_older(self) -> bool:
        """Whether the serving certificate is one of an authority that is not the newest."""
        serving = self.parsed_serving
        return serving is not None and any(has_issued(each, serving) for each in self.parsed_authorities[1:])

    @property
    def parsed_serving(self) -> x509.Certificate | None:
        """The serving certificate."""
        if self.serving is None:
            return None
        return x509.load_pem_x509_certificate(self.serving.certificate.encode())

    def __repr__(self) -> str:
        return f"<CertificateSet of {len(self.authorities)} authorities>"


class RotationStep(NamedTuple):
    """The next set, and the reason for it."""

    result: CertificateSet
    reason: str


class Rotation:
    """Decides on the certificates of a Service."""

    def __init__(self, service: ObjectKey, lifetimes: Lifetimes | None = None) -> None:
        self.lifetimes = lifetimes or Lifetimes()
        self._name = f"{service.name}.{service.namespace}.svc"
        # The API server asks for the third. In-cluster clients may use any of them.
        self.hosts = (
            service.name,
            f"{service.name}.{service.namespace}",
            self._name,
            f"{self._name}.cluster.local",
        )

    def next(self, held: CertificateSet | None, now: datetime, *, is_trusted: bool) -> RotationStep | None:
        """The step that is due; None when there is none.

        `is_trusted`: every client has had the time to see that it is to trust the newest authority.
        """
        if held is None:
            authority = self._new_authority(now)
            made = CertificateSet([authority.pair.certificate], authority.pair.key, self._signed_by(authority, now))
            return RotationStep(made, "there is no usable authority")
        authority, authorities, serving = held.authority, self._kept(held, now), held.serving
        reasons = []
        if is_new := _is_due(authority.certificate, now):
            authority = self._new_authority(now)
            authorities = [authority.pair.certificate, *authorities]
            reasons.append("the authority is old")
        elif len(authorities) < len(held.authorities):
            reasons.append("no certificate of an older authority can be valid any more")
        if not self._is_servable(held, authorities, now):
            reasons.append("there is no usable serving certificate")
            serving = self._signed_by(authority, now)
        elif held.is_served_by_older:
            if is_trusted and not is_new:
                reasons.append("the new authority is trusted")
                serving = self._signed_by(authority, now)
        elif not is_new and (parsed := held.parsed_serving) is not None and _is_due(parsed, now):
            reasons.append("the serving certificate is old")
            serving = self._signed_by(authority, now)
        if not reasons:
            return None
        return RotationStep(CertificateSet(authorities, authority.pair.key, serving), "; ".join(reasons))

    def _new_authority(self, now: datetime) -> Authority:
        # Each with a name of its own: of two with one name, not every client tries both.
        name = f"{now:%Y-%m-%d %H:%M:%S} {self._name}"
        return Authority.create(name, begin=now - CLOCK_SKEW, end=now + self.lifetimes.authority)

    def _signed_by(self, authority: Authority, now: datetime) -> KeyPair:
        end = min(now + self.lifetimes.serving, authority.certificate.not_valid_after_utc)
        return authority.server(self._name, self.hosts, begin=now - CLOCK_SKEW, end=end)

    def _kept(self, held: CertificateSet, now: datetime) -> list[str]:
        """The authorities without those of which no valid certificate can be served by any replica any more.

        The last that one has issued is from before its successor was made.
        """
        parsed = held.parsed_authorities
        kept = []
        for index, (text, each) in enumerate(zip(held.authorities, parsed, strict=True)):
            is_over = index > 0 and now >= _made_at(parsed[index - 1]) + self.lifetimes.serving
            if _is_valid(each, now) and not is_over:
                kept.append(text)
        return kept

    def _is_servable(self, held: CertificateSet, authorities: list[str], now: datetime) -> bool:
        serving = held.parsed_serving
        if serving is None or not _is_valid(serving, now) or not set(self.hosts) <= _hosts_of(serving):
            return False
        return any(
            text in authorities and has_issued(each, serving)
            for text, each in zip(held.authorities, held.parsed_authorities, strict=True)
        )


def _made_at(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + CLOCK_SKEW


def _is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    made, end = _made_at(certificate), certificate.not_valid_after_utc
    return not _is_valid(certificate, now) or now >= made + (end - made) * 2 / 3


def _hosts_of(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *UNREADABLE):
        return set()
    return set(names.get_values_for_type(x509.DNSName))


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _decoded(data: Mapping[str, str], name: str) -> str:
    found = data.get(name)
    if not found:
        raise DamagedCertificates(f"it has no {name}")
    try:
        return b64decode(found, validate=True).decode("ascii")
    except (Base64Error, UnicodeDecodeError):
        raise DamagedCertificates(f"{name} is no PEM data") from None
