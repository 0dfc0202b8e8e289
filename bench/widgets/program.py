"""An operator as a process of its own, seen from outside: its CPU, its memory, and what it says.

Programs take their server from KUBECONFIG and a mode as their argument; bench/peers/controller_runtime/main.go says
what the modes are, which lines they print and which signals they know.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from bench.interpreter import environment, interpreter

REQUEUES = 20
"""How often a program enqueues every Widget when signalled."""

_PATIENCE = 280.0
_QUIET_SECONDS, _QUIET_CPU = 0.7, 0.01


_bytecode = tempfile.TemporaryDirectory(prefix="kubewright-bench-")


@dataclass(frozen=True)
class Peer:
    """How a program is started."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Counted(msgspec.Struct):
    """What a program prints when it ends: its reconciles, and the ages of the stamps it read in microseconds."""

    reconciles: int = 0
    latencies: list[int] | None = None


class ProgramFailed(RuntimeError):
    """A program did not do what it is measured at; the message has the end of its log."""


class Program:
    """A program that runs."""

    def __init__(self, peer: Peer, process: asyncio.subprocess.Process, log: BinaryIO) -> None:
        self._peer = peer
        self._process = process
        self._log = log

    def cpu(self) -> float:
        """Seconds of CPU used so far, user and system, by all its threads."""
        # What clock_getcpuclockid(3) would say: exact, where /proc/<pid>/stat cuts off hundredths of a second.
        return time.clock_gettime((~self._process.pid << 3) | 2)

    def resident(self) -> float:
        """MB of memory it holds now."""
        return self._memory("VmRSS:")

    def peak(self) -> float:
        """The most MB of memory it ever held."""
        return self._memory("VmHWM:")

    async def says(self, expected: str) -> None:
        """Wait for a line on its standard output; others before it do not matter."""
        if self._process.stdout is None:
            raise TypeError("the program has an output")
        async with self._patience(f"did not say {expected!r}"):
            while (line := await self._process.stdout.readline()).decode().strip() != expected:
                if not line:
                    raise self._failed(f"ended without saying {expected!r}")

    async def quiet(self) -> None:
        """Wait until it does next to nothing any more."""
        async with self._patience("did not come to rest"):
            before = self.cpu()
            while True:
                await asyncio.sleep(_QUIET_SECONDS)
                now = self.cpu()
                if now - before <= _QUIET_CPU:
                    return
                before = now

    async def requeue_all(self) -> None:
        """Make it reconcile every Widget `REQUEUES` times."""
        self._process.send_signal(signal.SIGUSR1)
        await self.says("requeued")

    async def kill(self) -> None:
        """End it as a lost machine does."""
        self._process.kill()
        await self._process.communicate()

    async def stop(self) -> Counted:
        """End it, and hear what it counted."""
        if self._process.returncode is None:
            self._process.terminate()
        async with self._patience("did not end"):
            output, _ = await self._process.communicate()
        if self._process.returncode != 0:
            raise self._failed(f"ended with exit code {self._process.returncode}")
        lines = output.splitlines()
        return msgspec.json.decode(lines[-1], type=Counted) if lines and lines[-1].startswith(b"{") else Counted()

    @asynccontextmanager
    async def patience(self, what: str, seconds: float = _PATIENCE) -> AsyncIterator[None]:
        """Fail when the program ends in the block, or when the block takes too long."""
        try:
            async with self._patience(what, seconds), asyncio.TaskGroup() as group:
                watching = group.create_task(self._raise_at_end())
                yield
                watching.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _raise_at_end(self) -> None:
        code = await self._process.wait()
        raise self._failed(f"ended with exit code {code}")

    @asynccontextmanager
    async def _patience(self, what: str, seconds: float = _PATIENCE) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise self._failed(f"{what} within {seconds:.0f} seconds") from None

    def _failed(self, what: str) -> ProgramFailed:
        self._log.seek(0)
        end = b"".join(self._log.readlines()[-20:]).decode(errors="replace")
        return ProgramFailed(f"{self._peer.name} {what}; the end of its log:\n{end}")

    def _memory(self, line: str) -> float:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return float(status.partition(line)[2].split()[0]) * 1024 / 1e6


@asynccontextmanager
async def running(peer: Peer, mode: str, kubeconfig: Path) -> AsyncIterator[Program]:
    """Start a program; it is killed at the end of the block unless it was stopped before."""
    variables = {**_environment(), **peer.environment, "KUBECONFIG": str(kubeconfig), "REQUEUES": str(REQUEUES)}
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *peer.command, mode, env=variables, stdout=asyncio.subprocess.PIPE, stderr=log
        )
        try:
            yield Program(peer, process, log)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()


def warm_up(modules: Sequence[str]) -> None:
    """Have Python programs compiled, as those are that are installed."""
    subprocess.run([interpreter(), "-c", f"import {', '.join(modules)}"], env=_environment(), check=True)


def _environment() -> dict[str, str]:
    return {**environment(), "PYTHONPYCACHEPREFIX": _bytecode.name}


def progress(message: str) -> None:
    """Report the progress."""
    print(f"  {message}", file=sys.stderr, flush=True)
