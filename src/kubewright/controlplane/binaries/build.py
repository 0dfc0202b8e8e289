"""Building the programs of a real control plane from their Go modules, once per machine.

All or nothing: the folder in the cache appears complete and checked, or not at all. Only one build runs at a time;
a second one waits and uses the result of the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from kubewright.controlplane.binaries import cached_directory, needed_go, remedies
from kubewright.controlplane.binaries.progress import Progress
from kubewright.controlplane.binaries.recipe import (
    ENVIRONMENT,
    FLAGS,
    MODULE_DIRECTORY,
    MODULE_FILES,
    PROGRAMS,
    etcd_version,
    go_version,
    kubernetes_version,
    linker_flags,
)
from kubewright.controlplane.errors import BuildFailed

_UNFINISHED = ".building-"
_OUTPUT_TAIL_LINES = 20


def build(progress: Progress, *, force: bool = False) -> Path:
    """The folder with the programs, built now unless it is there already (`force` builds it again).

    Raises BuildFailed, with the reason in one line where Go is missing or too old.
    """
    target = cached_directory()
    go = _find_go()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(target.parent, progress):
            if force or not _complete(target):
                _build_into(target, go, progress)
    except OSError as error:
        raise BuildFailed(f"cannot write to the cache {target.parent}: {error}") from None
    return target


def _build_into(target: Path, go: str, progress: Progress) -> None:
    # The lock is ours, so whatever looks unfinished was left by a build that was killed.
    for leftover in target.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    workshop = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    try:
        module = workshop / "module"
        module.mkdir()
        # A copy, because an installed package may be in a read-only folder.
        for name in MODULE_FILES:
            shutil.copyfile(MODULE_DIRECTORY / name, module / name)
        toolchain = _Toolchain(go, module, workshop / "tmp", progress)
        toolchain.check_version()
        progress.say(f"building Kubernetes {kubernetes_version()} and etcd {etcd_version()}, once, in 5 to 10 minutes")
        output = workshop / "bin"
        toolchain.compile(output)
        # Go names a program after the last element of its package, and this one's is `server`.
        (output / "server").rename(output / "etcd")
        for name in PROGRAMS:
            _check_program(output / name)
        if target.exists():
            target.rename(workshop / "replaced")
        output.rename(target)
    finally:
        progress.close()
        shutil.rmtree(workshop, ignore_errors=True)


class _Toolchain:
    """The go command, run in a copy of the module and with a temporary directory that we remove."""

    def __init__(self, go: str, module: Path, temporary: Path, progress: Progress) -> None:
        temporary.mkdir()
        self._go = go
        self._module = module
        self._progress = progress
        # What other projects of the user are compiled for does not apply here.
        inherited = {name: value for name, value in os.environ.items() if name not in {"GOOS", "GOARCH"}}
        self._environment = inherited | ENVIRONMENT | {"GOTMPDIR": str(temporary)}

    def check_version(self) -> None:
        """Raises BuildFailed unless Go is, or can fetch, a version that compiles the module."""
        found = self._run("env", "GOVERSION").strip()
        match = re.match(r"go(\d+)\.(\d+)", found)
        if match is None or (int(match[1]), int(match[2])) < go_version():
            raise BuildFailed(f"Go is too old: {self._go} is {found}; install {needed_go()}, or {remedies()}")

    def compile(self, output: Path) -> None:
        """Put the programs into `output`."""
        packages = PROGRAMS.values()
        stale = self._run("list", *FLAGS, "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *packages)
        total = len(stale.split())
        compiled = 0

        def show(line: str) -> None:
            nonlocal compiled
            # With -v, Go writes the name of each package that it compiles, between its own remarks.
            if line.startswith("go: "):
                self._progress.status(line)
            else:
                compiled += 1
                self._progress.step(compiled, max(total, compiled), line)

        arguments = ("build", "-v", *FLAGS, "-ldflags", linker_flags(), "-o", f"{output}{os.sep}", *packages)
        self._run(*arguments, on_error_line=show)

    def _run(self, *arguments: str, on_error_line: Callable[[str], None] | None = None) -> str:
        """What the command wrote to standard output. Raises BuildFailed when it fails."""
        show = on_error_line or self._progress.status
        tail: deque[str] = deque(maxlen=_OUTPUT_TAIL_LINES)
        with (self._module.parent / "output").open("w+") as output:
            # In a session of its own, so that compilers can be ended together with the go command that started them.
            with subprocess.Popen(  # noqa: S603 (the user's own Go)
                [self._go, *arguments],
                cwd=self._module,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process:
                try:
                    for line in process.stderr or ():
                        tail.append(_without_password(line.rstrip("\n")))
                        show(tail[-1])
                except BaseException:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
            output.seek(0)
            answer = output.read()
        if process.returncode != 0:
            printed = "\n".join(tail)
            raise BuildFailed(
                f"`go {arguments[0]}` exited with {process.returncode}; the end of its output:\n{printed}"
            )
        return answer


def _find_go() -> str:
    go = shutil.which("go")
    if go is None:
        raise BuildFailed(f"Go is not installed: install {needed_go()}, or {remedies()}")
    return go


@contextlib.contextmanager
def _only_one(folder: Path, progress: Progress) -> Iterator[None]:
    # The file stays: removing it would let a third builder lock a file that the second one still waits for.
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("another build is running, waiting for its result")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _complete(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in PROGRAMS)


def _check_program(program: Path) -> None:
    arguments = ["version", "--client"] if program.name == "kubectl" else ["--version"]
    expected = etcd_version().removeprefix("v") if program.name == "etcd" else kubernetes_version()
    try:
        finished = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603 (just built)
    except OSError as error:
        raise BuildFailed(f"the {program.name} that was built does not run: {error.strerror}") from None
    if finished.returncode != 0 or expected not in finished.stdout:
        printed = (finished.stdout + finished.stderr).strip()
        raise BuildFailed(
            f"the {program.name} that was built is not {expected}; its version command printed: {printed}"
        )


def _without_password(line: str) -> str:
    # Module proxies may be configured as addresses with a user and a password.
    return re.sub(r"://[^/@\s]+@", "://***@", line)
