"""Starting the genuine kube-apiserver, etcd and kube-controller-manager, step by step and blocking.

Everything is as a production cluster has it (RBAC, the default admission plugins, service accounts with a token issuer,
the default controllers), except that nothing is kept. etcd listens on a Unix socket in a private directory, and
kube-controller-manager on nothing, so kube-apiserver's is the only port.
"""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubewright.controlplane.binaries import Binaries
from kubewright.controlplane.certificates import CertificateAuthority, signing_key
from kubewright.controlplane.errors import StartFailed
from kubewright.controlplane.https import request
from kubewright.controlplane.real.processes import ChildProcess, ProcessGroup
from kubewright.controlplane.user import User

_SERVICE_RANGE = "10.0.0.0/24"
_SERVER_HOSTS = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1", "10.0.0.1")
_ISSUER = "https://kubernetes.default.svc.cluster.local"
# etcd insists on a port even for a Unix socket; it becomes part of the file's name. Relative to the directory the
# programs run in, because the path of a socket is limited to about 100 bytes.
_ETCD_SOCKET = "etcd.sock:0"
_ETCD_PEER_SOCKET = "peer.sock:0"
_PORT_ATTEMPTS = 5
_POLL_INTERVAL = 0.02
_PROBE_TIMEOUT = 2.0


@dataclass(frozen=True)
class RunningPrograms:
    """A control plane that is ready. Closing `group` ends it."""

    binaries: Binaries
    group: ProcessGroup
    programs: tuple[ChildProcess, ...]
    authority: CertificateAuthority
    admin: User
    version: str


def launch(
    binaries: Binaries,
    *,
    controller_manager: bool,
    api_server_flags: Sequence[str],
    timeout: float,
    abandoned: threading.Event,
) -> RunningPrograms:
    """Return when everything is ready. On failure, or once `abandoned` is set, nothing is left behind."""
    group = ProcessGroup()
    try:
        launcher = _Launcher(binaries, group, time.monotonic() + timeout, abandoned)
        launcher.start_etcd()
        admin = launcher.start_api_server(api_server_flags)
        if controller_manager:
            launcher.start_controller_manager(admin)
        return RunningPrograms(binaries, group, tuple(launcher.programs), launcher.authority, admin, _version(admin))
    except BaseException:
        group.close()
        raise


def issue_user(authority: CertificateAuthority, server: str, name: str, groups: Iterable[str]) -> User:
    """A user of the API server at `server`, known by a client certificate."""
    members = tuple(groups)
    pair = authority.client(name, members)
    return User(name, members, server, authority.certificate, pair.certificate, pair.key)


def start_controller_manager(
    group: ProcessGroup, binaries: Binaries, authority: CertificateAuthority, server: str, *, service_account_key: str
) -> ChildProcess:
    """kube-controller-manager with all controllers that are on by default, for the API server at `server`.

    It is known there as system:kube-controller-manager, and each controller by its own service account.
    """
    user = issue_user(authority, server, "system:kube-controller-manager", ())
    files = {
        "controller-manager.kubeconfig": user.kubeconfig,
        "ca.crt": authority.certificate,
        "ca.key": authority.pair.key,
        "service-account.key": service_account_key,
    }
    for name, text in files.items():
        (group.directory / name).write_text(text)
    return group.start(
        "kube-controller-manager",
        [
            str(binaries.kube_controller_manager),
            "--kubeconfig=controller-manager.kubeconfig",
            "--secure-port=0",
            "--leader-elect=false",
            # The default of 20 requests a second makes its start three times as long.
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            "--use-service-account-credentials",
            "--service-account-private-key-file=service-account.key",
            "--root-ca-file=ca.crt",
            "--cluster-signing-cert-file=ca.crt",
            "--cluster-signing-key-file=ca.key",
        ],
    )


