"""Credentials from an exec plugin (`client.authentication.k8s.io`): a command that prints a token or a certificate.

`ExecPlugin` is the command and how to run it once; `ExecCredentials` decides when. What a plugin prints on its standard
output is secret and never part of a message; the end of its standard error is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, ClassVar, Final, Literal

import msgspec

from kubewright.api.time import unix_now
from kubewright.client.config.credentials import Credential, bearer
from kubewright.client.config.tls import Certificate
from kubewright.client.errors import ConfigError, CredentialError
from kubewright.client.redacted import Redacted

_log = logging.getLogger(__name__)

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
InteractiveMode = Literal["Never", "IfAvailable", "Always"]

_STDOUT_LIMIT = 1024 * 1024
# The end of it counts, as programs give the reason last.
_STDERR_LIMIT = 1000
# A user at a terminal may have to find a password or a second factor; a program has not.
_TIME_LIMIT = 60.0
_INTERACTIVE_TIME_LIMIT = 300.0


def stdin_is_terminal() -> bool:
    """True when a user may be prompted."""
    return os.isatty(0)


class ExecPlugin(Redacted, frozen=True, kw_only=True):
    """A command that obtains a credential, as a kubeconfig describes it.

    `cluster` is handed to the command when the kubeconfig says `provideClusterInfo`. `origin` says where this came
    from, for messages: `of user "ci" in the kubeconfig "prod.yaml"`. `time_limit` is 60 s, or 300 s with a terminal.
    """

    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    api_version: str = API_VERSIONS[0]
    interactive_mode: InteractiveMode = "Never"
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None
    origin: str = ""
    time_limit: float | None = None
    __shown__: ClassVar = ("command", "api_version", "interactive_mode", "install_hint", "origin", "time_limit")

    async def run(self, *, terminal: Callable[[], bool] = stdin_is_terminal) -> tuple[Credential, float | None]:
        """Run the command once: what to send, and until when (seconds since 1970, None for ever).

        Every failure is a `CredentialError`. After the time limit and after a cancellation the command is dead, and so
        is what it started. One that may prompt shares our terminal instead: what it prints there is not part of a
        message, and what it started is not killed, as it is in our own process group.
        """
        interactive = self._is_interactive(terminal)
        limit = self.time_limit or (_INTERACTIVE_TIME_LIMIT if interactive else _TIME_LIMIT)
        process = self._start(interactive)
        stdout, stderr = _Pipe(process.stdout, _STDOUT_LIMIT), _Pipe(process.stderr, _STDERR_LIMIT)
        ended = asyncio.ensure_future(asyncio.to_thread(process.wait))
        try:
            async with asyncio.timeout(limit):
                await stdout.settled.wait()
                if not stdout.overflowed:
                    await asyncio.shield(ended)
                    await stderr.settle()
        except TimeoutError:
            raise self._failed(f"did not finish within {limit:g} s and was killed{_said(stderr)}") from None
        finally:
            if not (ended.done() and stdout.exhausted):
                _kill(process, group=not interactive)
            stdout.close()
            stderr.close()
            await ended
        if stdout.overflowed:
            raise self._failed(f"printed more than {_STDOUT_LIMIT} bytes and was killed{_said(stderr)}")
        if process.returncode:
            code = process.returncode
            raise self._failed(f"failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}{_said(stderr)}")
        return self._decode(bytes(stdout.data), _said(stderr))

    def _start(self, interactive: bool) -> subprocess.Popen[bytes]:
        # Not the loop's own subprocesses: uvloop's leak pipe ends into the child, and have a shell run what is no
        # program. Starting takes about a millisecond; all waiting is done beside the loop.
        try:
            return subprocess.Popen(  # noqa: S603 - running the command is the purpose
                [self._find(), *self.arguments],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                env={**os.environ, **self.environment, "KUBERNETES_EXEC_INFO": self._request(interactive)},
                # A session of its own makes a process group that can be killed as a whole. A command that talks to the
                # terminal must stay in ours, or it would lose the terminal.
                start_new_session=not interactive,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "an argument or variable holds a null character"
            raise self._failed(f"cannot be started: {reason}") from None

    def _is_interactive(self, terminal: Callable[[], bool]) -> bool:
        if self.interactive_mode == "Never":
            return False
        available = terminal()
        if self.interactive_mode == "Always" and not available:
            raise self._failed("needs to prompt (interactiveMode: Always), and standard input is not a terminal")
        return available

    def _find(self) -> str:
        import shutil

        executable = shutil.which(self.command)
        if executable is not None:
            return executable
        if os.sep in self.command and Path(self.command).is_file():
            raise self._failed("is not executable; set its permission with: chmod +x")
        where = "there is no such file" if os.sep in self.command else "it is in no directory of PATH"
        hint = _readable(self.install_hint)
        raise self._failed(f"was not found: {where}" + (f"; to install it: {hint}" if hint else ""))

    def _request(self, interactive: bool) -> str:
        spec: dict[str, object] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": self.api_version, "spec": spec}).decode()

    def _decode(self, stdout: bytes, stderr: str) -> tuple[Credential, float | None]:
        if not stdout.strip():
            raise self._failed(f"printed nothing; expected an ExecCredential as JSON{stderr}")
        try:
            answer = msgspec.json.decode(stdout, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # These messages name the path and the types, and never quote what was read.
            raise self._failed(f"printed something other than an ExecCredential as JSON: {error}{stderr}") from None
        if answer.kind != "ExecCredential":
            raise self._failed('printed an object of another kind; expected "ExecCredential"')
        if answer.api_version != self.api_version:
            found = f'"{answer.api_version}"' if answer.api_version in API_VERSIONS else "another one"
            raise self._failed(f'was configured for apiVersion "{self.api_version}" and answered in {found}')
        status = answer.status
        if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
            raise self._failed("printed an ExecCredential with neither a token nor a certificate in its status")
        expires = None if status.expiration_timestamp is None else status.expiration_timestamp.timestamp()
        return self._credential(status), expires

    def _credential(self, status: _AnswerStatus) -> Credential:
        certificate = None
        if status.client_certificate_data or status.client_key_data:
            if not (status.client_certificate_data and status.client_key_data):
                raise self._failed("printed only one of clientCertificateData and clientKeyData; they go together")
            certificate = Certificate(
                chain=status.client_certificate_data.encode(),
                key=status.client_key_data.encode(),
                origin=f"from {self._name()}",
            )
            try:
                certificate.check()
            except ConfigError as error:
                raise CredentialError(str(error)) from None
        if status.token:
            return bearer(status.token, origin=f"from {self._name()}", certificate=certificate)
        return Credential(certificate=certificate)

    def _name(self) -> str:
        return f'the credential plugin "{self.command}"' + (f" {self.origin}" if self.origin else "")

    def _failed(self, what: str) -> CredentialError:
        return CredentialError(f"{self._name()} {what}")


class ExecCredentials:
    """What an `ExecPlugin` gave, until it is about to expire or the server rejects it; then the plugin runs again.

    Guarantee: the plugin never runs twice at once, however many callers wait, and it is killed when no caller waits any
    more. It runs again a tenth of the remaining life before the end, at most a minute. While that fails, what is still
    valid is used, with a new attempt after ten seconds.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        clock: Callable[[], float] = unix_now,
        terminal: Callable[[], bool] = stdin_is_terminal,
    ) -> None:
        self._plugin = plugin
        self._clock = clock
        self._terminal = terminal
        self._credential: Credential | None = None
        self._due = 0.0
        self._expires = 0.0
        self._fetching: asyncio.Task[Credential] | None = None
        self._waiting = 0

    async def current(self) -> Credential:
        """What the plugin gave last, or gives now when that is due."""
        if self._credential is not None and self._clock() < self._due:
            return self._credential
        try:
            return await self._fetch()
        except CredentialError as error:
            now = self._clock()
            if self._credential is None or now >= self._expires:
                raise
            self._due = min(self._expires, now + 10.0)
            _log.warning("the previous credential stays in use until it expires: %s", error)
            return self._credential

    async def rejected(self, credential: Credential) -> bool:
        """True when the plugin has given, or now gives, something else."""
        # By identity: several requests may be rejected together, and the first one has the plugin run for all of them.
        if self._credential is not None and credential is not self._credential:
            return credential != self._credential
        return await self._fetch() != credential

    async def _fetch(self) -> Credential:
        task = self._fetching
        if task is None:
            task = self._fetching = asyncio.create_task(self._run(), name="kubewright credential plugin")
            self._waiting = 0
        self._waiting += 1
        try:
            # Shielded: one caller that is cancelled must not take the credential from the others.
            return await asyncio.shield(task)
        finally:
            if task is self._fetching:
                self._waiting -= 1
                if task.done():
                    self._fetching = None
                elif self._waiting == 0:
                    self._fetching = None
                    task.cancel()
                    await asyncio.wait([task])

    async def _run(self) -> Credential:
        credential, expires = await self._plugin.run(terminal=self._terminal)
        now = self._clock()
        self._credential = credential
        self._expires = math.inf if expires is None else expires
        # A tenth, so that short-lived credentials are not fetched for every request, nor again and again from a plugin
        # that keeps its own copy until the end.
        self._due = math.inf if expires is None else expires - min(60.0, max(0.0, expires - now) / 10)
        return credential


