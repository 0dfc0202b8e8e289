"""`make demo`, run as a program: every step on both control planes, what it says when one fails, and its end."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.controlplane.binaries import find_binaries

ROOT = Path(__file__).parent.parent.parent
STEPS = [
    "install the definition of PodManager",
    "apply a PodManager that wants 3 pods",
    "delete the pod my-pod-manager-1 behind its back",
    "scale to 5",
    "scale to 2",
    "delete the PodManager",
]


@pytest.fixture(params=["embedded", "real"])
def options(request: pytest.FixtureRequest) -> list[str]:
    """The command line for each control plane."""
    if request.param == "embedded":
        return []
    request.getfixturevalue("real_control_plane")  # skips, and says so, where there are no binaries
    return ["--real"]


def test_headless_does_every_step_and_ends(options: list[str]) -> None:
    command = [sys.executable, "-m", "examples.demo", "--headless", *options]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert [line for line in answer.stdout.splitlines() if line in STEPS] == STEPS
    assert "podmanager my-pod-manager: Ready=True, 3 of 3 pods are ready" in answer.stdout
    assert "pod my-pod-manager-1: gone" in answer.stdout
    assert answer.stdout.endswith("\nended cleanly\n")


def test_a_step_that_fails_is_named_and_makes_it_exit_with_1() -> None:
    broken = "from examples import demo; demo.setup = lambda manager: None; demo.PATIENCE = 3; demo.main()"
    command = [sys.executable, "-c", broken, "--headless"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert answer.returncode == 1
    last = answer.stderr.splitlines()[-1]
    assert last.startswith('demo: "apply a PodManager that wants 3 pods" failed: wait for PodManager ')
    assert "Traceback" not in answer.stderr
    assert "ended cleanly" not in answer.stdout


@pytest.mark.usefixtures("real_control_plane")  # for its kubectl
def test_on_a_terminal_its_kubectl_commands_work_until_it_is_interrupted(options: list[str]) -> None:
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "examples.demo", *options]
    with (
        subprocess.Popen(command, cwd=ROOT, stdout=end, stderr=end) as demo,
        os.fdopen(terminal, "rb") as output,
    ):
        os.close(end)
        try:
            said = read_until(output.fileno(), b"Ctrl-C ends it.")
            found = re.search(r"export KUBECONFIG=(\S+)", said)
            assert found is not None
            kubeconfig = Path(found[1])
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            proposed = [shlex.split(line) for line in said.splitlines() if line.startswith("  kubectl ")]
            assert len(proposed) == 6
            for _, *arguments in proposed:
                answer = kubectl(kubeconfig, *arguments)
                assert (answer.returncode, answer.stderr) == (0, ""), arguments
                assert "my-pod-manager" in answer.stdout
            demo.send_signal(signal.SIGINT)
            assert "ended cleanly" in read_until(output.fileno(), b"ended cleanly")
            assert demo.wait(30) == 0
        finally:
            demo.kill()
    assert not kubeconfig.exists()


def read_until(descriptor: int, words: bytes) -> str:
    said = b""
    while words not in said:
        assert select.select([descriptor], [], [], 60)[0], f"nothing more came after {said!r}"
        said += os.read(descriptor, 4096)
    return said.decode()


def kubectl(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = find_binaries(controller_manager=True).kubectl
    command = [str(program), "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)
