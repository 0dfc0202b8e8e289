from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_rules_review,
    subject_access_review,
)
from kubewright.controlplane.embedded.auth.users import UserInfo

if TYPE_CHECKING:
    from tests.controlplane.embedded.auth.conftest import World

JANE = UserInfo("jane", ("dev",))
PODS: JSONValue = {"verb": "list", "resource": "pods", "namespace": "home"}
ALLOWED = {
    "allowed": True,
    "reason": 'RBAC: allowed by RoleBinding "readers/home" of ClusterRole "reader" to User "jane"',
}


@pytest.fixture
def readers(world: World) -> World:
    world.role("reader", {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]})
    world.bind("readers", "reader", {"kind": "User", "name": "jane"}, namespace="home")
    return world


def test_the_access_of_another_user_is_reviewed(readers: World) -> None:
    spec: JSONObject = {"user": "jane", "resourceAttributes": PODS}
    review = subject_access_review(readers.authorizer, {"kind": "SubjectAccessReview", "spec": spec})

    assert review == {"kind": "SubjectAccessReview", "spec": spec, "status": ALLOWED}


def test_a_refusal_without_reason_is_just_that(readers: World) -> None:
    spec: JSONObject = {"groups": ["dev"], "resourceAttributes": PODS}

    assert subject_access_review(readers.authorizer, {"spec": spec})["status"] == {"allowed": False}


def test_ones_own_access_is_reviewed_without_naming_oneself(readers: World) -> None:
    review = self_subject_access_review(readers.authorizer, {"spec": {"resourceAttributes": PODS}}, JANE)

    assert review["status"] == ALLOWED


def test_access_to_paths_is_reviewed(world: World) -> None:
    world.role("probe", {"verbs": ["get"], "nonResourceURLs": ["/x"]})
    world.bind("b", "probe", {"kind": "User", "name": "jane"})
    review: JSONObject = {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}

    assert at(self_subject_access_review(world.authorizer, review, JANE), "status", "allowed") is True


def test_a_local_review_is_about_the_namespace_it_is_posted_to(readers: World) -> None:
    def review(namespace: str) -> JSONObject:
        spec: JSONObject = {"user": "jane", "resourceAttributes": PODS}
        return {"metadata": {"namespace": namespace}, "spec": spec}

    assert local_subject_access_review(readers.authorizer, review("home"), "home")["status"] == ALLOWED
    with pytest.raises(StatusError, match=r"spec.resourceAttributes.namespace: Invalid value: \"home\": must match"):
        local_subject_access_review(readers.authorizer, review("away"), "away")
    with pytest.raises(StatusError, match=r"namespace must match namespace: away$"):
        local_subject_access_review(readers.authorizer, review("home"), "away")


