"""The command as a person uses it: a process, its output, its exit code."""

from __future__ import annotations

import asyncio
import functools
import json
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, Node, Pod, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.wait import condition, exists
from kubewright.manifest.yaml import to_yaml

COMMAND = [sys.executable, "-m", "kubewright"]
POD: JSONValue = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


@dataclass(frozen=True)
class Served:
    """A control plane that the command runs."""

    process: asyncio.subprocess.Process
    url: str
    kubeconfig: Path

    def client(self) -> Client:
        return Client(Config.from_kubeconfig(self.kubeconfig))

    async def end(self, ending: signal.Signals = signal.SIGTERM) -> tuple[int | None, str, str]:
        """Its exit code, and what it still printed."""
        self.process.send_signal(ending)
        output, errors = await asyncio.wait_for(self.process.communicate(), 30)
        return self.process.returncode, output.decode(), errors.decode()


Serve = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    @asynccontextmanager
    async def serve(*arguments: str, kubeconfig: str = "kubeconfig") -> AsyncIterator[Served]:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            "controlplane",
            *arguments,
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Where tests run in the background, SIGINT is ignored, and children inherit that.
            preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
        try:
            assert process.stdout is not None
            ready = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
            assert ready.startswith("ready: https://"), (await process.communicate())[1].decode()
            yield Served(process, ready.removeprefix("ready: ").strip(), tmp_path / kubeconfig)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    return serve


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_a_watch_that_is_open_leaves_no_traceback_at_the_end(serve: Serve, ending: signal.Signals) -> None:
    async with serve("--port", "0") as served, served.client() as client, client.watch(Namespace) as watch:
        events = aiter(watch)
        await anext(events)
        code, output, errors = await served.end(ending)

    assert (code, output) == (0, "")
    assert [line for line in errors.splitlines() if not line.startswith("try: ")] == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_it_serves_until_it_is_interrupted(serve: Serve, ending: signal.Signals) -> None:
    async with serve("--port", "0") as served:
        assert re.fullmatch(r"https://127\.0\.0\.1:\d+", served.url)
        assert stat.S_IMODE(served.kubeconfig.stat().st_mode) == 0o600
        assert Config.from_kubeconfig(served.kubeconfig).server == served.url
        async with served.client() as client:
            assert (await client.get(Namespace, "default")).metadata.uid
        code, output, errors = await served.end(ending)
    assert (code, output) == (0, "")
    assert errors == "try:   KUBECONFIG=kubeconfig kubectl get namespaces\n"


