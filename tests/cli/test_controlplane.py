"""The command as a person uses it: a process, its output, its exit code."""

from __future__ import annotations

import functools
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.api.core.v1 import Namespace
from kubewright.client import Client, Config

COMMAND = [sys.executable, "-m", "kubewright.cli"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_until_it_is_told_to_end(tmp_path: Path, ending: signal.Signals) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    arguments = ["controlplane", "--port", "0", "--kubeconfig", str(kubeconfig)]
    # Where tests run in the background, SIGINT is ignored, and children inherit that.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("ready: https://127.0.0.1:")
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
        config = Config.from_kubeconfig(kubeconfig)
        assert config.server == ready.removeprefix("ready: ").strip()
        async with Client(config) as client:
            assert (await client.get(Namespace, "default")).metadata.uid
        process.send_signal(ending)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--port", "99999"], "'99999' is not a port: expected a number from 0 to 65535"),
        (["--nodes", "many"], "'many' is not a number of nodes"),
        (["--controllers", "garbage-collector,nothing"], "there is no controller nothing (there are: "),
        (["--real", "--port", "1"], "--real chooses host, port and controllers itself"),
        (["--kubeconfig", "/nowhere/at/all"], "there is no folder '/nowhere/at' to write the kubeconfig to"),
    ],
)
def test_a_wrong_use_is_told_in_one_line(arguments: list[str], complaint: str) -> None:
    answer = run("controlplane", *arguments)
    assert answer.returncode != 0
    assert complaint in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = run("controlplane", "--port", port, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert answer.returncode == 1
    assert "Address already in use" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--help"], ["controlplane", "--help"]])
def test_help_has_an_example(arguments: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 0
    assert "example: kubewright controlplane" in answer.stdout
