from __future__ import annotations

import msgspec
import pytest
from tests.deployment.ferries import ferries

from kubewright.deployment import Operator, objects_of
from kubewright.deployment.layout import layout_of
from kubewright.manifest import ManifestError


def test_objects_come_in_the_order_in_which_they_can_be_applied() -> None:
    kinds = [each.kind for each in objects_of(ferries())]
    assert [*dict.fromkeys(kinds)] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def test_every_object_is_labelled_with_the_operator() -> None:
    operator = ferries()
    assert all(operator.labels.items() <= each.metadata.labels.items() for each in objects_of(operator))


def test_the_order_in_which_kinds_and_roles_are_given_makes_no_difference() -> None:
    operator = ferries()
    turned = msgspec.structs.replace(operator, kinds=operator.kinds[::-1], roles=operator.roles[::-1])
    assert objects_of(turned) == objects_of(operator)


def test_an_operator_without_kinds_and_webhooks_has_nothing_of_them() -> None:
    plain = Operator(name="plain", image="plain:1")
    assert sorted(layout_of(plain)) == ["manager", "network-policy", "rbac"]
    assert all(each.metadata.name != "plain-webhook" for each in objects_of(plain))


def test_two_roles_of_one_name_are_refused() -> None:
    operator = ferries()
    with pytest.raises(ManifestError, match="has the Role harbour/harbour twice: rename one of them"):
        objects_of(msgspec.structs.replace(operator, roles=[*operator.roles, operator.roles[0]]))
