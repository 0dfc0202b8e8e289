"""Which cluster a command changes, and that it asks before it changes one that is not local."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.command import Done, command, command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Client, ControlPlane
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.cli.cluster.target import is_this_machine


@pytest.fixture
def control_plane(embedded_control_plane: ControlPlane) -> ControlPlane:
    """Nothing here depends on the server."""
    return embedded_control_plane


@pytest.fixture
def far_kubeconfig(control_plane: ControlPlane, kubeconfig: str) -> str:
    """Of the same server, by a name that does not show that it is this machine."""
    text = Path(kubeconfig).read_text()
    port = control_plane.url.rpartition(":")[2]
    here, far = f'"server": "{control_plane.url}"', f'"server": "https://127.1:{port}", "tls-server-name": "127.0.0.1"'
    assert here in text
    Path(kubeconfig).write_text(text.replace(here, far))
    return kubeconfig


async def install(project: Ferryman, kubeconfig: str, *arguments: str) -> Done:
    given = ["install", project.package, "--kubeconfig", kubeconfig, *arguments]
    return await command_beside(*given, cwd=project.directory)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "localhost", "kind.localhost"])
def test_this_machine_is_recognised(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.49.2", "fe80::1", "example.com", "localhost.example.com", ""])
def test_no_other_machine_is_taken_for_this_one(host: str) -> None:
    assert not is_this_machine(host)


async def test_without_a_terminal_a_cluster_that_is_not_local_needs_consent(
    admin: Client, far_kubeconfig: str, project: Ferryman
) -> None:
    refused = await install(project, far_kubeconfig)
    assert refused.code == 1
    server = refused.output.partition(" in ")[2].partition("\n")[0]
    assert server.startswith("https://127.1:")
    sentence = f"kubewright: {server} is not a local cluster: confirm with --yes (there is no terminal to ask on)\n"
    assert refused.errors == sentence
    assert await admin.find(CustomResourceDefinition, project.definition) is None

    assert (await install(project, far_kubeconfig, "--yes")).code == 0
    # Nothing is changed, so that there is nothing to ask.
    assert (await install(project, far_kubeconfig)).code == 0


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("", 1), ("y", 0), ("yes", 0)])
async def test_on_a_terminal_the_user_is_asked(
    answer: str, code: int, admin: Client, far_kubeconfig: str, project: Ferryman
) -> None:
    terminal, ours = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubewright", "install", project.package, "--kubeconfig", far_kubeconfig),
        cwd=project.directory,
        stdin=ours,
        stdout=asyncio.subprocess.PIPE,
        stderr=ours,
    )
    os.close(ours)
    os.write(terminal, f"{answer}\n".encode())
    await asyncio.wait_for(process.communicate(), 60)
    shown = read_to_the_end(terminal)
    assert process.returncode == code
    assert "Change https://127.1:" in shown
    assert ("kubewright: nothing was changed" in shown) == bool(code)
    assert (await admin.find(CustomResourceDefinition, project.definition) is None) == bool(code)
    if not code:
        assert re.search(r"\r\x1b\[K\d+ s: create CustomResourceDefinition", shown)


def read_to_the_end(terminal: int) -> str:
    """What was written to a terminal that no process has open any more. It arrives in pieces."""
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as output, suppress(OSError):  # that is its end
        while piece := output.read(4096):
            shown += piece
    return shown.decode()


def test_no_cluster_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    project = Ferryman.write(tmp_path)
    done = command("install", project.package, cwd=tmp_path)
    assert done.code == 1
    assert done.errors.startswith("kubewright: no configuration was found; name a kubeconfig or set KUBECONFIG.")


async def test_a_server_that_does_not_answer_is_a_sentence(tmp_path: Path) -> None:
    project = Ferryman.write(tmp_path)
    async with ControlPlane.embedded() as plane:
        kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig")
        url = plane.url
    done = await install(project, str(kubeconfig))
    assert (done.code, done.errors.count("\n")) == (1, 1)
    assert url.removeprefix("https://") in done.errors


async def test_a_context_that_does_not_exist_is_a_sentence_with_those_that_do(
    kubeconfig: str, project: Ferryman
) -> None:
    done = await install(project, kubeconfig, "--context", "prod")
    assert done.code == 1
    assert done.errors == (
        f'kubewright: cannot read the kubeconfig "{kubeconfig}": the context "prod" is not defined '
        "(contexts: admin@kubewright)\n"
    )


async def test_credentials_that_are_not_accepted_are_said_to_be(control_plane: ControlPlane, project: Ferryman) -> None:
    async with control_plane.client() as admin:
        text = admin.config.to_kubeconfig(name="old", token="expired")  # none
    (project.directory / "kubeconfig").write_text(text)
    done = await install(project, "kubeconfig")
    where = f"{control_plane.url} (context old)"
    assert (done.code, done.errors.splitlines()[1:]) == (
        1,
        [f"the credentials for {where} are not accepted: renew them, or name another --context"],
    )


async def test_the_timeout_covers_a_credential_plugin_that_waits(kubeconfig: str, project: Ferryman) -> None:
    file = Path(kubeconfig)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["100"]}
    config = json.loads(file.read_text())
    config["users"][0]["user"] = {"exec": {**plugin, "interactiveMode": "Never"}}
    file.write_text(json.dumps(config))
    done = await asyncio.wait_for(install(project, kubeconfig, "--timeout", "200ms"), 30)
    assert (done.code, done.errors.startswith("kubewright: get the credentials for https://")) == (1, True)
    assert done.errors.endswith("(context admin@kubewright): not over after 0.2 s (--timeout)\n")