class _AnswerStatus(Redacted, frozen=True, rename="camel"):
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _AnswerStatus | None = None


class _Pipe:
    """Collects the last `limit` bytes of what comes through a pipe.

    `settled` is set when the other end is closed (it is then `exhausted`), or when more than `limit` bytes came.
    """

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        self.data = bytearray()
        self.overflowed = False
        self.exhausted = pipe is None
        self.settled = asyncio.Event()
        self._pipe = pipe
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        if pipe is None:
            self.settled.set()
        else:
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._read, pipe.fileno())

    async def settle(self) -> None:
        """Wait until everything has arrived, but not for a process that stays in the background."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await self.settled.wait()

    def close(self) -> None:
        """Collect no more."""
        if self._pipe is not None:
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            self._pipe = None

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        self.data += data
        if len(self.data) > self._limit:
            del self.data[: -self._limit]
            self.overflowed = True
            self.settled.set()
        if not data:
            self.exhausted = True
            self.settled.set()
            self.close()


def _said(stderr: _Pipe) -> str:
    """The end of the command's standard error, to be appended to a message; empty when there was nothing."""
    text = _readable(stderr.data.decode(errors="replace"))
    return f"; it said: {'…' if stderr.overflowed else ''}{text}" if text else ""


def _readable(text: str) -> str:
    """The text on one line, without escape sequences that could confuse a terminal."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _kill(process: subprocess.Popen[bytes], *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if group:
            # Also when the command itself has ended: then something it started keeps its output open.
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
