"""Programs and the directory they work in, which come and go together.

Whatever happens to this process, a SIGKILL included, neither a program nor the directory stays behind: see `reaper`.
Plain `subprocess`, no event loop: a group may be started in one loop and used from another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kubewright.controlplane.errors import BinariesUnusable, ControlPlaneError
from kubewright.controlplane.real import reaper

_LOG_TAIL_LINES = 20
_ENOUGH_MEMORY = 1 << 30
# By which Go trades memory for time: no setting of a program, but of the machine that it runs on.
_COLLECTOR = ("GOGC", "GOMEMLIMIT")


class ChildProcess:
    """A program that runs in the background and writes its output to a log file."""

    def __init__(self, name: str, command: Sequence[str], process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self._process = process

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def log_tail(self) -> str:
        """The last lines of its output."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])


class ProcessGroup:
    """Owns a private directory and the programs started in it. `close` ends both, and so does the end of this process.

    Programs see a minimal environment: etcd, for one, takes any variable that starts with ETCD_ for a setting. Those by
    which Go's garbage collector is tuned are passed on.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._reaper = subprocess.Popen(  # noqa: S603 (our own script)
            [sys.executable, "-I", "-S", reaper.__file__, _parent_directory()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            process_group=0,
        )
        with _pipe(self._reaper.stdout) as answer:
            directory = os.fsdecode(answer.readline().rstrip(b"\n"))
        if not directory:
            self._end_reaper()
            raise ControlPlaneError(f"cannot make a temporary directory in {_parent_directory()}: see the error above")
        self.directory = Path(directory)

    def start(self, name: str, command: Sequence[str]) -> ChildProcess:
        """Run `command` in the directory, its output going to NAME.log there."""
        log = self.directory / f"{name}.log"
        with log.open("wb") as output:
            process = self.spawn(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        return ChildProcess(name, command, process, log)

    def spawn(
        self,
        command: Sequence[str],
        *,
        stdin: int | IO[bytes],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Run `command` in the directory and in the group; the caller deals with its input and output."""
        directory = str(self.directory)
        basics = {"PATH": os.environ.get("PATH", os.defpath), "HOME": directory, "TMPDIR": directory}
        basics |= {name: os.environ[name] for name in _COLLECTOR if name in os.environ}
        try:
            # The child joins the group before it lets go of the pipe to the reaper, so there is no moment in which
            # it could survive this process.
            process = subprocess.Popen(  # noqa: S603 (running given programs is the purpose)
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=directory,
                env=basics | dict(environment or {}),
                process_group=self._reaper.pid,
            )
        except OSError as error:
            raise BinariesUnusable(
                f"cannot run {command[0]}: {error.strerror}; is it a program for this machine?"
            ) from None
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Kill every program, wait for its end and remove the directory. May be called twice."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.directory, ignore_errors=True)
        self._end_reaper()

    def _end_reaper(self) -> None:
        _pipe(self._reaper.stdin).close()
        self._reaper.wait()


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    if end is None:
        raise AssertionError("the process was started without this pipe")
    return end


def _parent_directory() -> str:
    # etcd's data live for seconds: in memory where there is enough of it, else where temporary files go. Containers
    # often have a /dev/shm of 64 MB, which is what a single write-ahead log of etcd takes.
    memory = Path("/dev/shm")  # noqa: S108 (a directory of random name and mode 0700 is made in it)
    if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free >= _ENOUGH_MEMORY:
        return str(memory)
    return tempfile.gettempdir()