async def test_a_kubeconfig_that_was_readable_by_others_is_so_no_more(serve: Serve, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.touch()
    mine.chmod(0o644)
    async with serve("--port", "0", "--kubeconfig", "mine", kubeconfig="mine") as served:
        assert stat.S_IMODE(mine.stat().st_mode) == 0o600
        assert Config.from_kubeconfig(mine).server == served.url


WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""

OF_SOMEBODY = """
apiVersion: v1
kind: Config
clusters: [{name: production, cluster: {server: "https://production.example.com"}}]
users: [{name: admin, user: {token: secret}}]
contexts: [{name: admin@production, context: {cluster: production, user: admin}}]
current-context: admin@production
"""


async def test_definitions_from_files_are_served_from_the_start(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "widgets.yaml").write_text(WIDGETS)
    async with serve("--port", "0", "--definitions", "crds") as served, served.client() as client:
        assert [each.kind for each in await client.discover("example.com/v1")] == ["Widget"]


def test_a_bad_definition_is_named_with_its_file_and_document(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(WIDGETS.replace("Cluster", "Galaxy"))
    answer = run("controlplane", "--port", "0", "--kubeconfig", str(tmp_path / "config"), "--definitions", str(bad))
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"kubewright: {bad}, document 1: ")
    assert 'spec.scope: Unsupported value: "Galaxy"' in answer.stderr


@pytest.mark.parametrize("content", [OF_SOMEBODY, "no kubeconfig at all", "notes: []", "\x00\xff"])
def test_a_file_of_another_program_is_not_overwritten(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)

    answer = run("controlplane", "--port", "0", "--kubeconfig", str(file))

    assert (answer.returncode, answer.stdout, file.read_text()) == (1, "", content)
    assert answer.stderr == (
        f"kubewright: the file '{file}' is not a kubeconfig that this command has written: name another one with "
        "--kubeconfig FILE, or overwrite it with --force\n"
    )


async def test_a_kubeconfig_of_ours_with_another_cluster_in_it_is_not_overwritten(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    async with serve("--port", "0"):
        found = json.loads(file.read_text())
        found["clusters"].append({"name": "production", "cluster": {"server": "https://production.example.com"}})
        file.write_text(json.dumps(found))
    assert json.loads(file.read_text()) == found

    answer = run("controlplane", "--port", "0", "--kubeconfig", str(file))

    assert (answer.returncode, json.loads(file.read_text())) == (1, found)


async def test_force_overwrites_it(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(OF_SOMEBODY)
    async with serve("--port", "0", "--force") as served:
        assert Config.from_kubeconfig(served.kubeconfig).server == served.url


async def test_the_kubeconfig_of_a_killed_run_is_overwritten(serve: Serve) -> None:
    async with serve("--port", "0") as killed:
        killed.process.kill()
        await killed.process.wait()
    assert killed.kubeconfig.exists()

    async with serve("--port", "0") as served:
        assert Config.from_kubeconfig(served.kubeconfig).server == served.url


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_the_kubeconfig_is_removed_at_the_end(serve: Serve, ending: signal.Signals) -> None:
    async with serve("--port", "0") as served:
        # As kubectl leaves it after `config set-context --current --namespace x`: still of this run.
        found = json.loads(served.kubeconfig.read_text())
        found["contexts"][0]["context"]["namespace"] = "x"
        served.kubeconfig.write_text(to_yaml(found))
        await served.end(ending)
    assert not served.kubeconfig.exists()


async def test_the_kubeconfig_behind_a_link_is_removed_and_the_link_stays(serve: Serve, tmp_path: Path) -> None:
    """What is to be removed are the credentials; the link is the user's."""
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    async with serve("--port", "0", "--kubeconfig", "link", kubeconfig="link") as served:
        assert Config.from_kubeconfig(file).server == served.url
        await served.end()
    assert (link.is_symlink(), file.exists()) == (True, False)


async def test_the_kubeconfig_of_another_run_is_not_removed(serve: Serve) -> None:
    async with serve("--port", "0") as first, serve("--port", "0") as second:
        assert (await first.end())[0] == 0
        assert Config.from_kubeconfig(second.kubeconfig).server == second.url


async def test_the_port_is_the_given_one(serve: Serve) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    async with serve("--port", str(port)) as served:
        assert served.url == f"https://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("host", "url", "notice"),
    [
        ("127.0.0.1", r"https://127\.0\.0\.1:\d+", False),
        ("localhost", r"https://localhost:\d+", False),
        ("::1", r"https://\[::1\]:\d+", False),
        ("0.0.0.0", r"https://127\.0\.0\.1:\d+", True),
    ],
)
async def test_it_warns_when_other_machines_can_reach_it(serve: Serve, host: str, url: str, notice: bool) -> None:
    async with serve("--port", "0", "--host", host) as served:
        assert re.fullmatch(url, served.url)
        async with served.client() as client:
            assert (await client.get(Namespace, "default")).metadata.uid
        _, _, errors = await served.end()
    assert (f"kubewright: listening on {host}: reachable from other machines\n" in errors) is notice


async def test_the_given_number_of_nodes_runs_pods(serve: Serve) -> None:
    async with serve("--port", "0", "--nodes", "2") as served, served.client() as client:
        for name in ("node-1", "node-2"):
            await client.wait_for(Node, name, condition("Ready"), timeout=30)
        assert len(await client.list(Node)) == 2
        await client.wait_for(await client.create(from_json(Pod, POD)), condition("Ready"), timeout=30)


async def test_only_the_controllers_that_were_named_run(serve: Serve) -> None:
    async with serve("--port", "0", "--controllers", "serviceaccounts,nodes") as served, served.client() as client:
        await client.wait_for(ServiceAccount, "default", exists, namespace="default", timeout=30)
        await client.wait_for(Node, "node-1", condition("Ready"), timeout=30)
        await client.create(from_json(Pod, POD))
        deployment: JSONValue = {
            "metadata": {"name": "a"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}},
            },
        }
        await client.create(from_json(Deployment, deployment))
        # A second namespace shows that the first controller has had its turn; the others have none.
        await client.create(Namespace(metadata=ObjectMeta(name="second")))
        await client.wait_for(ServiceAccount, "default", exists, namespace="second", timeout=30)
        assert not (await client.get(Pod, "a")).spec.node_name
        assert [pod.metadata.name for pod in await client.list(Pod)] == ["a"]


