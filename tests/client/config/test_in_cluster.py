from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubewright.client.config.credentials import bearer
from kubewright.client.config.in_cluster import config_in_cluster, why_not_in_cluster
from kubewright.client.errors import ConfigError

ENVIRONMENT = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def authority() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("one\n")
    (tmp_path / "ca.crt").write_bytes(authority())
    (tmp_path / "namespace").write_text("ops\n")
    return tmp_path


async def test_pod_uses_its_service_account(account: Path) -> None:
    config = config_in_cluster(account, ENVIRONMENT)

    assert (config.server, config.namespace, config.proxy) == ("https://10.0.0.1:443", "ops", None)
    assert config.tls.ca == (account / "ca.crt").read_bytes()
    assert config.tls.ca_file == account / "ca.crt"
    assert await config.credentials.current() == bearer("one")


def test_ipv6_address_gets_brackets(account: Path) -> None:
    environment = {**ENVIRONMENT, "KUBERNETES_SERVICE_HOST": "fd00::1"}

    assert config_in_cluster(account, environment).server == "https://[fd00::1]:443"


async def test_rotated_token_is_read_after_a_rejection(account: Path) -> None:
    credentials = config_in_cluster(account, ENVIRONMENT).credentials
    old = await credentials.current()
    (account / "token").write_text("two")

    assert await credentials.rejected(old)
    assert await credentials.current() == bearer("two")


def test_namespace_is_default_when_the_account_has_none(account: Path) -> None:
    (account / "namespace").unlink()

    assert config_in_cluster(account, ENVIRONMENT).namespace == "default"


def test_proxy_comes_from_the_environment(account: Path) -> None:
    assert config_in_cluster(account, {**ENVIRONMENT, "HTTPS_PROXY": "http://proxy:1"}).proxy == "http://proxy:1"


@pytest.mark.parametrize("variable", list(ENVIRONMENT))
def test_missing_variable_is_named(account: Path, variable: str) -> None:
    environment = {**ENVIRONMENT, variable: ""}

    assert why_not_in_cluster(account, environment) == f"the environment variable {variable} is not set"
    with pytest.raises(ConfigError, match=f"this program does not run in a pod: the environment variable {variable}"):
        config_in_cluster(account, environment)


def test_missing_token_is_named_with_the_likely_cause(account: Path) -> None:
    (account / "token").unlink()

    with pytest.raises(ConfigError) as failure:
        config_in_cluster(account, ENVIRONMENT)
    assert f'there is no "{account / "token"}"' in str(failure.value)
    assert "automountServiceAccountToken: false" in str(failure.value)


def test_empty_token_is_found_at_once(account: Path) -> None:
    (account / "token").write_text("")

    with pytest.raises(
        ConfigError, match=r"the token of the pod's service account cannot be read .* the file is empty"
    ):
        config_in_cluster(account, ENVIRONMENT)


def test_missing_authority_is_named(account: Path) -> None:
    (account / "ca.crt").unlink()

    with pytest.raises(ConfigError) as failure:
        config_in_cluster(account, ENVIRONMENT)
    assert f'cannot be read from "{account / "ca.crt"}": No such file or directory' in str(failure.value)


def test_bad_authority_is_found_at_once(account: Path) -> None:
    (account / "ca.crt").write_text("rubbish")

    with pytest.raises(ConfigError, match="the certificate authority of the pod's service account cannot be used"):
        config_in_cluster(account, ENVIRONMENT)


def test_bad_port_is_explained(account: Path) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT cannot be used"):
        config_in_cluster(account, {**ENVIRONMENT, "KUBERNETES_SERVICE_PORT": "tcp://10.0.0.1:443"})
