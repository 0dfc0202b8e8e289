from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubewright.controlplane import BinariesUnusable, ControlPlaneError
from kubewright.controlplane.real.processes import ProcessGroup

FOREVER = [sys.executable, "-I", "-S", "-c", "import signal; print('started', flush=True); signal.pause()"]


@pytest.fixture
def group() -> Iterator[ProcessGroup]:
    group = ProcessGroup()
    yield group
    group.close()


def test_the_directory_is_private(group: ProcessGroup) -> None:
    assert stat.S_IMODE(group.directory.stat().st_mode) == 0o700


def test_close_ends_the_programs_and_removes_the_directory(
    group: ProcessGroup, is_running: Callable[[int], bool]
) -> None:
    programs = [group.start(name, FOREVER) for name in ("one", "two")]
    (group.directory / "data").write_text("x")

    group.close()

    assert not group.directory.exists()
    assert [program.exit_code for program in programs] == [-signal.SIGKILL] * 2
    assert not any(is_running(program.pid) for program in programs)


def test_close_twice_is_once(group: ProcessGroup) -> None:
    group.close()
    group.close()

    assert not group.directory.exists()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_the_process_that_started_it(
    ending: signal.Signals, wait_until: Callable[[Callable[[], bool]], None], is_running: Callable[[int], bool]
) -> None:
    script = (
        "import signal, sys\n"
        "from kubewright.controlplane.real.processes import ProcessGroup\n"
        "group = ProcessGroup()\n"
        f"program = group.start('forever', {FOREVER!r})\n"
        "print(group.directory, program.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, pid = owner.stdout.readline().split()
        assert is_running(int(pid))
        assert Path(directory).is_dir()

        owner.send_signal(ending)

    wait_until(lambda: not is_running(int(pid)) and not Path(directory).exists())


def test_the_reaper_outlives_what_ends_a_test_run_in_an_orderly_way(
    wait_until: Callable[[Callable[[], bool]], None], is_running: Callable[[int], bool]
) -> None:
    """A terminal or a job runner may signal every process there is, and kill the owner only later."""
    script = (
        "import os, signal\n"
        "from kubewright.controlplane.real.processes import ProcessGroup\n"
        "group = ProcessGroup()\n"
        f"program = group.start('forever', {FOREVER!r})\n"
        "print(group.directory, os.getpgid(program.pid), flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, reaper = owner.stdout.readline().split()

        os.killpg(int(reaper), signal.SIGHUP)
        owner.kill()

    wait_until(lambda: not is_running(int(reaper)) and not Path(directory).exists())


def test_programs_see_none_of_the_callers_settings(
    group: ProcessGroup, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    """etcd reads every variable ETCD_… as a setting, and everything reads HOME."""
    monkeypatch.setenv("ETCD_NAME", "mine")
    monkeypatch.delenv("GOMEMLIMIT", raising=False)
    monkeypatch.setenv("GOGC", "150")  # how much memory is traded for time is up to the machine

    program = group.start("env", [shutil.which("env") or "env"])
    wait_until(lambda: program.exit_code is not None)

    variables = dict(line.split("=", 1) for line in program.log.read_text().splitlines())
    assert variables.keys() == {"PATH", "HOME", "TMPDIR", "GOGC"}
    assert variables["GOGC"] == "150"


def test_the_log_tail_is_the_end_of_what_the_program_wrote(
    group: ProcessGroup, wait_until: Callable[[Callable[[], bool]], None]
) -> None:
    program = group.start("count", [sys.executable, "-c", "for i in range(100): print(i)"])
    wait_until(lambda: program.exit_code is not None)

    assert program.log_tail().splitlines() == [str(number) for number in range(80, 100)]


def test_a_file_that_is_no_program_is_named(group: ProcessGroup, tmp_path: Path) -> None:
    rubbish = tmp_path / "etcd"
    rubbish.write_bytes(b"\x7fELF rubbish")
    rubbish.chmod(0o755)

    with pytest.raises(BinariesUnusable, match=rf"cannot run {rubbish}: Exec format error"):
        group.start("etcd", [str(rubbish)])


def test_a_parent_directory_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kubewright.controlplane.real.processes._parent_directory", lambda: str(tmp_path / "nowhere"))

    with pytest.raises(ControlPlaneError, match=rf"cannot make a temporary directory in {tmp_path}/nowhere"):
        ProcessGroup()
