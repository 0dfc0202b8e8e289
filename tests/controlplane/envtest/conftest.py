from __future__ import annotations

import subprocess
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubewright.client import Config
from kubewright.client.config.credentials import StaticCredentials, bearer
from kubewright.client.config.tls import TLS
from kubewright.controlplane import User
from kubewright.controlplane.binaries import cached_directory
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.envtest.programs import lay_down
from kubewright.controlplane.https import request
from kubewright.controlplane.real.launch import free_port

WaitUntil = Callable[[Callable[[], bool]], None]


@dataclass(frozen=True)
class Suite:
    """The programs in a folder, started as envtest starts them: its flags, its files, its health checks."""

    assets: Path
    directory: Path
    authority: CertificateAuthority
    etcd_port: int
    port: int
    wait_until: WaitUntil

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def start_etcd(self) -> subprocess.Popen[bytes]:
        url = f"http://127.0.0.1:{self.etcd_port}"
        process = self._start(
            "etcd",
            f"--advertise-client-urls={url}",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}",
            "--unsafe-no-fsync=true",
        )
        self.wait_until(lambda: _is_healthy(f"{url}/health"))
        return process

    def start_api_server(self, *more: str) -> subprocess.Popen[bytes]:
        files = self.directory
        process = self._start(
            "kube-apiserver",
            "--advertise-address=127.0.0.1",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={files}",
            f"--client-ca-file={files / 'client-cert-auth-ca.crt'}",
            "--disable-admission-plugins=ServiceAccount",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            f"--service-account-issuer={self.url}/",
            f"--service-account-key-file={files / 'sa-signer.crt'}",
            f"--service-account-signing-key-file={files / 'sa-signer.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            *more,
        )
        probing = self.user("anyone").ssl_context()

        def is_ready() -> bool:
            assert process.poll() is None, "kube-apiserver has ended"
            try:
                return request(self.url, probing, "GET", "/healthz")[0] == 200
            except OSError:
                return False

        self.wait_until(is_ready)
        return process

    def user(self, name: str, *groups: str) -> User:
        pair = self.authority.client(name, groups)
        return User(name, groups, self.url, self.authority.certificate, pair.certificate, pair.key)

    def config(self, name: str, *groups: str) -> Config:
        return Config.from_kubeconfig_text(self.user(name, *groups).kubeconfig)

    def config_with(self, token: str) -> Config:
        tls = TLS(ca=self.authority.certificate.encode())
        return Config(server=self.url, tls=tls, credentials=StaticCredentials(bearer(token)))

    def log_of(self, program: str) -> str:
        return (self.directory / f"{program}.log").read_text()

    def _start(self, program: str, *flags: str) -> subprocess.Popen[bytes]:
        with (self.directory / f"{program}.log").open("ab") as log:
            return subprocess.Popen([self.assets / program, *flags], stdout=log, stderr=log, cwd=self.directory)


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def laid_down(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the three programs."""
    directory = tmp_path_factory.mktemp("assets")
    lay_down(directory)
    return directory


@pytest.fixture(params=["embedded", "real"])
def suite(request: pytest.FixtureRequest, laid_down: Path, tmp_path: Path, wait_until: WaitUntil) -> Suite:
    """Ours, and the real programs."""
    assets = laid_down if request.param == "embedded" else cached_directory()
    return made(assets, tmp_path, wait_until)


@pytest.fixture
def ours(laid_down: Path, tmp_path: Path, wait_until: WaitUntil) -> Suite:
    """Ours alone."""
    return made(laid_down, tmp_path, wait_until)


def made(assets: Path, directory: Path, wait_until: WaitUntil) -> Suite:
    """A suite with the files that envtest writes before it starts anything."""
    authority, signing = CertificateAuthority(), CertificateAuthority("sa-signer")
    serving = authority.server("envtest", hosts=("localhost", "127.0.0.1"))
    for name, content in (
        ("client-cert-auth-ca.crt", authority.certificate),
        ("apiserver.crt", serving.certificate),
        ("apiserver.key", serving.key),
        ("sa-signer.crt", signing.pair.certificate),
        ("sa-signer.key", signing.pair.key),
    ):
        (directory / name).write_text(content)
    return Suite(assets, directory, authority, free_port(), free_port(), wait_until)
