"""Access reviews: whether a user may do something, and what the requesting user may do.

Each takes the object that was posted and returns it with its status. Objects are changed in place and returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, bad_request, invalid, invalid_value
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.rbac import Authorizer, aggregated
from kubewright.controlplane.embedded.auth.review_selectors import evaluation_error, selector_errors
from kubewright.controlplane.embedded.auth.users import UserInfo

_GROUP = "authorization.k8s.io"


def subject_access_review(authorizer: Authorizer, review: JSONObject) -> JSONObject:
    """SubjectAccessReview: whether the user of the spec may do what the spec says."""
    _check(review, [*_spec_errors(review, someone=True), *_metadata_errors(review)])
    return _answered(authorizer, review, _someone(review))


def local_subject_access_review(authorizer: Authorizer, review: JSONObject, namespace: str) -> JSONObject:
    """LocalSubjectAccessReview: the same, about the namespace that it was posted to."""
    errors = [*_spec_errors(review, someone=True), *_metadata_errors(review, "namespace")]
    about = at(review, "spec", "resourceAttributes")
    requested = text(about, "namespace")
    if isinstance(about, dict) and requested != text(review, "metadata", "namespace"):
        errors.append(invalid_value("spec.resourceAttributes.namespace", requested, "must match metadata.namespace"))
    if isinstance(at(review, "spec", "nonResourceAttributes"), dict):
        path = _path_in_go(review)
        errors.append(invalid_value("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    _check(review, errors)
    if text(review, "metadata", "namespace") != namespace:
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _answered(authorizer, review, _someone(review))


def self_subject_access_review(authorizer: Authorizer, review: JSONObject, user: UserInfo) -> JSONObject:
    """SelfSubjectAccessReview: whether the requesting user may do what the spec says."""
    _check(review, [*_spec_errors(review, someone=False), *_metadata_errors(review)])
    return _answered(authorizer, review, user)


def self_subject_rules_review(authorizer: Authorizer, review: JSONObject, user: UserInfo) -> JSONObject:
    """SelfSubjectRulesReview: all that the user may do in a namespace. Nothing of what was posted is returned."""
    namespace = text(review, "spec", "namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    holdings = authorizer.holdings(user, namespace)
    resources: list[JSONValue] = []
    urls: list[JSONValue] = []
    for rule in holdings.rules:
        if rule.resources:
            shown: JSONObject = {"verbs": [*rule.verbs]}
            if rule.groups:
                shown["apiGroups"] = [*rule.groups]
            shown["resources"] = [*rule.resources]
            if rule.names:
                shown["resourceNames"] = [*rule.names]
            resources.append(shown)
        if rule.urls:
            urls.append({"verbs": [*rule.verbs], "nonResourceURLs": [*rule.urls]})
    status: JSONObject = {"resourceRules": resources, "nonResourceRules": urls, "incomplete": False}
    if holdings.missing:
        status["evaluationError"] = aggregated(role.missing() for role in holdings.missing)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": text(review, "apiVersion") or f"{_GROUP}/v1",
        "metadata": {},
        "spec": {},
        "status": status,
    }


def _answered(authorizer: Authorizer, review: JSONObject, user: UserInfo) -> JSONObject:
    about = at(review, "spec", "resourceAttributes")
    if isinstance(about, dict):
        attributes = Attributes(
            user,
            text(about, "verb"),
            text(about, "group"),
            text(about, "version") or "*",
            text(about, "resource"),
            text(about, "subresource"),
            text(about, "namespace"),
            text(about, "name"),
        )
    else:
        path = mapping(review, "spec", "nonResourceAttributes")
        attributes = Attributes(user, text(path, "verb"), path=text(path, "path"), resource_request=False)
    decision = authorizer.authorize(attributes)
    status: JSONObject = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    if error := evaluation_error(mapping(about)):
        status["evaluationError"] = error
    review["status"] = status
    return review


def _someone(review: JSONObject) -> UserInfo:
    spec = mapping(review, "spec")
    extra = {key: _texts(values) for key, values in mapping(spec, "extra").items()}
    return UserInfo(text(spec, "user"), _texts(at(spec, "groups")), text(spec, "uid"), extra)


def _spec_errors(review: JSONObject, *, someone: bool) -> list[FieldError]:
    spec = mapping(review, "spec")
    resource, path = at(spec, "resourceAttributes"), at(spec, "nonResourceAttributes")
    errors: list[FieldError] = []
    if isinstance(resource, dict) and isinstance(path, dict):
        wrong = "cannot be specified in combination with resourceAttributes"
        errors.append(invalid_value("spec.nonResourceAttributes", _path_in_go(review), wrong))
    if not isinstance(resource, dict) and not isinstance(path, dict):
        wrong = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid_value("spec.resourceAttributes", None, wrong))
    if someone and not text(spec, "user") and not items(spec, "groups"):
        errors.append(invalid_value("spec.user", "", "at least one of user or group must be specified"))
    return [*errors, *selector_errors(mapping(resource))]


def _metadata_errors(review: JSONObject, *allowed: str) -> list[FieldError]:
    metadata = mapping(review, "metadata")
    if all(name in ("managedFields", *allowed) for name, value in metadata.items() if value):
        return []
    return [invalid_value("metadata", metadata, f"must be empty{' except for namespace' if allowed else ''}")]


def _path_in_go(review: JSONObject) -> JSONValue:
    # The real server shows its internal type here, whose fields have no JSON names.
    path = mapping(review, "spec", "nonResourceAttributes")
    return {"Path": text(path, "path"), "Verb": text(path, "verb")}


def _check(review: JSONObject, errors: Sequence[FieldError]) -> None:
    if errors:
        # Without the kind: it is lost when the real server turns the object into its internal type.
        raise invalid("", _GROUP, "", errors)


def _texts(value: JSONValue) -> tuple[str, ...]:
    return tuple(item for item in items(value) if isinstance(item, str))
