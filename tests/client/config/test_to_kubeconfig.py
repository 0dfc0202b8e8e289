"""A configuration written as a kubeconfig is the same configuration, also to kubectl."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import ServiceAccount
from kubewright.client import Client, Config
from kubewright.client.config.credentials import Credential, StaticCredentials, basic, bearer
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import TLS
from kubewright.client.errors import ConfigError
from kubewright.controlplane.binaries import find_binaries

if TYPE_CHECKING:
    from kubewright.controlplane import ControlPlane

SERVER = "https://kubernetes.example.com:6443"


class Plugin:
    """Credentials that are obtained each time."""

    async def current(self) -> Credential:
        return bearer("s3cret")

    async def rejected(self, credential: Credential) -> bool:
        return False


@pytest.mark.parametrize(
    "credential", [bearer("s3cret"), basic("bob", "pass:word"), Credential()], ids=["token", "password", "anonymous"]
)
async def test_a_written_kubeconfig_is_read_as_the_same_configuration(credential: Credential) -> None:
    config = Config(
        server=SERVER,
        tls=TLS(verify=False, server_name="kubernetes"),
        credentials=StaticCredentials(credential),
        namespace="shop",
        impersonate=Impersonation(user="jane", groups=("dev",), uid="7", extra={"scopes": ("a", "b")}),
    )
    found = Config.from_kubeconfig_text(config.to_kubeconfig())
    assert (found.server, found.tls, found.namespace) == (config.server, config.tls, config.namespace)
    assert found.impersonate == Impersonation(user="jane", groups=("dev",), uid="7", extra={"scopes": ["a", "b"]})
    assert await found.credentials.current() == credential


async def test_certificates_are_inlined(admin: Client) -> None:
    text = admin.config.to_kubeconfig()
    found = Config.from_kubeconfig_text(text)
    assert found.tls == admin.config.tls
    assert found.tls.ca is not None
    assert await found.credentials.current() == await admin.config.credentials.current()
    assert (await found.credentials.current()).certificate is not None


async def test_a_token_replaces_the_credentials_and_the_impersonation() -> None:
    config = Config(
        server=SERVER, credentials=StaticCredentials(basic("bob", "s3cret")), impersonate=Impersonation(user="jane")
    )
    text = config.to_kubeconfig(name="alice", namespace="play", token="t0ken")  # a test's
    found = Config.from_kubeconfig_text(text)
    assert (found.namespace, found.impersonate) == ("play", None)
    assert await found.credentials.current() == bearer("t0ken")
    assert "s3cret" not in text
    assert "t0ken" not in repr(found)


def test_credentials_of_a_plugin_are_not_written() -> None:
    config = Config(server=SERVER, credentials=Plugin())
    with pytest.raises(ConfigError, match="come from a plugin and cannot be written into a kubeconfig: give token="):
        config.to_kubeconfig()


async def test_kubectl_has_the_identity_of_the_kubeconfig(
    control_plane: ControlPlane, admin: Client, namespace: str, tmp_path: Path
) -> None:
    """As the owner of the client, and as a service account by its token."""
    token = (await admin.token("default", namespace=namespace)).status
    assert token is not None
    texts = {
        "admin": admin.config.to_kubeconfig(name="admin", namespace=namespace),
        "account": admin.config.to_kubeconfig(name="account", namespace=namespace, token=token.token),
    }
    said = {
        name: await _kubectl(text, tmp_path, "get", "serviceaccounts", "-o", "name") for name, text in texts.items()
    }
    assert said["admin"] == f"{ServiceAccount.__name__.lower()}/default\n"
    assert f'"system:serviceaccount:{namespace}:default" cannot list resource "serviceaccounts"' in said["account"]


async def _kubectl(kubeconfig: str, directory: Path, *arguments: str) -> str:
    file = directory / "kubeconfig"
    file.write_text(kubeconfig, encoding="utf-8")
    program = find_binaries(controller_manager=False).kubectl
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "KUBECONFIG": str(file), "KUBERC": "off"}
    process = await asyncio.create_subprocess_exec(
        program, *arguments, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return output.decode()
