from __future__ import annotations

import base64
import ssl

import pytest
import yaml

from kubewright.controlplane import User
from kubewright.controlplane.certificates import CertificateAuthority


@pytest.fixture(scope="module")
def user() -> User:
    authority = CertificateAuthority()
    pair = authority.client("jane", ["developers"])
    return User("jane", ("developers",), "https://127.0.0.1:1", authority.certificate, pair.certificate, pair.key)


def test_the_kubeconfig_needs_no_other_file(user: User) -> None:
    document = yaml.safe_load(user.kubeconfig)

    (context,) = document["contexts"]
    (cluster,) = document["clusters"]
    (entry,) = document["users"]
    assert document["current-context"] == context["name"]
    assert context["context"] == {"cluster": cluster["name"], "user": entry["name"]}
    assert cluster["cluster"]["server"] == "https://127.0.0.1:1"
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode() == user.ca_certificate
    assert base64.b64decode(entry["user"]["client-certificate-data"]).decode() == user.certificate
    assert base64.b64decode(entry["user"]["client-key-data"]).decode() == user.key


def test_the_private_key_is_in_no_repr(user: User) -> None:
    assert "PRIVATE" not in repr(user)
    assert "jane" in repr(user)


def test_the_ssl_context_trusts_only_the_authority_of_the_control_plane(user: User) -> None:
    context = user.ssl_context()

    (authority,) = context.get_ca_certs()
    assert authority["subject"] == ((("commonName", "kubewright"),),)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