class _Launcher:
    def __init__(self, binaries: Binaries, group: ProcessGroup, deadline: float, abandoned: threading.Event) -> None:
        self._binaries = binaries
        self._group = group
        self._deadline = deadline
        self._abandoned = abandoned
        self.programs: list[ChildProcess] = []
        self.authority = CertificateAuthority()
        serving = self.authority.server("kube-apiserver", hosts=_SERVER_HOSTS)
        self._write("ca.crt", self.authority.certificate)
        self._write("server.crt", serving.certificate)
        self._write("server.key", serving.key)
        self._write("service-account.key", signing_key())

    def start_etcd(self) -> None:
        etcd = self._start(
            "etcd",
            [
                str(self._binaries.etcd),
                "--name=kubewright",
                "--data-dir=etcd",
                f"--listen-client-urls=unix://{_ETCD_SOCKET}",
                f"--advertise-client-urls=unix://{_ETCD_SOCKET}",
                f"--listen-peer-urls=unix://{_ETCD_PEER_SOCKET}",
                f"--initial-advertise-peer-urls=unix://{_ETCD_PEER_SOCKET}",
                f"--initial-cluster=kubewright=unix://{_ETCD_PEER_SOCKET}",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ],
        )
        # A kube-apiserver that finds no socket tries again only after a second.
        self._wait(etcd, _exists(self._group.directory / _ETCD_SOCKET))

    def start_api_server(self, flags: Sequence[str]) -> User:
        for attempts_left in reversed(range(_PORT_ATTEMPTS)):
            port = free_port()
            admin = issue_user(self.authority, f"https://127.0.0.1:{port}", "admin", ["system:masters"])
            api_server = self._start("kube-apiserver", self._api_server_command(port, flags))
            try:
                self._wait(api_server, _answers(admin, "/readyz?verbose"))
            except StartFailed:
                # Another process may have taken the port since it was found to be free.
                if attempts_left and "address already in use" in api_server.log_tail():
                    self.programs.remove(api_server)
                    continue
                raise
            # Created by the server itself, shortly after it reports ready.
            self._wait(api_server, _answers(admin, "/api/v1/namespaces/default"))
            return admin
        raise AssertionError("the last attempt returns or raises")

    def _api_server_command(self, port: int, flags: Sequence[str]) -> list[str]:
        return [
            str(self._binaries.kube_apiserver),
            f"--etcd-servers=unix://{_ETCD_SOCKET}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            # The address of a server that only this machine reaches cannot be an endpoint of the service `kubernetes`.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--tls-cert-file=server.crt",
            "--tls-private-key-file=server.key",
            "--client-ca-file=ca.crt",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={_SERVICE_RANGE}",
            f"--service-account-issuer={_ISSUER}",
            "--service-account-key-file=service-account.key",
            "--service-account-signing-key-file=service-account.key",
            f"--api-audiences={_ISSUER}",
            *flags,
        ]

    def start_controller_manager(self, admin: User) -> None:
        key = (self._group.directory / "service-account.key").read_text()
        controller_manager = start_controller_manager(
            self._group, self._binaries, self.authority, admin.server, service_account_key=key
        )
        self.programs.append(controller_manager)
        # Its first visible work, without which no pod is admitted.
        self._wait(controller_manager, _answers(admin, "/api/v1/namespaces/default/serviceaccounts/default"))

    def _start(self, name: str, command: Sequence[str]) -> ChildProcess:
        program = self._group.start(name, command)
        self.programs.append(program)
        return program

    def _wait(self, program: ChildProcess, not_ready: Callable[[], str | None]) -> None:
        """Return when `not_ready` returns no reason any more. StartFailed when a program ends or the time is up."""
        while True:
            ended = next((started for started in self.programs if started.exit_code is not None), None)
            reason = not_ready()
            if ended is not None:
                raise StartFailed(_failure(ended, f"exited with {ended.exit_code}"))
            if reason is None:
                return
            if self._abandoned.wait(_POLL_INTERVAL):
                raise StartFailed("the start was abandoned")
            if time.monotonic() > self._deadline:
                raise StartFailed(_failure(program, f"did not become ready in time ({reason})"))

    def _write(self, name: str, text: str) -> None:
        (self._group.directory / name).write_text(text)


def free_port() -> int:
    """A TCP port of the loopback interface that is free at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _exists(path: Path) -> Callable[[], str | None]:
    return lambda: None if path.exists() else f"there is no {path.name}"


def _answers(admin: User, path: str) -> Callable[[], str | None]:
    context = admin.ssl_context()

    def not_ready() -> str | None:
        try:
            status, body = request(admin.server, context, "GET", path, timeout=_PROBE_TIMEOUT)
        except (OSError, http.client.HTTPException) as error:
            return f"GET {path}: {error}"
        return None if status == http.HTTPStatus.OK else f"GET {path}: {status} {body.decode(errors='replace').strip()}"

    return not_ready


def _version(admin: User) -> str:
    _, body = request(admin.server, admin.ssl_context(), "GET", "/version")
    return str(json.loads(body)["gitVersion"])


def _failure(program: ChildProcess, what: str) -> str:
    return f"{program.name} {what}\n  command: {shlex.join(program.command)}\n  end of its log:\n{program.log_tail()}"
