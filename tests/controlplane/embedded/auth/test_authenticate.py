from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.authenticate import BadToken, user_of_certificate
from kubewright.controlplane.embedded.auth.users import ANONYMOUS_USER

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import Cluster

END = datetime(2024, 1, 1, tzinfo=UTC)
"""Of the certificates here; the cluster's clock shows a time before."""
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")


def certificate(*subject: tuple[x509.ObjectIdentifier, str]) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(kind, value) for kind, value in subject])
    signed = x509.CertificateBuilder(name, name, key.public_key(), 1, END - timedelta(days=1), END).sign(
        key, hashes.SHA256()
    )
    return signed.public_bytes(serialization.Encoding.DER)


def test_a_request_without_credentials_is_anonymous(cluster: Cluster) -> None:
    assert cluster.authenticator.authenticate(None, None) is ANONYMOUS_USER
    assert cluster.authenticator.authenticate(None, "Basic abc") is ANONYMOUS_USER
    assert cluster.authenticator.authenticate(None, "Bearer ") is ANONYMOUS_USER


def test_a_certificate_names_the_user_and_its_groups(cluster: Cluster) -> None:
    der = certificate(
        (NameOID.ORGANIZATION_NAME, "dev"), (NameOID.ORGANIZATION_NAME, "ops"), (NameOID.COMMON_NAME, "jane")
    )

    user = cluster.authenticator.authenticate(der, None)

    assert (user.name, user.groups, user.uid) == ("jane", ("dev", "ops", "system:authenticated"), "")
    digest = hashlib.sha256(der).hexdigest()
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}


def test_a_certificate_may_carry_one_uid() -> None:
    name = (NameOID.COMMON_NAME, "jane")
    user, _ = user_of_certificate(certificate(name, (UID, "7")))

    assert user is not None
    assert user.uid == "7"
    with pytest.raises(StatusError, match="Unauthorized"):
        user_of_certificate(certificate(name, (UID, "7"), (UID, "8")))


def test_a_certificate_without_common_name_is_anonymous(cluster: Cluster) -> None:
    der = certificate((NameOID.ORGANIZATION_NAME, "dev"))

    assert cluster.authenticator.authenticate(der, None) is ANONYMOUS_USER
    assert cluster.authenticator.authenticate(der, "Bearer static").name == "ann"


def test_a_certificate_is_worth_nothing_once_it_has_expired(cluster: Cluster) -> None:
    der = certificate((NameOID.COMMON_NAME, "jane"))
    cluster.now = END.timestamp()
    assert cluster.authenticator.authenticate(der, None).name == "jane"

    cluster.now += 1
    with pytest.raises(StatusError, match="Unauthorized"):
        cluster.authenticator.authenticate(der, None)
    assert cluster.authenticator.authenticate(der, "Bearer static").name == "ann"


def test_beside_a_certificate_a_token_is_ignored(cluster: Cluster) -> None:
    der = certificate((NameOID.COMMON_NAME, "jane"))

    assert cluster.authenticator.authenticate(der, "Bearer rubbish").name == "jane"


@pytest.mark.parametrize("header", ["Bearer static", "bearer static", "  BEARER static  ", "Bearer static more"])
def test_a_static_token_is_its_user(cluster: Cluster, header: str) -> None:
    user = cluster.authenticator.authenticate(None, header)

    assert (user.name, user.groups, user.uid) == ("ann", ("ops", "system:authenticated"), "42")


def test_an_unknown_token_is_unauthorized_and_in_no_message(cluster: Cluster) -> None:
    with pytest.raises(StatusError) as refused:
        cluster.authenticator.authenticate(None, "Bearer hidden")

    assert refused.value.body() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    with pytest.raises(BadToken) as bad:
        cluster.authenticator.user_of_token("hidden", ["x"])
    assert "hidden" not in str(bad.value)


def test_a_service_account_token_is_its_service_account(cluster: Cluster) -> None:
    token = cluster.token()

    user = cluster.authenticator.authenticate(None, f"Bearer {token}")

    assert user.name == "system:serviceaccount:home:robot"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:home", "system:authenticated")
    assert user.uid == "uid-of-robot"
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"JTI={cluster.claims(token)['jti']}",)}


