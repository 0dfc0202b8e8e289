"""The laid-down programs as envtest starts them, and beside them the real ones."""

from __future__ import annotations

import ipaddress
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.core.v1 import ConfigMap, Container, Pod, PodSpec, Service, ServiceAccount, ServicePort, ServiceSpec
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import Forbidden

from .conftest import Suite

Stack = ExitStack


@pytest.fixture
def processes() -> Iterator[Stack]:
    """Ends what a test has started, however it ends."""
    with ExitStack() as stack:
        yield stack


def ended(process: subprocess.Popen[bytes]) -> int:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    return process.wait(60)


async def test_a_suite_finds_what_it_asked_for_by_flags(suite: Suite, processes: Stack) -> None:
    tokens = suite.directory / "tokens.csv"
    tokens.write_text('s3cret,jane,4711,"developers,testers"\n')
    processes.callback(ended, suite.start_etcd())
    api_server = suite.start_api_server(f"--token-auth-file={tokens}")
    processes.callback(ended, api_server)

    async with Client(suite.config("envtest", "system:masters")) as admin:
        # ServiceAccount admission is off and no controller runs.
        assert [*await admin.list(ServiceAccount, namespace="default")] == []
        spec = PodSpec(containers=[Container(name="main", image="busybox")])
        pod = await admin.create(Pod(metadata=ObjectMeta(name="a", namespace="default"), spec=spec))
        assert not pod.spec.service_account_name
        assert not pod.spec.volumes
        # The others are on.
        assert pod.spec.priority == 0
        # Services have addresses of the range.
        service = Service(
            metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(ports=[ServicePort(port=80)])
        )
        address = (await admin.create(service)).spec.cluster_ip
        assert ipaddress.ip_address(address or "") in ipaddress.ip_network("10.0.0.0/24")
        # Tokens of service accounts are signed with the key, as the issuer.
        account = await admin.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
        issued = (await admin.token(account)).status.token or ""
    for config, name in (
        (suite.config_with(issued), "system:serviceaccount:default:robot"),
        (suite.config_with("s3cret"), "jane"),
    ):
        async with Client(config) as client:
            user = (await client.create(SelfSubjectReview())).status.user_info
            assert user.username == name
            # Roles decide.
            with pytest.raises(Forbidden):
                await client.list(Pod, namespace="default")
    assert [*user.groups] == ["developers", "testers", "system:authenticated"]
    assert user.uid == "4711"


async def test_what_was_stored_outlives_an_api_server_for_as_long_as_etcd(ours: Suite, processes: Stack) -> None:
    processes.callback(ended, ours.start_etcd())
    first = ours.start_api_server()
    processes.callback(ended, first)
    async with Client(ours.config("envtest", "system:masters")) as admin:
        created = await admin.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))

    assert ended(first) == 0
    second = ours.start_api_server()
    processes.callback(ended, second)

    async with Client(ours.config("envtest", "system:masters")) as admin:
        found = await admin.get(ConfigMap, "a", namespace="default")
        assert found == created
        later = await admin.create(ConfigMap(metadata=ObjectMeta(name="b", namespace="default")))
    assert int(later.metadata.resource_version or 0) > int(created.metadata.resource_version or 0)
    assert ended(second) == 0


def test_a_port_that_is_taken_is_one_line_and_exit_code_1(ours: Suite, processes: Stack) -> None:
    processes.callback(ended, ours.start_etcd())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run(
            ours.assets / "kube-apiserver",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--etcd-servers=http://127.0.0.1:{ours.etcd_port}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
        )
    assert (said.returncode, said.stderr) == (
        1,
        f"kube-apiserver: cannot listen on 127.0.0.1, port {port}: Address already in use\n",
    )


def test_flags_without_an_effect_are_named_and_flags_that_do_not_exist_refused(laid_down: Path) -> None:
    kube_apiserver = laid_down / "kube-apiserver"
    unknown = run(kube_apiserver, "--no-such-flag=1")
    assert (unknown.returncode, unknown.stderr) == (1, "Error: unknown flag: --no-such-flag\n")
    # Without an etcd it waits, which is not what this is about: the missing file ends it before.
    without = run(
        kube_apiserver, "--audit-log-path=-", "--client-ca-file=/no/such/file", "--etcd-servers=http://127.0.0.1:1"
    )
    assert (without.returncode, without.stderr) == (
        1,
        "Error: cannot read --client-ca-file '/no/such/file': No such file or directory\n",
    )


def test_help_names_flags_as_envtest_looks_for_them(laid_down: Path) -> None:
    of_server, of_etcd = run(laid_down / "kube-apiserver", "--help"), run(laid_down / "etcd", "--help")
    assert (of_server.returncode, of_etcd.returncode) == (0, 0)
    assert "\n      --secure-port int\n" in of_server.stdout
    assert "--insecure-port" not in of_server.stdout
    assert "\n  --unsafe-no-fsync\n" in of_etcd.stdout
    assert run(laid_down / "kube-apiserver", "--version").stdout.startswith("Kubernetes v1.")


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60)
