from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kubewright.controlplane import ControlPlane, ControlPlaneError, KubectlFailed, StartFailed, User
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.https import request
from kubewright.controlplane.real import RealControlPlane, launch
from kubewright.controlplane.real.processes import ChildProcess, ProcessGroup

WaitUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture
def control_plane(real_control_plane: ControlPlane) -> ControlPlane:
    """The one that `namespace` is on."""
    return real_control_plane


@dataclass
class Started:
    """What control planes that a test starts itself have brought into the world."""

    is_running: Callable[[int], bool]
    directories: list[Path] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)

    @property
    def remains(self) -> list[object]:
        left: list[object] = [directory for directory in self.directories if directory.exists()]
        return left + [pid for pid in self.processes if self.is_running(pid)]


@pytest.fixture
def started(
    real_control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, is_running: Callable[[int], bool]
) -> Started:
    """Records what the test starts. (Depends on the shared control plane to be skipped where none can be started.)"""
    record = Started(is_running)

    class Recorded(ProcessGroup):
        def __init__(self) -> None:
            super().__init__()
            record.directories.append(self.directory)

        def start(self, name: str, command: Sequence[str]) -> ChildProcess:
            program = super().start(name, command)
            record.processes.append(program.pid)
            return program

    monkeypatch.setattr(launch, "ProcessGroup", Recorded)
    return record


def get(user: User, path: str) -> tuple[int, dict[str, object]]:
    status, body = request(user.server, user.ssl_context(), "GET", path)
    return status, json.loads(body)


async def test_it_is_ready_once_entered_and_leaves_nothing_behind(started: Started) -> None:
    async with ControlPlane.real() as plane:
        assert len(started.remains) == 3
        url, context = plane.url, plane.admin.ssl_context()
        assert get(plane.admin, "/api/v1/namespaces/default")[0] == 200

    assert started.remains == []
    with pytest.raises(ConnectionRefusedError):
        request(url, context, "GET", "/readyz")


async def test_a_failure_to_start_shows_command_and_log_and_leaves_nothing_behind(started: Started) -> None:
    plane = ControlPlane.real(api_server_flags=["--no-such-flag"])

    with pytest.raises(StartFailed) as caught:
        await plane.start()

    message = str(caught.value)
    assert message.startswith("kube-apiserver exited with 1\n")
    assert "command: " in message
    assert "unknown flag: --no-such-flag" in message
    assert len(started.processes) == 2
    assert started.remains == []


async def test_a_start_that_takes_too_long_has_a_reason_and_leaves_nothing_behind(started: Started) -> None:
    with pytest.raises(StartFailed, match=r"^\S+ did not become ready in time \((GET /readyz|there is no etcd)"):
        await ControlPlane.real(timeout=0.1).start()

    assert started.processes
    assert started.remains == []


async def test_a_cancelled_start_leaves_nothing_behind(started: Started, wait_until: WaitUntil) -> None:
    starting = asyncio.create_task(ControlPlane.real().start())
    await asyncio.to_thread(wait_until, lambda: len(started.processes) == 2)

    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    assert started.remains == []