@pytest.mark.usefixtures("real_control_plane")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
async def test_the_real_one_is_served_alike(serve: Serve, ending: signal.Signals) -> None:
    """With nodes of its own, though no machine is behind them."""
    async with serve("--real") as served:
        assert re.fullmatch(r"https://127\.0\.0\.1:\d+", served.url)
        assert stat.S_IMODE(served.kubeconfig.stat().st_mode) == 0o600
        async with served.client() as client:
            pod = await client.create(from_json(Pod, POD))
            ready = await client.wait_for(pod, condition("Ready"), timeout=30)
            assert ready is not None
            assert ready.spec.node_name == "node-1"
        code, output, errors = await served.end(ending)
    assert (code, output) == (0, "")
    assert errors == "try:   KUBECONFIG=kubeconfig kubectl get namespaces\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--port", "99999"], "'99999' is not a port: expected a number from 0 to 65535"),
        (["--port", "-1"], "'-1' is not a port: expected a number from 0 to 65535"),
        (["--nodes", "many"], "'many' is not a number of nodes"),
        (["--host", ""], "no address to listen on: expected one such as 127.0.0.1 or 0.0.0.0"),
        (["--envtest-dir", ""], "no directory: expected one such as bin/envtest, or . for this one"),
        (["--controllers", "garbage-collector,nothing"], "there is no controller nothing (there are: "),
        (["--real", "--port", "6443"], "--real chooses host, port and controllers itself"),
        (["--real", "--host", "127.0.0.1"], "--real chooses host, port and controllers itself"),
        (["--real", "--controllers", "nodes"], "--real chooses host, port and controllers itself"),
        (["--kubeconfig", "/nowhere/at/all"], "there is no folder '/nowhere/at' to write the kubeconfig to"),
        (["--port", "0", "--kubeconfig", "/"], "kubewright: cannot write the kubeconfig '/': it is not a file\n"),
        (["--port", "0", "--force", "--kubeconfig", "/"], "cannot write the kubeconfig '/': Is a directory\n"),
        (["--port", "0", "--host", "no.invalid"], "kubewright: cannot listen on no.invalid, port 0: "),
        (
            ["--port", "0", "--host", "203.0.113.7"],
            "kubewright: cannot listen on 203.0.113.7, port 0: Cannot assign requested address\n",
        ),
    ],
)
def test_a_wrong_use_is_reported_in_one_line(arguments: list[str], complaint: str) -> None:
    answer = run("controlplane", *arguments)
    assert answer.returncode != 0
    assert complaint in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


def test_a_port_that_is_taken_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = run("controlplane", "--port", port, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert answer.returncode == 1
    assert answer.stderr == (
        f"kubewright: cannot listen on 127.0.0.1, port {port}: Address already in use; "
        "choose another port, or 0 for any free one\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_real_one_that_was_never_built_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = run("controlplane", "--real", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"kubewright: there is no real control plane in {tmp_path}")
    assert len(answer.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--help"], ["controlplane", "--help"]])
def test_help_has_an_example(arguments: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 0
    assert re.search(r"examples?:\s+kubewright controlplane", answer.stdout)


def test_envtest_finds_its_programs_by_what_the_command_prints(tmp_path: Path) -> None:
    directory = tmp_path / "for envtest"
    said = run("controlplane", "--envtest-dir", str(directory))
    assert (said.returncode, said.stdout) == (0, f"export KUBEBUILDER_ASSETS='{directory}'\n")
    assert sorted(path.name for path in directory.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
    refused = run("controlplane", "--envtest-dir", str(directory), "--port", "6443")
    assert refused.returncode == 1
    assert refused.stderr.startswith("kubewright: --envtest-dir runs no control plane: ")
