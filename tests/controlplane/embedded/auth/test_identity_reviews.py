from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.identity_reviews import self_subject_review, token_review
from kubewright.controlplane.embedded.auth.users import UserInfo

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import Cluster


def test_a_good_token_is_reviewed_with_its_user_and_audiences(cluster: Cluster) -> None:
    review: JSONObject = {"kind": "TokenReview", "spec": {"token": "static"}}

    assert token_review(cluster.authenticator, review)["status"] == {
        "authenticated": True,
        "user": {"username": "ann", "uid": "42", "groups": ["ops", "system:authenticated"]},
        "audiences": ["https://issuer.test"],
    }
    assert review["kind"] == "TokenReview"


def test_a_bad_token_is_reviewed_with_an_error(cluster: Cluster) -> None:
    review = token_review(cluster.authenticator, {"spec": {"token": "rubbish"}})

    assert review["status"] == {"user": {}, "error": "invalid bearer token"}


def test_audiences_that_are_requested_replace_the_servers_own(cluster: Cluster) -> None:
    token = cluster.token(audiences=["vault"])

    here = token_review(cluster.authenticator, {"spec": {"token": token}})["status"]
    there = token_review(cluster.authenticator, {"spec": {"token": token, "audiences": ["vault"]}})["status"]

    assert isinstance(here, dict)
    assert isinstance(there, dict)
    assert here["user"] == {}
    assert there["audiences"] == ["vault"]


def test_a_static_token_is_only_for_this_server(cluster: Cluster) -> None:
    review = token_review(cluster.authenticator, {"spec": {"token": "static", "audiences": ["vault"]}})

    assert review["status"] == {"user": {}, "error": "invalid bearer token"}


def test_without_a_token_there_is_nothing_to_review(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match="token is required for TokenReview in authentication") as refused:
        token_review(cluster.authenticator, {"spec": {}})

    assert refused.value.code == 400


def test_a_self_subject_review_returns_only_the_user() -> None:
    user = UserInfo("jane", ("dev",))

    assert self_subject_review({"metadata": {"name": "x"}}, user, "2024-01-01T00:00:00Z") == {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": "2024-01-01T00:00:00Z"},
        "status": {"userInfo": {"username": "jane", "groups": ["dev"]}},
    }
