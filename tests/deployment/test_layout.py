from __future__ import annotations

import msgspec
import pytest
from tests.deployment.ferries import ferries

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.meta import ObjectMeta
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
        "ConfigMap",
        "Service",
        "Deployment",
        "PodDisruptionBudget",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "NetworkPolicy",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def test_every_object_is_labelled_with_the_operator() -> None:
    operator = ferries()
    assert all(operator.labels.items() <= each.metadata.labels.items() for each in objects_of(operator))


def test_the_order_in_which_kinds_roles_and_objects_are_given_makes_no_difference() -> None:
    operator = ferries()
    turned = msgspec.structs.replace(
        operator, kinds=operator.kinds[::-1], roles=operator.roles[::-1], objects=operator.objects[::-1]
    )
    assert objects_of(turned) == objects_of(operator)


def test_an_operator_without_kinds_and_webhooks_has_nothing_of_them() -> None:
    plain = Operator(name="plain", image="plain:1")
    assert sorted(layout_of(plain)) == ["manager", "network-policy", "rbac"]
    assert all(each.metadata.name != "plain-webhook" for each in objects_of(plain))


def test_further_objects_are_not_changed_and_are_refused_when_they_are_there_already() -> None:
    operator = ferries()
    objects_of(operator)
    assert [each.metadata.labels for each in operator.objects] == [{}, {"tier": "ferries"}, {}]
    twice = msgspec.structs.replace(operator, objects=[Namespace(metadata=ObjectMeta(name="harbour"))])
    with pytest.raises(ManifestError, match="twice: it is deployed there, and requires it, too"):
        objects_of(twice)


def test_further_objects_have_names_and_are_in_the_namespace_of_the_operator_unless_they_say_otherwise() -> None:
    plain = Operator(name="plain", image="plain:1", objects=[ConfigMap(metadata=ObjectMeta(name="tides"))])
    (placed,) = [each for each in objects_of(plain) if isinstance(each, ConfigMap)]
    assert placed.key == ("plain-system", "tides")
    nameless = msgspec.structs.replace(plain, objects=[ConfigMap(metadata=ObjectMeta(generate_name="tides-"))])
    with pytest.raises(ManifestError, match="the operator plain has a ConfigMap without a name: give it one"):
        objects_of(nameless)


def test_two_roles_of_one_name_are_refused() -> None:
    operator = ferries()
    with pytest.raises(ManifestError, match="has the Role harbour/harbour twice: rename one of them"):
        objects_of(msgspec.structs.replace(operator, roles=[*operator.roles, operator.roles[0]]))
