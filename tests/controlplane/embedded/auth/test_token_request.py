from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import Cluster


def bound(kind: str, name: str, **fields: JSONValue) -> JSONObject:
    return {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, **fields}}}


def test_a_token_request_is_answered_with_its_defaults_and_a_token(cluster: Cluster) -> None:
    answer = cluster.issuer.issue("home", "robot", {"metadata": {"labels": {"a": "b"}}, "spec": {}})

    claims = cluster.claims(text(answer, "status", "token"))
    assert answer["metadata"] == {
        "name": "robot",
        "namespace": "home",
        "uid": "uid-of-robot",
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "labels": {"a": "b"},
    }
    assert answer["spec"] == {
        "audiences": ["https://issuer.test"],
        "expirationSeconds": 3600,
        "boundObjectRef": None,
    }
    assert at(answer, "status", "expirationTimestamp") == "2023-11-14T23:13:20Z"
    assert claims.pop("jti")
    assert claims == {
        "aud": ["https://issuer.test"],
        "exp": 1_700_003_600,
        "iat": 1_700_000_000,
        "iss": "https://issuer.test",
        "kubernetes.io": {"namespace": "home", "serviceaccount": {"name": "robot", "uid": "uid-of-robot"}},
        "nbf": 1_700_000_000,
        "sub": "system:serviceaccount:home:robot",
    }


def test_a_token_names_the_object_it_is_bound_to(cluster: Cluster) -> None:
    cluster.store("pods", "web", spec={"serviceAccountName": "robot", "nodeName": "gone"})

    answer = cluster.issuer.issue("home", "robot", bound("Pod", "web", uid="uid-of-web"))

    about = at(cluster.claims(text(answer, "status", "token")), "kubernetes.io")
    assert at(about, "pod") == {"name": "web", "uid": "uid-of-web"}
    assert at(about, "node") == {"name": "gone"}


def test_the_token_of_a_pod_that_cannot_renew_it_lives_for_a_year(cluster: Cluster) -> None:
    cluster.store("pods", "web", spec={"serviceAccountName": "robot"})
    request = bound("Pod", "web")
    assert isinstance(request["spec"], dict)
    request["spec"]["expirationSeconds"] = 3607

    answer = cluster.issuer.issue("home", "robot", request)

    claims = cluster.claims(text(answer, "status", "token"))
    assert claims["exp"] == 1_700_000_000 + 365 * 24 * 3600
    assert at(claims, "kubernetes.io", "warnafter") == 1_700_003_607
    assert at(answer, "status", "expirationTimestamp") == "2023-11-14T23:13:27Z"


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 5}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5: '
            "may not specify a duration less than 10 minutes",
        ),
        (
            {"spec": {"expirationSeconds": 5_000_000_000}},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 5000000000: '
            "may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"metadata": {"name": "x"}},
            422,
            'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "x": '
            "must match the service account name if specified",
        ),
        (
            {"metadata": {"uid": "x"}},
            409,
            'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token '
            "request (x) does not match the UID of the service account (uid-of-robot)",
        ),
        (bound("Pod", "zz"), 404, 'pods "zz" not found'),
        (
            bound("Pod", "other"),
            400,
            'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
        (bound("ConfigMap", "x"), 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        (
            bound("Deployment", "x", apiVersion="apps/v1"),
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            bound("Secret", "s", uid="x"),
            409,
            'Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (x) does not match '
            "the UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
def test_a_bad_request_gets_the_answer_of_the_real_server(
    cluster: Cluster, request_: JSONObject, code: int, message: str
) -> None:
    cluster.store("secrets", "s")
    cluster.store("pods", "other", spec={"serviceAccountName": "default"})

    with pytest.raises(StatusError) as refused:
        cluster.issuer.issue("home", "robot", request_)

    assert (refused.value.code, refused.value.message) == (code, message)


def test_an_absent_service_account_has_no_tokens(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match='serviceaccounts "nobody" not found'):
        cluster.issuer.issue("home", "nobody", {})