@pytest.mark.parametrize(
    ("review", "message"),
    [
        (
            {"metadata": {"name": "x"}, "spec": {}},
            "[spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes "
            'must be specified, spec.user: Invalid value: "": at least one of user or group must be specified, '
            'metadata: Invalid value: {"name":"x"}: must be empty]',
        ),
        (
            {
                "spec": {
                    "user": "x",
                    "resourceAttributes": {"labelSelector": {}},
                    "nonResourceAttributes": {"path": "/", "verb": "get"},
                }
            },
            '[spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination '
            "with resourceAttributes, spec.resourceAttributes.labelSelector.requirements: Required value: when "
            "spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required]",
        ),
        (
            {
                "spec": {
                    "user": "x",
                    "resourceAttributes": {
                        "labelSelector": {"rawSelector": "a=b", "requirements": [{"key": "a", "operator": "Exists"}]}
                    },
                }
            },
            'spec.resourceAttributes.labelSelector.rawSelector: Invalid value: "a=b": may not specified at the same '
            "time as requirements",
        ),
        (
            {
                "spec": {
                    "user": "x",
                    "resourceAttributes": {
                        "fieldSelector": {
                            "requirements": [{"operator": "Exists", "values": ["x"]}, {"key": "a", "operator": "In"}]
                        }
                    },
                }
            },
            "[spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified, "
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Forbidden: may not be specified when "
            "`operator` is 'Exists' or 'DoesNotExist', spec.resourceAttributes.fieldSelector.requirements[1].values: "
            "Required value: must be specified when `operator` is 'In' or 'NotIn']",
        ),
    ],
)
def test_a_malformed_review_is_invalid_and_without_a_kind(world: World, review: JSONObject, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        subject_access_review(world.authorizer, review)

    assert refused.value.code == 422
    assert refused.value.message == f'.authorization.k8s.io "" is invalid: {message}'
    assert refused.value.details is not None
    assert "kind" not in refused.value.details


def test_a_local_review_is_never_about_paths(world: World) -> None:
    spec: JSONObject = {"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/x"}}
    review: JSONObject = {"metadata": {"name": "x", "namespace": "home"}, "spec": spec}

    with pytest.raises(StatusError) as refused:
        local_subject_access_review(world.authorizer, review, "home")

    assert refused.value.message == (
        '.authorization.k8s.io "" is invalid: [metadata: Invalid value: {"name":"x","namespace":"home"}: must be empty '
        'except for namespace, spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on '
        "this kind of request]"
    )


def test_keys_and_values_of_labels_in_a_selector_are_checked(world: World) -> None:
    selector: JSONObject = {"requirements": [{"key": "", "operator": "In", "values": ["-x"]}]}
    review: JSONObject = {"spec": {"resourceAttributes": {"verb": "list", "labelSelector": selector}}}

    with pytest.raises(StatusError) as refused:
        self_subject_access_review(world.authorizer, review, JANE)

    path = "spec.resourceAttributes.labelSelector.requirements[0]"
    assert f'{path}.key: Invalid value: "": name part must be non-empty' in refused.value.message
    assert f'{path}.values[0]: Invalid value: "-x": a valid label must be an empty string' in refused.value.message


@pytest.mark.parametrize(
    ("selectors", "error"),
    [
        ({"labelSelector": {"rawSelector": "a in (b)"}, "fieldSelector": {"rawSelector": "a=b"}}, None),
        (
            {"labelSelector": {"rawSelector": "a in (b"}},
            "spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
        (
            {"fieldSelector": {"rawSelector": "a"}},
            "spec.resourceAttributes.fieldSelector ignored due to parse error",
        ),
        (
            {
                "labelSelector": {"requirements": [{"key": "a", "operator": "No"}, {"key": "a", "operator": "Exists"}]},
                "fieldSelector": {"requirements": [{"key": "a", "operator": "In", "values": ["x", "y"]}]},
            },
            "spec.resourceAttributes.fieldSelector ignored due to parse error; "
            "spec.resourceAttributes.labelSelector partially ignored due to parse error",
        ),
    ],
)
def test_a_selector_that_is_not_understood_is_ignored_and_reported(
    world: World, selectors: JSONObject, error: str | None
) -> None:
    review: JSONObject = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods", **selectors}}}

    assert at(self_subject_access_review(world.authorizer, review, JANE), "status", "evaluationError") == error


def test_all_that_one_may_do_in_a_namespace_is_listed(readers: World) -> None:
    readers.role(
        "more",
        {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x"]},
    )
    readers.bind("b", "more", {"kind": "Group", "name": "dev"})
    readers.bind("c", "gone", {"kind": "Group", "name": "dev"})

    review = self_subject_rules_review(readers.authorizer, {"spec": {"namespace": "home"}}, JANE)

    assert review == {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
                {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]},
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            "incomplete": False,
            "evaluationError": 'clusterrole.rbac.authorization.k8s.io "gone" not found',
        },
    }


def test_rules_are_reviewed_for_a_namespace_only(world: World) -> None:
    with pytest.raises(StatusError, match="no namespace on request"):
        self_subject_rules_review(world.authorizer, {"spec": {}}, JANE)
