"""The identity of the program, request by request.

A `Credential` is what one request sends: headers, and perhaps a client certificate. `Credentials` is where the current
one comes from: nowhere (`ANONYMOUS`), the configuration (`StaticCredentials`), files that rotate (`FileCredentials`) or
a plugin (`exec_plugin.ExecCredentials`). Nothing here sends anything, and no `repr` or message shows a secret.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import ClassVar, Final, Protocol

from msgspec import field

from kubewright.client.config.tls import Certificate
from kubewright.client.errors import ConfigError, CredentialError
from kubewright.client.redacted import Redacted

_log = logging.getLogger(__name__)


class Credential(Redacted, frozen=True, kw_only=True):
    """What to send with one request. Two are equal when they send the same; `repr` shows neither token nor key."""

    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: Certificate | None = None
    __shown__: ClassVar = ("certificate",)


class Credentials(Protocol):
    """Where the current credential comes from. One object may serve any number of connections."""

    async def current(self) -> Credential:
        """What to send now; fetches or refreshes when due. Concurrent callers share one fetch.

        Raises `CredentialError` when there is nothing to send.
        """

    async def rejected(self, credential: Credential) -> bool:
        """The server answered 401 to `credential`. True when another one is available now: one retry makes sense.

        Raises `CredentialError` when obtaining another one fails.
        """


class StaticCredentials:
    """Always the same credential; a rejection is final."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    @property
    def latest(self) -> Credential:
        """The credential."""
        return self._credential

    async def current(self) -> Credential:
        """The credential."""
        return self._credential

    async def rejected(self, credential: Credential) -> bool:
        """False, unless `credential` is another one than ours."""
        return credential != self._credential


ANONYMOUS: Final[Credentials] = StaticCredentials(Credential())


class FileCredentials:
    """A credential read from files by `read`, again every `period` seconds and at once when the server rejects it.

    client-go uses the same minute: the kubelet renews a token at 80 % of its life, ten minutes at the shortest. What
    was read last stays in use while the files cannot be read; `fallback` is used as long as they never could. Without
    it the constructor raises what `read` raises.
    """

    def __init__(
        self,
        read: Callable[[], Credential],
        *,
        fallback: Credential | None = None,
        period: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._period = period
        self._clock = clock
        self._due = clock() + period
        if fallback is None:
            self._credential = read()
        else:
            self._credential = fallback
            self._read_again()

    @property
    def latest(self) -> Credential:
        """What was read last."""
        return self._credential

    async def current(self) -> Credential:
        """What the files contained at most `period` seconds ago."""
        if self._clock() >= self._due:
            self._read_again()
        return self._credential

    async def rejected(self, credential: Credential) -> bool:
        """True when the files hold another credential by now."""
        if credential == self._credential:
            self._read_again()
        return credential != self._credential

    def _read_again(self) -> None:
        # Not in a thread: these are small local files, read once a minute, and so concurrent callers cannot overlap.
        self._due = self._clock() + self._period
        try:
            self._credential = self._read()
        except ConfigError as error:
            _log.warning("the previous credential stays in use: %s", error)


def bearer(token: str, *, origin: str = "", certificate: Certificate | None = None) -> Credential:
    """A credential that sends `token`. One that cannot be a header is a `CredentialError` that names `origin`."""
    if not token.isascii() or not token.isprintable():
        raise CredentialError(
            f"the token{f' {origin}' if origin else ''} cannot be sent: it holds characters other than printable ASCII"
        )
    return Credential(headers={"Authorization": f"Bearer {token}"}, certificate=certificate)


def basic(username: str, password: str, *, certificate: Certificate | None = None) -> Credential:
    """A credential that sends a user name and a password."""
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return Credential(headers={"Authorization": f"Basic {encoded}"}, certificate=certificate)


def read_token(path: Path, *, origin: str) -> str:
    """The token in a file, without the white space around it. `CredentialError` when there is none."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise CredentialError(f'the token {origin} cannot be read from "{path}": {error.strerror}') from None
    except UnicodeDecodeError:
        raise CredentialError(f'the token {origin} cannot be read from "{path}": it is not ASCII text') from None
    if not token:
        raise CredentialError(f'the token {origin} cannot be read from "{path}": the file is empty')
    return token
