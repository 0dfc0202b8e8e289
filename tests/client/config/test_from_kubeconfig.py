from __future__ import annotations

import base64
import datetime
import json
import logging
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubewright.client.config.config import Config
from kubewright.client.config.credentials import ANONYMOUS, FileCredentials, basic, bearer
from kubewright.client.config.exec_plugin import ExecCredentials
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import Certificate
from kubewright.client.errors import ConfigError

SECRET = "s3cr3t-t0k3n"
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


def pem_pair() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding, encryption = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, encryption)
    return certificate.public_bytes(encoding), private


CHAIN, KEY = pem_pair()
OTHER_CHAIN, OTHER_KEY = pem_pair()


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture(autouse=True)
def no_proxy_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


class File:
    """A kubeconfig with one context, and files beside it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "prod.yaml"

    def load(
        self,
        user: Mapping[str, object] | None = None,
        cluster: Mapping[str, object] | None = None,
        context: Mapping[str, object] | None = None,
    ) -> Config:
        document = {
            "clusters": [{"name": "c", "cluster": {"server": "https://host:6443", **(cluster or {})}}],
            "users": [{"name": "ci", "user": user or {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "ci", **(context or {})}}],
            "current-context": "x",
        }
        self.path.write_text(json.dumps(document))
        return Config.from_kubeconfig(self.path)

    def failure(self, user: Mapping[str, object] | None = None, cluster: Mapping[str, object] | None = None) -> str:
        """The message about the kubeconfig, which shows no secret, with `FILE` for its name."""
        with pytest.raises(ConfigError) as failure:
            self.load(user, cluster)
        message = str(failure.value)
        assert SECRET not in message
        assert data(SECRET.encode()) not in message
        return message.replace(f'the kubeconfig "{self.path}"', "FILE").replace(str(self.directory), "DIRECTORY")


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


async def test_bare_context_is_anonymous_with_the_default_namespace(file: File) -> None:
    config = file.load()

    assert (config.server, config.namespace, config.proxy) == ("https://host:6443", "default", None)
    assert config.impersonate is None
    assert config.credentials is ANONYMOUS
    assert (config.tls.ca, config.tls.server_name, config.tls.verify) == (None, None, True)


def test_namespace_comes_from_the_context(file: File) -> None:
    assert file.load(context={"namespace": "ops"}).namespace == "ops"


def test_server_is_normalised(file: File) -> None:
    assert file.load(cluster={"server": "https://rancher/k8s/"}).server == "https://rancher:443/k8s"


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        (None, "the server is missing; expected a URL like https://host:6443"),
        ("", "the server is missing; expected a URL like https://host:6443"),
        ("host:6443", 'server: "host:6443" is not an http or https URL; expected one like https://host:6443'),
        (f"https://u:{SECRET}@host", 'server: "https://…@host" holds a user name or password'),
    ],
)
def test_bad_server_is_named_with_its_cluster(file: File, server: str | None, problem: str) -> None:
    assert file.failure(cluster={"server": server}).startswith(f'cannot read FILE: cluster "c": {problem}')


def test_tls_settings_are_carried(file: File) -> None:
    tls = file.load(cluster={"tls-server-name": "kubernetes", "insecure-skip-tls-verify": True}).tls

    assert (tls.server_name, tls.verify) == ("kubernetes", False)


def test_authority_comes_from_data_or_else_from_the_file(file: File) -> None:
    (file.directory / "ca.crt").write_bytes(OTHER_CHAIN)

    tls = file.load(cluster={"certificate-authority": "ca.crt"}).tls
    assert (tls.ca, tls.ca_file) == (OTHER_CHAIN, file.directory / "ca.crt")
    both = {"certificate-authority": "ca.crt", "certificate-authority-data": data(CHAIN)}
    tls = file.load(cluster=both).tls
    assert (tls.ca, tls.ca_file) == (CHAIN, None)


def test_base64_may_have_line_breaks(file: File) -> None:
    encoded = base64.encodebytes(CHAIN).decode()

    assert file.load(cluster={"certificate-authority-data": encoded}).tls.ca == CHAIN


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        (
            {"certificate-authority-data": f"{SECRET}!"},
            'cannot read FILE: cluster "c": certificate-authority-data is not base64',
        ),
        (
            {"certificate-authority-data": "ü"},
            'cannot read FILE: cluster "c": certificate-authority-data is not base64',
        ),
        (
            {"certificate-authority": "no.crt"},
            'cannot read FILE: cluster "c": certificate-authority: '
            'cannot read "DIRECTORY/no.crt": No such file or directory',
        ),
        (
            {"certificate-authority-data": data(SECRET.encode())},
            'the certificate authority of cluster "c" in FILE cannot be used: no PEM certificate was found in it',
        ),
    ],
)
def test_bad_authority_is_found_at_once(file: File, cluster: Mapping[str, object], problem: str) -> None:
    assert file.failure(cluster=cluster) == problem


def test_authority_and_no_verification_contradict_each_other(file: File) -> None:
    message = file.failure(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": data(CHAIN)})

    assert message.startswith('the TLS settings of cluster "c" in FILE contradict each other')


def test_proxy_url_counts_before_the_environment(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:1")

    assert file.load(cluster={"proxy-url": "http://file:3128"}).proxy == "http://file:3128"
    assert file.load().proxy == "http://environment:1"


def test_bad_proxy_is_named(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    assert file.failure(cluster={"proxy-url": f"socks5://u:{SECRET}@h:1"}) == (
        'cannot read FILE: cluster "c": proxy-url: "socks5://…@h:1": socks5 is not supported; expected http or https'
    )
    monkeypatch.setenv("HTTPS_PROXY", f"socks5://u:{SECRET}@h:1")
    assert file.failure().startswith("the environment variable HTTPS_PROXY cannot be used")


async def test_token_and_password_are_sent(file: File) -> None:
    assert await file.load({"token": SECRET}).credentials.current() == bearer(SECRET)
    assert await file.load({"username": "bob", "password": SECRET}).credentials.current() == basic("bob", SECRET)


@pytest.mark.parametrize("key", ["token", "tokenFile"])
def test_token_and_password_exclude_each_other(file: File, key: str) -> None:
    assert file.failure({key: SECRET, "username": "bob", "password": SECRET}) == (
        'cannot read FILE: user "ci": there is a token and a username or password; only one of them can be sent'
    )


async def test_token_file_counts_before_the_token_and_is_read_again(file: File) -> None:
    path = file.directory / "token"
    path.write_text("one\n")

    credentials = file.load({"tokenFile": "token", "token": "inline"}).credentials
    old = await credentials.current()
    path.write_text("two\n")

    assert old == bearer("one")
    assert await credentials.rejected(old)
    assert await credentials.current() == bearer("two")


async def test_token_counts_while_the_token_file_cannot_be_read(file: File) -> None:
    credentials = file.load({"tokenFile": "missing", "token": "inline"}).credentials

    assert await credentials.current() == bearer("inline")


def test_missing_token_file_is_named(file: File) -> None:
    assert file.failure({"tokenFile": "missing"}) == (
        'the token of user "ci" in FILE cannot be read from "DIRECTORY/missing": No such file or directory'
    )


async def test_certificate_may_go_along_with_a_token(file: File) -> None:
    user = {"client-certificate-data": data(CHAIN), "client-key-data": data(KEY), "token": SECRET}

    credential = await file.load(user).credentials.current()

    assert credential == bearer(SECRET, certificate=Certificate(chain=CHAIN, key=KEY))


async def test_certificate_files_are_read_again_and_data_counts_before_them(file: File) -> None:
    chain, key = file.directory / "tls.crt", file.directory / "tls.key"
    chain.write_bytes(CHAIN)
    key.write_bytes(KEY)
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}

    credentials = file.load(user).credentials
    old = await credentials.current()
    chain.write_bytes(OTHER_CHAIN)
    assert not await credentials.rejected(old), "a half-written pair is not used"
    key.write_bytes(OTHER_KEY)
    assert await credentials.rejected(old)

    assert old.certificate == Certificate(chain=CHAIN, key=KEY)
    assert (await credentials.current()).certificate == Certificate(chain=OTHER_CHAIN, key=OTHER_KEY)
    inline = {**user, "client-certificate-data": data(CHAIN), "client-key-data": data(KEY)}
    assert (await file.load(inline).credentials.current()).certificate == Certificate(chain=CHAIN, key=KEY)


async def test_certificate_data_may_have_its_key_in_a_file(file: File) -> None:
    (file.directory / "tls.key").write_bytes(KEY)

    credentials = file.load({"client-certificate-data": data(CHAIN), "client-key": "tls.key"}).credentials

    assert isinstance(credentials, FileCredentials)
    assert (await credentials.current()).certificate == Certificate(chain=CHAIN, key=KEY)


@pytest.mark.parametrize(
    ("user", "problem"),
    [
        (
            {"client-certificate": "x"},
            'cannot read FILE: user "ci": there is a client-certificate without a client-key',
        ),
        ({"client-key-data": "x"}, 'cannot read FILE: user "ci": there is a client-key without a client-certificate'),
        (
            {"client-certificate-data": data(CHAIN), "client-key-data": SECRET},
            'cannot read FILE: user "ci": client-key-data is not base64',
        ),
        (
            {"client-certificate-data": data(CHAIN), "client-key": "no.key"},
            'cannot read FILE: user "ci": client-key: cannot read "DIRECTORY/no.key": No such file or directory',
        ),
        (
            {"client-certificate-data": data(CHAIN), "client-key-data": data(OTHER_KEY)},
            'the client certificate of user "ci" in FILE cannot be used: its key belongs to another certificate',
        ),
        (
            {"token": f"{SECRET}\n"},
            'the token of user "ci" in FILE cannot be sent: it holds characters other than printable ASCII',
        ),
        (
            {"as-groups": ["dev"]},
            'cannot read FILE: user "ci": as-groups, as-uid and as-user-extra need a user to act as; add the key "as"',
        ),
    ],
)
def test_bad_user_is_found_at_once(file: File, user: Mapping[str, object], problem: str) -> None:
    assert file.failure(user) == problem


def test_legacy_auth_provider_is_refused_with_the_fix(file: File) -> None:
    message = file.failure({"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}})

    assert message.startswith('cannot read FILE: user "ci": the auth-provider "gcp" is not supported')
    assert "exec plugins" in message


def test_impersonation_is_carried(file: File) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": {"scopes": ["view"]}}

    assert file.load(user).impersonate == Impersonation(
        user="jane", uid="7", groups=("dev",), extra={"scopes": ["view"]}
    )


async def test_credentials_are_not_sent_over_plain_http(file: File, caplog: pytest.LogCaptureFixture) -> None:
    config = file.load({"token": SECRET}, cluster={"server": "http://host:8080"})

    assert config.credentials is ANONYMOUS
    assert "are not sent" in caplog.text
    assert SECRET not in caplog.text


def test_user_without_credentials_over_plain_http_is_no_reason_to_warn(
    file: File, caplog: pytest.LogCaptureFixture
) -> None:
    config = file.load({"as": "jane"}, cluster={"server": "http://host:8080"})

    assert config.impersonate == Impersonation(user="jane")
    assert caplog.text == ""


def exec_user(**description: object) -> dict[str, object]:
    return {"exec": {"command": "plugin", "apiVersion": V1, "interactiveMode": "Never", **description}}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """An executable that stores its request and prints a token."""
    path = tmp_path / "bin" / "plugin"
    path.parent.mkdir()
    answer = json.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": {"token": SECRET}})
    path.write_text(f"#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" > '{tmp_path}/request'\necho '{answer}'\n")
    path.chmod(stat.S_IRWXU)
    return path


async def test_exec_command_with_a_separator_starts_from_the_kubeconfig(file: File, plugin: Path) -> None:
    credentials = file.load(exec_user(command="bin/plugin")).credentials

    assert await credentials.current() == bearer(SECRET)


async def test_exec_command_without_a_separator_is_looked_up_on_the_path(
    file: File, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(plugin.parent), prepend=os.pathsep)

    assert await file.load(exec_user(command="plugin")).credentials.current() == bearer(SECRET)


async def test_exec_plugin_gets_the_cluster_when_it_asks_for_it(file: File, plugin: Path) -> None:
    (file.directory / "ca.crt").write_bytes(CHAIN)
    cluster = {
        "certificate-authority": "ca.crt",
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:1",
        "extensions": [{"name": V1.replace("/v1", "/exec"), "extension": {"audience": "x"}}],
    }

    await file.load(exec_user(command="bin/plugin", provideClusterInfo=True), cluster).credentials.current()

    assert json.loads((file.directory / "request").read_text())["spec"]["cluster"] == {
        "server": "https://host:6443",
        "certificate-authority-data": data(CHAIN),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy:1",
        "config": {"audience": "x"},
    }


async def test_exec_plugin_does_not_get_the_cluster_unasked(file: File, plugin: Path) -> None:
    await file.load(exec_user(command="bin/plugin")).credentials.current()

    assert json.loads((file.directory / "request").read_text())["spec"] == {"interactive": False}


async def test_exec_plugin_is_not_run_beside_other_credentials(file: File) -> None:
    """As client-go: what is written down counts before what would have to be fetched."""
    assert await file.load({**exec_user(), "token": SECRET}).credentials.current() == bearer(SECRET)


def test_v1beta1_plugin_may_leave_out_the_interactive_mode(file: File) -> None:
    config = file.load(exec_user(apiVersion=V1BETA1, interactiveMode=None))

    assert isinstance(config.credentials, ExecCredentials)


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        ({"command": ""}, "exec: the command is missing"),
        ({"apiVersion": None}, f"exec: the apiVersion must be one of {V1}, {V1BETA1}; found none"),
        (
            {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
            f'exec: the apiVersion must be one of {V1}, {V1BETA1}; found "client.authentication.k8s.io/v1alpha1"',
        ),
        ({"interactiveMode": None}, "exec: the interactiveMode must be one of Never, IfAvailable, Always; found none"),
        ({"interactiveMode": "no"}, 'exec: the interactiveMode must be one of Never, IfAvailable, Always; found "no"'),
    ],
)
def test_bad_exec_description_is_named(file: File, description: Mapping[str, object], problem: str) -> None:
    user = exec_user(args=[SECRET], env=[{"name": "X", "value": SECRET}], **description)

    assert file.failure(user) == f'cannot read FILE: user "ci": {problem}'


@pytest.mark.parametrize(
    "user",
    [
        {"token": SECRET},
        {"username": "bob", "password": SECRET},
        exec_user(args=[SECRET], env=[{"name": "X", "value": SECRET}]),
        {"client-certificate-data": data(CHAIN), "client-key-data": data(KEY)},
    ],
)
def test_repr_of_the_configuration_shows_no_secret(
    file: File, user: Mapping[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        config = file.load(user, cluster={"proxy-url": f"http://u:{SECRET}@proxy:1"})

    for text in (repr(config), repr(config.credentials), caplog.text):
        assert SECRET not in text
        assert base64.b64encode(f"bob:{SECRET}".encode()).decode() not in text
        assert "PRIVATE KEY" not in text
