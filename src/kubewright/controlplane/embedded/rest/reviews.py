"""Review kinds: created, answered in their status, and never stored."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import inside
from kubewright.controlplane.embedded.auth.identity_reviews import self_subject_review, token_review
from kubewright.controlplane.embedded.auth.reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_rules_review,
    subject_access_review,
)
from kubewright.controlplane.embedded.managedfields import track_update
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import place_in_namespace
from kubewright.controlplane.embedded.rest.tracking import tracking

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def _prepared(call: Call, review: JSONObject) -> JSONObject:
    """A review as any new object: of the right types, in its namespace, and with its fields tracked."""
    place_in_namespace(call, review)
    call.resource.strategy.default(review)
    inside(review, "metadata")
    track_update(None, review, manager=call.manager, **tracking(call))
    return review


def _subject_access(call: Call, review: JSONObject) -> JSONObject:
    return subject_access_review(call.services.authorizer, review)


def _local_subject_access(call: Call, review: JSONObject) -> JSONObject:
    return local_subject_access_review(call.services.authorizer, review, call.target.namespace)


def _self_subject_access(call: Call, review: JSONObject) -> JSONObject:
    return self_subject_access_review(call.services.authorizer, review, call.user)


def _self_subject_rules(call: Call, review: JSONObject) -> JSONObject:
    return self_subject_rules_review(call.services.authorizer, review, call.user)


def _token(call: Call, review: JSONObject) -> JSONObject:
    return token_review(call.services.authenticator, review)


def _self_subject(call: Call, review: JSONObject) -> JSONObject:
    return self_subject_review(review, call.user, call.services.now())


_ANSWERS: dict[tuple[str, str], Callable[[Call, JSONObject], JSONObject]] = {
    (_AUTHORIZATION, "subjectaccessreviews"): _subject_access,
    (_AUTHORIZATION, "localsubjectaccessreviews"): _local_subject_access,
    (_AUTHORIZATION, "selfsubjectaccessreviews"): _self_subject_access,
    (_AUTHORIZATION, "selfsubjectrulesreviews"): _self_subject_rules,
    (_AUTHENTICATION, "tokenreviews"): _token,
    (_AUTHENTICATION, "selfsubjectreviews"): _self_subject,
}


def _answering(answer: Callable[[Call, JSONObject], JSONObject]) -> Callable[[Call, JSONObject], JSONObject]:
    def answered(call: Call, review: JSONObject) -> JSONObject:
        gvk = call.resource.gvk
        return {"kind": gvk.kind, "apiVersion": gvk.api_version, **answer(call, _prepared(call, review))}

    return answered


REVIEWS = {group_resource: _answering(answer) for group_resource, answer in _ANSWERS.items()}
"""By group and plural."""