def test_a_token_dies_a_minute_after_it_expires(cluster: Cluster) -> None:
    token = cluster.token(expirationSeconds=600)
    cluster.now += 660
    cluster.authenticator.authenticate(None, f"Bearer {token}")
    cluster.now += 1

    with pytest.raises(BadToken, match="service account token has expired"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)


def test_a_token_of_the_future_is_not_valid_yet(cluster: Cluster) -> None:
    token = cluster.token()
    cluster.now -= 61

    with pytest.raises(BadToken, match="service account token is not valid yet"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)


def test_a_token_dies_with_its_service_account(cluster: Cluster) -> None:
    token = cluster.token()
    cluster.authenticator.authenticate(None, f"Bearer {token}")
    cluster.delete("serviceaccounts", "robot")
    with pytest.raises(BadToken, match=r'^\[invalid bearer token, serviceaccounts "robot" not found\]$'):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)

    cluster.store("serviceaccounts", "robot", uid="another")

    with pytest.raises(BadToken, match=r"service account UID \(another\) does not match claim \(uid-of-robot\)"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
def test_a_token_dies_with_the_object_it_is_bound_to(cluster: Cluster, kind: str) -> None:
    plural, namespace = f"{kind.lower()}s", "" if kind == "Node" else "home"
    cluster.store(plural, "it", namespace, spec={"serviceAccountName": "robot"})
    token = cluster.token(boundObjectRef={"apiVersion": "v1", "kind": kind, "name": "it"})
    cluster.authenticator.authenticate(None, f"Bearer {token}")
    cluster.delete(plural, "it", namespace)
    with pytest.raises(BadToken, match=r"^\[invalid bearer token, service account token has been invalidated\]$"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)

    cluster.store(plural, "it", namespace, uid="another")

    with pytest.raises(BadToken, match=rf"{kind.lower()} UID \(another\) does not match service account"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)


def test_an_object_that_is_being_deleted_keeps_its_tokens_for_a_minute(cluster: Cluster) -> None:
    cluster.store("secrets", "it")
    token = cluster.token(boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "it"})
    metadata = cluster.objects["secrets", "home", "it"]["metadata"]
    assert isinstance(metadata, dict)
    metadata["deletionTimestamp"] = datetime.fromtimestamp(cluster.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.now += 60
    cluster.authenticator.authenticate(None, f"Bearer {token}")
    cluster.now += 1

    with pytest.raises(BadToken, match="service account token has been invalidated"):
        cluster.authenticator.user_of_token(token, cluster.authenticator.audiences)


def test_the_pod_and_node_of_a_token_are_reported_and_a_deleted_node_does_not_matter(cluster: Cluster) -> None:
    cluster.store("nodes", "n1", namespace="")
    cluster.store("pods", "web", spec={"serviceAccountName": "robot", "nodeName": "n1"})
    token = cluster.token(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "web"})
    cluster.delete("nodes", "n1", namespace="")

    user = cluster.authenticator.authenticate(None, f"Bearer {token}")

    extra = {key.rpartition("/")[2]: values for key, values in user.extra.items()}
    assert {key: extra[key] for key in extra if key != "credential-id"} == {
        "pod-name": ("web",),
        "pod-uid": ("uid-of-web",),
        "node-name": ("n1",),
        "node-uid": ("uid-of-n1",),
    }


def test_a_token_for_others_does_not_count_here(cluster: Cluster) -> None:
    token = cluster.token(audiences=["vault", "consul"])

    with pytest.raises(StatusError, match="Unauthorized"):
        cluster.authenticator.authenticate(None, f"Bearer {token}")
    with pytest.raises(BadToken) as bad:
        cluster.authenticator.user_of_token(token, ["other"])
    assert str(bad.value) == (
        '[invalid bearer token, token audiences ["vault" "consul"] is invalid for the target audiences ["other"]]'
    )
    assert cluster.authenticator.user_of_token(token, ["other", "consul"]).audiences == ("consul",)


def test_a_forged_token_is_refused(cluster: Cluster) -> None:
    token = cluster.token()

    with pytest.raises(
        BadToken, match=r"^\[invalid bearer token, go-jose/go-jose: error in cryptographic primitive\]$"
    ):
        cluster.authenticator.user_of_token(f"{token[:-8]}AAAAAAAA", cluster.authenticator.audiences)
    assert cluster.authenticator.authenticate(None, f"Bearer {token}").name == "system:serviceaccount:home:robot"
