"""The certificate of a server that speaks TLS: from files, from memory, or self-signed.

Files are read again when they change, and what is in memory may be replaced: each new connection gets the present one.
"""

from __future__ import annotations

import datetime
import logging
import socket
import ssl
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from kubewright.api.errors import KubernetesError
from kubewright.api.time import exact_now
from kubewright.client.config.tls import Certificate
from kubewright.client.errors import ConfigError
from kubewright.manager.metrics import Counter, Metrics

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""As a Secret of type kubernetes.io/tls has them."""

_LIFETIME = datetime.timedelta(days=365)

_log = logging.getLogger(__name__)


class ServingCertificateError(KubernetesError):
    """There is no certificate to serve with, or it cannot be used."""


class CertificateReads(Struct, frozen=True):
    """How often the files of a certificate were read, under the names of controller-runtime's certwatcher."""

    total: Counter
    errors: Counter

    @classmethod
    def declared(cls, metrics: Metrics) -> CertificateReads:
        """Those of a program."""
        return cls(
            metrics.counter("certwatcher_read_certificate_total", "Total number of certificate reads"),
            metrics.counter("certwatcher_read_certificate_errors_total", "Total number of certificate read errors"),
        )


def from_directory(
    directory: Path, client_ca: Path | None = None, reads: CertificateReads | None = None
) -> ssl.SSLContext:
    """Serve with `tls.crt` and `tls.key` of a directory, such as a mounted Secret.

    With `client_ca`, a file, only clients with a certificate of these authorities are served. Each new connection gets
    the present content of the files. While they cannot be used, the previous certificate stays.
    """
    return _Renewed(_Files(directory), client_ca, reads).context


class HeldCertificate:
    """A certificate in memory, which may be replaced at any time: new connections get the present one."""

    def __init__(self) -> None:
        self._held: Certificate | None = None

    def use(self, chain: str, key: str, origin: str) -> None:
        """Serve with it from now on."""
        self._held = Certificate(chain=chain.encode(), key=key.encode(), origin=origin)

    def context(self, client_ca: Path | None = None) -> ssl.SSLContext:
        """Serve with what is held; `client_ca` as in `from_directory`."""
        return _Renewed(self, client_ca, None).context

    def state(self) -> Hashable:
        """Different whenever there is another certificate."""
        return self._held

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have a context present the certificate."""
        if self._held is None:
            raise ServingCertificateError("there is no certificate to serve with yet")
        try:
            self._held.load_into(context)
        except ConfigError:
            raise ServingCertificateError(f"the certificate {self._held.origin} cannot be used") from None


def self_signed() -> ssl.SSLContext:
    """Serve with a certificate of our own, for localhost and the name of this host; it is made at each start.

    Clients cannot verify it. Needs the package `cryptography`.
    """
    try:
        from kubewright.certificates import issuing
    except ImportError:
        raise ServingCertificateError(
            "serving with TLS needs a certificate: name the directory that has one (--metrics-cert-dir), or install "
            "the package cryptography, which makes one: pip install cryptography"
        ) from None
    host, now = socket.gethostname(), exact_now()
    hosts = ["localhost", host, "127.0.0.1", "::1"]
    pair = issuing.self_signed(host, hosts, begin=now - issuing.CLOCK_SKEW, end=now + _LIFETIME)
    context = _new_context()
    Certificate(chain=pair.certificate.encode(), key=pair.key.encode(), origin="made here").load_into(context)
    return context


def from_authority(host: str, client_ca: Path | None = None) -> tuple[ssl.SSLContext, str]:
    """Serve at `host` with a certificate of an authority that is made now; its certificate (PEM) is the second.

    `client_ca` is as in `from_directory`. Needs the package `cryptography`.
    """
    try:
        from kubewright.certificates import issuing
    except ImportError:
        raise ServingCertificateError(
            "serving webhooks at a URL needs the package cryptography, which makes the certificate: "
            "pip install 'kubewright[webhooks]'"
        ) from None
    now = exact_now()
    begin, end = now - issuing.CLOCK_SKEW, now + _LIFETIME
    authority = issuing.Authority.create("kubewright webhooks", begin=begin, end=end)
    pair, held = authority.server(host[:64], [host], begin=begin, end=end), HeldCertificate()
    held.use(pair.certificate, pair.key, "made here")
    return held.context(client_ca), authority.pair.certificate


class _Source(Protocol):
    """Where a certificate comes from."""

    def state(self) -> Hashable:
        """Different whenever there is another certificate."""

    def load_into(self, context: ssl.SSLContext) -> None:
        """Have a context present the certificate. Raises `ServingCertificateError`."""


class _ListeningContext(ssl.SSLContext):
    """Has each new connection begin with the context that `present` returns then.

    Sessions belong to a context. OpenSSL does not check certificates again when one is resumed: with the authorities
    that a client was checked by, its session has to go.
    """

    present: Callable[[], ssl.SSLContext]

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See `ssl.SSLContext.wrap_bio`."""
        return self.present().wrap_bio(incoming, outgoing, server_side, server_hostname, session)


class _Renewed:
    """A context to listen with: each new connection gets one that is made of the present certificate."""

    def __init__(self, source: _Source, client_ca: Path | None, reads: CertificateReads | None) -> None:
        self._source = source
        self._client_ca = client_ca
        self._reads = reads
        self._state = self._present_state()
        self._current = self._load()
        # No task has to watch anything.
        self.context = _ListeningContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.present = self._present

    def _present(self) -> ssl.SSLContext:
        state = self._present_state()
        if state != self._state:
            self._state = state  # what cannot be used is not read again until it changes
            try:
                self._current = self._load()
                _log.debug("the certificate was read again")
            except ServingCertificateError as error:
                _log.warning("the previous certificate stays in use: %s", error)
        return self._current

    def _present_state(self) -> Hashable:
        return self._source.state(), _identity(self._client_ca) if self._client_ca is not None else None

    def _load(self) -> ssl.SSLContext:
        if self._reads is not None:
            self._reads.total.add()
        context = _new_context()
        try:
            self._source.load_into(context)
            if self._client_ca is not None:
                _require_clients_of(self._client_ca, context)
        except ServingCertificateError:
            if self._reads is not None:
                self._reads.errors.add()
            raise
        return context


class _Files:
    """The files of a certificate."""

    def __init__(self, directory: Path) -> None:
        self._certificate, self._key = directory / CERTIFICATE, directory / KEY

    def state(self) -> Hashable:
        """See `_Source`."""
        return _identity(self._certificate), _identity(self._key)

    def load_into(self, context: ssl.SSLContext) -> None:
        """See `_Source`."""
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self._certificate, self._key, lambda: b"")
        except ssl.SSLError as error:
            raise self._unusable(error.reason or "it is damaged") from None
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None

    def _unusable(self, reason: str) -> ServingCertificateError:
        return ServingCertificateError(
            f'cannot serve with the certificate "{self._certificate}" and the key "{self._key.name}": {reason}'
        )


def _identity(file: Path) -> tuple[int, int, int] | None:
    """Different whenever its content is; None while it cannot be read."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _require_clients_of(authorities: Path, context: ssl.SSLContext) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(authorities)
    except OSError as error:  # an ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise ServingCertificateError(
            f'cannot check clients with the authorities in "{authorities}": {reason}'
        ) from None


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
