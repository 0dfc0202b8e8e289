"""Which certificates we trust and which one we show, as an `ssl.SSLContext`.

Everything is held as bytes: files are read when the configuration is loaded, so that a message can say which entry of
which file is bad. The check of the host name belongs to the connection, which passes `server_name` (or else the host)
as `server_hostname`.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from dataclasses import dataclass, field

from kubewright.client.errors import ConfigError

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[\x00-\x7f]+?-----END CERTIFICATE-----")
_PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_MISMATCHES = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A client certificate: the PEM chain, leaf first, and its unencrypted PEM key, which `repr` never shows.

    `origin` says where it came from, for messages: `of user "ci" in the kubeconfig "prod.yaml"`.
    """

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)
    origin: str = field(default="", compare=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make `context` show this certificate. What cannot be used is a `ConfigError` that names `origin`."""
        if not _CERTIFICATE.search(self.chain):
            raise self._unusable("no PEM certificate was found in it")
        if not _PRIVATE_KEY.search(self.key):
            raise self._unusable("no PEM private key was found for it")
        passphrase_wanted = False

        def passphrase() -> bytes:
            # Without this callback OpenSSL would ask on the terminal, and an operator would hang.
            nonlocal passphrase_wanted
            passphrase_wanted = True
            return b""

        try:
            # `ssl` reads certificates from files only. These are private (0600) and gone when the block ends.
            with tempfile.NamedTemporaryFile() as chain, tempfile.NamedTemporaryFile() as key:
                chain.write(self.chain)
                chain.flush()
                key.write(self.key)
                key.flush()
                context.load_cert_chain(chain.name, key.name, passphrase)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TLS:
    """How the server is recognised: by the authorities in `ca` (PEM), or the system's when there are none.

    `verify=False` accepts any server and so excludes `ca`. `server_name` replaces the host in the check of the name.
    `origin` says where this came from, for messages: `of cluster "prod" in the kubeconfig "prod.yaml"`.
    """

    ca: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    verify: bool = True
    origin: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.ca is not None and not self.verify:
            raise ConfigError(
                f"the TLS settings{_spaced(self.origin)} contradict each other: there is a certificate authority, and "
                "insecure-skip-tls-verify forbids using it; remove one of the two"
            )

    def context(self, certificate: Certificate | None) -> ssl.SSLContext:
        """A new context for HTTP/1.1 over TLS 1.2 or newer that shows `certificate` to a server that asks for one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # As Go: a name must be among the subject alternative names, the common name does not count.
        context.hostname_checks_common_name = False
        context.set_alpn_protocols(["http/1.1"])
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

    def _trust(self, context: ssl.SSLContext, ca: bytes) -> None:
        # Bundles carry comments in any encoding, and `cadata` takes ASCII only.
        certificates = _CERTIFICATE.findall(ca)
        if not certificates:
            raise self._unusable("no PEM certificate was found in it")
        try:
            context.load_verify_locations(cadata=b"\n".join(certificates).decode("ascii"))
        except ssl.SSLError as error:
            raise self._unusable(f"the PEM data is damaged ({error.reason or 'unreadable'})") from None

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(f"the certificate authority{_spaced(self.origin)} cannot be used: {reason}")


def _spaced(origin: str) -> str:
    return f" {origin}" if origin else ""
