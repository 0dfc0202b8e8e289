"""The reviews of identity: TokenReview and SelfSubjectReview."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import bad_request
from kubewright.controlplane.embedded.auth.authenticate import Authenticator, BadToken
from kubewright.controlplane.embedded.auth.users import UserInfo


def token_review(authenticator: Authenticator, review: JSONObject) -> JSONObject:
    """TokenReview, changed in place: whose token it is, for the requested audiences or else for this server."""
    token = text(review, "spec", "token")
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    audiences = [audience for audience in items(review, "spec", "audiences") if isinstance(audience, str)]
    try:
        found = authenticator.user_of_token(token, audiences or authenticator.audiences)
    except BadToken as error:
        review["status"] = {"user": {}, "error": str(error)}
    else:
        review["status"] = {
            "authenticated": True,
            "user": found.user.document(),
            "audiences": [*found.audiences],
        }
    return review


def self_subject_review(review: JSONObject, user: UserInfo, now: str) -> JSONObject:
    """SelfSubjectReview at the time `now`, as metadata has it. Nothing of what was posted is returned."""
    return {
        "kind": "SelfSubjectReview",
        "apiVersion": text(review, "apiVersion") or "authentication.k8s.io/v1",
        "metadata": {"creationTimestamp": now},
        "status": {"userInfo": user.document()},
    }
