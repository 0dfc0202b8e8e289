"""The certificate of a server that speaks TLS: from files, which are read again when they change, or self-signed."""

from __future__ import annotations

import datetime
import logging
import socket
import ssl
from pathlib import Path

from kubewright.api.errors import KubernetesError
from kubewright.api.time import exact_now
from kubewright.client.config.tls import Certificate

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""As a Secret of type kubernetes.io/tls has them."""

_LIFETIME = datetime.timedelta(days=365)

_log = logging.getLogger(__name__)


class ServingCertificateError(KubernetesError):
    """There is no certificate to serve with, or it cannot be used."""


def from_directory(directory: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """Serve with `tls.crt` and `tls.key` of a directory, such as a mounted Secret.

    With `client_ca`, a file, only clients with a certificate of these authorities are served. Each new connection gets
    the present content of the files. While they cannot be used, the previous certificate stays.
    """
    files = _Files(directory, client_ca)
    context = files.context
    # Called at every handshake, whether or not the client names a server: no task has to watch the files.
    context.sni_callback = files.renew
    return context


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


class _Files:
    """The files of a certificate, and the context that was made of them."""

    def __init__(self, directory: Path, client_ca: Path | None) -> None:
        self._certificate, self._key = directory / CERTIFICATE, directory / KEY
        self._client_ca = client_ca
        self._logged = ""
        self._state = self._stat()
        self.context = self._load()

    def renew(self, connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Let a connection that is being made use the present content of the files."""
        try:
            state = self._stat()
            if state != self._state:
                self.context, self._state, self._logged = self._load(), state, ""
                _log.debug("the certificate %s was read again", self._certificate)
        except ServingCertificateError as error:
            if str(error) != self._logged:
                self._logged = str(error)
                _log.warning("the previous certificate stays in use: %s", error)
        connection.context = self.context

    def _stat(self) -> tuple[tuple[int, int, int], ...]:
        try:
            found = [file.stat() for file in (self._certificate, self._key)]
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None
        if self._client_ca is not None:
            try:
                found.append(self._client_ca.stat())
            except OSError as error:
                raise self._unusable_authorities(error.strerror or str(error)) from None
        return tuple([(each.st_ino, each.st_mtime_ns, each.st_size) for each in found])

    def _load(self) -> ssl.SSLContext:
        context = _new_context()
        try:
            # Without a password OpenSSL would ask for one on the terminal.
            context.load_cert_chain(self._certificate, self._key, lambda: b"")
        except ssl.SSLError as error:
            raise self._unusable(error.reason or "it is damaged") from None
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from None
        if self._client_ca is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(self._client_ca)
            except OSError as error:  # an ssl.SSLError is one
                raise self._unusable_authorities(getattr(error, "reason", None) or str(error)) from None
        return context

    def _unusable_authorities(self, reason: str) -> ServingCertificateError:
        return ServingCertificateError(f'cannot check clients with the authorities in "{self._client_ca}": {reason}')

    def _unusable(self, reason: str) -> ServingCertificateError:
        return ServingCertificateError(
            f'cannot serve with the certificate "{self._certificate}" and the key "{self._key.name}": {reason}'
        )


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
