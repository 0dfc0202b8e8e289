"""Kinds that are questions: created, answered in their status, and never stored."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.controlplane.embedded.auth.identity_reviews import self_subject_review, token_review
from kubewright.controlplane.embedded.auth.reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_rules_review,
    subject_access_review,
)
from kubewright.controlplane.embedded.document import JSONObject
from kubewright.controlplane.embedded.rest.call import Call

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def _named(call: Call, answered: JSONObject) -> JSONObject:
    return {"kind": call.resource.gvk.kind, "apiVersion": call.resource.gvk.api_version, **answered}


REVIEWS: dict[tuple[str, str], Callable[[Call, JSONObject], JSONObject]] = {
    (_AUTHORIZATION, "subjectaccessreviews"): lambda call, review: _named(
        call, subject_access_review(call.services.authorizer, review)
    ),
    (_AUTHORIZATION, "localsubjectaccessreviews"): lambda call, review: _named(
        call, local_subject_access_review(call.services.authorizer, review, call.target.namespace)
    ),
    (_AUTHORIZATION, "selfsubjectaccessreviews"): lambda call, review: _named(
        call, self_subject_access_review(call.services.authorizer, review, call.user)
    ),
    (_AUTHORIZATION, "selfsubjectrulesreviews"): lambda call, review: _named(
        call, self_subject_rules_review(call.services.authorizer, review, call.user)
    ),
    (_AUTHENTICATION, "tokenreviews"): lambda call, review: _named(
        call, token_review(call.services.authenticator, review)
    ),
    (_AUTHENTICATION, "selfsubjectreviews"): lambda call, review: _named(
        call, self_subject_review(review, call.user, call.services.now())
    ),
}
"""By group and plural."""