async def test_a_port_taken_by_another_process_is_replaced_by_another(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ports = [taken.getsockname()[1], launch.free_port()]
        monkeypatch.setattr(launch, "free_port", iter(ports).__next__)

        async with ControlPlane.real(api_server_flags=["--runtime-config=api/beta=true"]) as plane:
            assert plane.url == f"https://127.0.0.1:{ports[1]}"
            # Off by default, so the flag has arrived.
            assert get(plane.admin, "/apis/resource.k8s.io/v1beta2")[0] == 200

    assert len(started.processes) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_only_the_api_server_listens_on_a_port(real_control_plane: ControlPlane) -> None:
    """A client of etcd bypasses every rule of the API server."""
    assert isinstance(real_control_plane, RealControlPlane)
    listening = {
        fields[9]
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        for fields in map(str.split, table.read_text().splitlines()[1:])
        if fields[3] == "0A"
    }

    def ports(pid: int) -> int:
        files = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
        return sum(file.removeprefix("socket:[").removesuffix("]") in listening for file in files)

    assert {program.name: ports(program.pid) for program in real_control_plane.programs} == {
        "etcd": 0,
        "kube-apiserver": 1,
        "kube-controller-manager": 0,
    }


def test_nothing_survives_a_killed_test_run(
    real_control_plane: ControlPlane, wait_until: WaitUntil, is_running: Callable[[int], bool]
) -> None:
    script = (
        "import asyncio\n"
        "from kubewright.controlplane import ControlPlane\n"
        "async def main():\n"
        "    async with ControlPlane.real(controller_manager=True) as plane:\n"
        "        directory = plane.programs[0].log.parent\n"
        "        print(directory, *(program.pid for program in plane.programs), flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, *pids = owner.stdout.readline().split()
        assert len(pids) == 3
        assert all(is_running(int(pid)) for pid in pids)
        assert Path(directory).is_dir()

        owner.send_signal(signal.SIGKILL)

    wait_until(lambda: not any(is_running(int(pid)) for pid in pids) and not Path(directory).exists())


async def test_a_second_start_is_refused(real_control_plane: ControlPlane) -> None:
    with pytest.raises(ControlPlaneError, match="was started already"):
        await real_control_plane.start()


async def test_calls_that_need_a_running_server_are_errors_without_one() -> None:
    plane = ControlPlane.real()

    with pytest.raises(ControlPlaneError, match="the control plane is not running: use it inside `async with`"):
        _ = plane.url
    await plane.stop()


def test_it_is_the_pinned_version_unless_the_user_brings_another(real_control_plane: ControlPlane) -> None:
    reported = subprocess.run(
        [find_binaries().kube_apiserver, "--version"], capture_output=True, text=True, check=True
    ).stdout.split()

    assert reported == ["Kubernetes", real_control_plane.version]


def test_anyone_may_read_its_health_and_nothing_else(real_control_plane: ControlPlane) -> None:
    anonymous = ssl.create_default_context(cadata=real_control_plane.ca_certificate)

    assert request(real_control_plane.url, anonymous, "GET", "/readyz") == (200, b"ok")
    assert request(real_control_plane.url, anonymous, "GET", "/api/v1/namespaces")[0] == 403


def test_it_is_reached_by_the_names_that_a_cluster_gives_it(real_control_plane: ControlPlane) -> None:
    address = real_control_plane.url.rpartition("/")[2].rpartition(":")
    context = real_control_plane.admin.ssl_context()

    for name in ("localhost", "kubernetes.default.svc", "10.0.0.1"):
        with (
            socket.create_connection((address[0], int(address[2]))) as plain,
            context.wrap_socket(plain, server_hostname=name) as secured,
        ):
            assert secured.version() == "TLSv1.3"


async def test_a_user_has_no_rights_until_a_role_is_bound(
    real_control_plane: ControlPlane, namespace: str, wait_until: WaitUntil
) -> None:
    jane = real_control_plane.add_user("jane", ["developers"])
    pods = f"/api/v1/namespaces/{namespace}/pods"
    assert get(jane, pods)[0] == 403

    await real_control_plane.kubectl(
        "create", "rolebinding", "view", "-n", namespace, "--clusterrole=view", "--group=developers"
    )

    # The server's authorizer learns of the binding through a watch.
    wait_until(lambda: get(jane, pods)[0] == 200)
    answer = await real_control_plane.kubectl(
        "auth", "can-i", "delete", "pods", "-n", namespace, kubeconfig=jane.kubeconfig, check=False
    )
    assert answer.stdout.strip() == "no"


async def test_a_pod_gets_a_token_volume_of_its_service_account(
    real_control_plane: ControlPlane, namespace: str
) -> None:
    await real_control_plane.kubectl("run", "web", "--image=web:1", "-n", namespace)

    _, pod = get(real_control_plane.admin, f"/api/v1/namespaces/{namespace}/pods/web")

    spec = pod["spec"]
    assert isinstance(spec, dict)
    assert spec["serviceAccountName"] == "default"
    (volume,) = spec["volumes"]
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["path"] == "token"


async def test_a_service_account_token_is_issued_and_recognised(
    real_control_plane: ControlPlane, namespace: str
) -> None:
    _, discovery = get(real_control_plane.admin, "/.well-known/openid-configuration")
    token = (await real_control_plane.kubectl("create", "token", "default", "-n", namespace)).stdout.strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}

    created = await real_control_plane.kubectl("create", "-f", "-", "-o", "json", input=json.dumps(review))

    assert discovery["issuer"] == "https://kubernetes.default.svc.cluster.local"
    status = json.loads(created.stdout)["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{namespace}:default"


async def test_the_controllers_turn_a_deployment_into_pods(real_control_plane: ControlPlane, namespace: str) -> None:
    await real_control_plane.kubectl("create", "deployment", "web", "--image=web:1", "--replicas=3", "-n", namespace)

    # The pods never run, as there is no node, but the controller counts them.
    await real_control_plane.kubectl(
        "wait", "deployment/web", "--for=jsonpath={.status.replicas}=3", "--timeout=60s", "-n", namespace
    )

    _, pods = get(real_control_plane.admin, f"/api/v1/namespaces/{namespace}/pods")
    items = pods["items"]
    assert isinstance(items, list)
    assert [pod["metadata"]["ownerReferences"][0]["kind"] for pod in items] == ["ReplicaSet"] * 3


async def test_the_error_of_a_failing_kubectl_has_its_output_and_no_flag(real_control_plane: ControlPlane) -> None:
    with pytest.raises(KubectlFailed) as caught:
        await real_control_plane.kubectl("get", "pods", "missing", "--token=hush")

    assert str(caught.value).startswith("`kubectl get pods missing` exited with 1: ")
    assert "hush" not in str(caught.value)
    assert caught.value.returncode == 1


async def test_a_cancelled_kubectl_ends(
    real_control_plane: ControlPlane, namespace: str, wait_until: WaitUntil
) -> None:
    def watching() -> bool:
        listed = subprocess.run(["ps", "-wweo", "args="], capture_output=True, text=True, check=True).stdout
        return f"get pods --watch -n {namespace}" in listed

    call = asyncio.create_task(real_control_plane.kubectl("get", "pods", "--watch", "-n", namespace))
    await asyncio.to_thread(wait_until, watching)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert not watching()


def test_a_written_kubeconfig_is_readable_by_its_owner_only(real_control_plane: ControlPlane, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch(0o644)

    written = real_control_plane.write_kubeconfig(path)

    assert written == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == real_control_plane.kubeconfig()


def test_a_server_that_is_gone_is_an_os_error(real_control_plane: ControlPlane) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        request(f"https://127.0.0.1:{launch.free_port()}", real_control_plane.admin.ssl_context(), "GET", "/readyz")
