"""The trusted certificate authorities and the client certificate, as an `ssl.SSLContext`.

Everything is held as bytes: files are read when the configuration is loaded, so that a message can say which entry of
which file is bad. A file of authorities is read again for each new connection (`TLS.reread`). The check of the host
name belongs to the connection, which passes `server_name` (or else the host) as `server_hostname`.
"""

from __future__ import annotations

import os
import re
import ssl
import sys
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, ClassVar

from msgspec.structs import replace

from kubewright.api.time import unix_now
from kubewright.client.errors import ConfigError
from kubewright.client.redacted import Redacted

# Compiled when they are first used: that takes longer than importing this module.
_CERTIFICATE = rb"-----BEGIN CERTIFICATE-----[\x00-\x7f]+?-----END CERTIFICATE-----"
_PRIVATE_KEY = rb"-----BEGIN [A-Z ]*PRIVATE KEY-----"
_MAX_SESSION_AGE = 300.0  # seconds
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DESCRIPTORS = Path("/proc/self/fd")
_MISMATCHES = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"})


class Certificate(Redacted, frozen=True, kw_only=True):
    """A client certificate: the PEM chain, leaf first, and its unencrypted PEM key, which `repr` never shows.

    `origin` says where it came from, for messages: `of user "ci" in the kubeconfig "prod.yaml"`. It makes no difference
    to whether two are equal.
    """

    chain: bytes
    key: bytes
    origin: str = ""
    __shown__: ClassVar = ("origin",)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and (self.chain, self.key) == (other.chain, other.key)

    def __hash__(self) -> int:
        return hash((self.chain, self.key))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make `context` present this certificate. A `ConfigError` that names `origin` if it cannot be used."""
        if not re.search(_CERTIFICATE, self.chain):
            raise self._unusable("no PEM certificate was found in it")
        if not re.search(_PRIVATE_KEY, self.key):
            raise self._unusable("no PEM private key was found for it")
        passphrase_wanted = False

        def passphrase() -> bytes:
            # Without this callback OpenSSL would ask on the terminal, and an operator would hang.
            nonlocal passphrase_wanted
            passphrase_wanted = True
            return b""

        try:
            # `ssl` reads certificates from files only.
            with _private_file(self.chain) as chain, _private_file(self.key) as key:
                context.load_cert_chain(chain, key, passphrase)
        except ssl.SSLError as error:
            if passphrase_wanted:
                raise self._unusable("its key is encrypted; decrypt it with: openssl pkey -in KEY -out KEY") from None
            if error.reason in _MISMATCHES:
                raise self._unusable("its key belongs to another certificate") from None
            raise self._unusable(f"the PEM data is damaged ({error.reason or 'unreadable'})") from None
        except OSError as error:
            raise self._unusable(
                f"a temporary file could not be written ({error.strerror}); set TMPDIR to a writable directory"
            ) from None

    def check(self) -> None:
        """Raise the `ConfigError` that using this certificate would raise, if any."""
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(f"the client certificate{_spaced(self.origin)} cannot be used: {reason}")


class TLS(Redacted, frozen=True, kw_only=True):
    """How the server is verified: by the authorities in `ca` (PEM), or the system's when there are none.

    An authority need not be a root: as in Go, one that another authority has signed is trusted by itself. `ca_file` is
    where `ca` was read from, if that was a file; see `reread`. `verify=False` accepts any server and so excludes `ca`.
    `server_name` replaces the host in the check of the name. `origin` says where this came from, for messages:
    `of cluster "prod" in the kubeconfig "prod.yaml"`. It makes no difference to whether two are equal.
    """

    ca: bytes | None = None
    ca_file: Path | None = None
    server_name: str | None = None
    verify: bool = True
    origin: str = ""
    __shown__: ClassVar = ("server_name", "verify", "origin")

    def __post_init__(self) -> None:
        if self.ca is not None and not self.verify:
            raise ConfigError(
                f"the TLS settings{_spaced(self.origin)} contradict each other: there is a certificate authority, and "
                "insecure-skip-tls-verify forbids using it; remove one of the two"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TLS) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return hash(self._settings())

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """A new context for HTTP/1.1 over TLS 1.2 or newer that presents `certificate` if the server asks."""
        context = _ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As Go: a name must be among the subject alternative names, the common name does not count.
        context.hostname_checks_common_name = False
        context.set_alpn_protocols(["http/1.1"])
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            self._trust(context, self.ca)
        if certificate is not None:
            certificate.load_into(context)
        return context

    def reread(self) -> TLS:
        """The same with the authorities that `ca_file` holds now; `self` when they are those in `ca`.

        `ConfigError` when they cannot be read or used.
        """
        if self.ca_file is None:
            return self
        try:
            ca = self.ca_file.read_bytes()
        except OSError as error:
            raise self._unusable(f'cannot read "{self.ca_file}": {error.strerror}') from None
        if ca == self.ca:
            return self
        changed = replace(self, ca=ca)
        changed.context(None)
        return changed

    def _settings(self) -> tuple[bytes | None, Path | None, str | None, bool]:
        return self.ca, self.ca_file, self.server_name, self.verify

    def _trust(self, context: ssl.SSLContext, ca: bytes) -> None:
        # Bundles carry comments in any encoding, and `cadata` takes ASCII only.
        certificates = re.findall(_CERTIFICATE, ca)
        if not certificates:
            raise self._unusable("no PEM certificate was found in it")
        try:
            context.load_verify_locations(cadata=b"\n".join(certificates).decode("ascii"))
        except ssl.SSLError as error:
            raise self._unusable(f"the PEM data is damaged ({error.reason or 'unreadable'})") from None

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(f"the certificate authority{_spaced(self.origin)} cannot be used: {reason}")


class _ResumingContext(ssl.SSLContext):
    """Offers the session of an earlier connection to the following ones, whose handshakes take half the CPU then.

    By the session the server proves to be the one whose certificate was checked, and knows the certificate that was
    shown to it. Both belong to the context: another trust or another certificate is another context. A server that
    does not accept the session makes a full handshake, and its new session is the one to offer.

    OpenSSL checks no certificates when it resumes a session. So, as in Go, none is offered once the certificate of the
    server or one of an authority has expired. Python does not show the chain in between, so that no session is offered
    for longer than five minutes, and none at all where Python cannot read a certificate that OpenSSL has verified.
    """

    _latest: weakref.ref[ssl.SSLObject] | None = None
    _begun = 0.0  # when the latest connection was
    _session: ssl.SSLSession | None = None
    _usable_until = 0.0
    _server: str | bytes | None = None
    _authorities = 0
    _expiries: tuple[
        float, ...
    ] = ()  # of that many authorities; those of a system take longer than a handshake to read

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See `ssl.SSLContext.wrap_bio`."""
        if isinstance(server_hostname, str) and server_hostname.isascii():
            # Of a text, ssl imports all that international names need before it finds that this is none.
            server_hostname = server_hostname.encode()
        if server_hostname != self._server:
            self._server, self._latest, self._session = server_hostname, None, None
        latest = self._latest() if self._latest is not None else None
        # Looked for only now: in TLS 1.3 a session comes some time after the handshake.
        if latest is not None and latest.version() is not None and not latest.session_reused:
            found = latest.session
            if found is not None and found.has_ticket:
                self._session, self._usable_until = found, self._verified_until(latest)
        present = unix_now()
        if present >= self._usable_until:
            self._session = None
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session or self._session)
        self._latest, self._begun = weakref.ref(made), present
        return made

    def _verified_until(self, latest: ssl.SSLObject) -> float:
        """Until when what the handshake of the latest connection has verified holds, in seconds since 1970."""
        until = self._begun + _MAX_SESSION_AGE
        try:
            if server := latest.getpeercert():  # empty when it was not verified
                until = min(until, _expiry_of(server))
            count = self.cert_store_stats()["x509"]
            if count != self._authorities:  # a folder of them is read as they are needed
                self._expiries = tuple(_expiry_of(authority) for authority in self.get_ca_certs())
                self._authorities = count
        except (ValueError, ssl.SSLError):  # a name that is not UTF-8, for instance
            return self._begun
        # One that had expired by then was not the one.
        return min((expiry for expiry in self._expiries if self._begun < expiry < until), default=until)


def _expiry_of(certificate: Mapping[str, object]) -> float:
    """In seconds since 1970. What ssl has for it imports strptime, which takes more CPU than five handshakes."""
    month, day, clock, year, _ = str(certificate["notAfter"]).split()  # "Jan  5 09:34:43 2018 GMT", in any locale
    return datetime.fromisoformat(f"{year}-{_MONTHS.index(month) + 1:02}-{day:0>2}T{clock}+00:00").timestamp()


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """The path of a file that only we can read and that is removed when the block ends; on a disk only if needed."""
    memory = _memory_file()
    if memory is not None:
        with memory:
            memory.write(content)
            memory.flush()
            yield f"{_DESCRIPTORS}/{memory.fileno()}"
        return
    # Imported where used: it brings the modules of all archive formats with it.
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name


def _memory_file() -> BinaryIO | None:
    if sys.platform != "linux" or not _DESCRIPTORS.is_dir():
        return None
    try:
        return open(os.memfd_create("kubewright"), "wb")  # noqa: PTH123  # closed by who gets it; it has no path
    except OSError:
        return None  # forbidden here


def _spaced(origin: str) -> str:
    return f" {origin}" if origin else ""
