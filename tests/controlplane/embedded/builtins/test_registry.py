from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.controlplane.embedded.builtins.registry import CONVERSIONS, RULES, built_in_resources
from kubewright.controlplane.embedded.registry.resources import ResourceType, Strategy

RESOURCES = {f"{resource.gvk.api_version} {resource.gvk.kind}": resource for resource in built_in_resources()}
each_resource = pytest.mark.parametrize("resource", RESOURCES.values(), ids=list(RESOURCES))


def test_rules_are_only_for_kinds_that_are_served() -> None:
    assert set(RULES) <= set(RESOURCES)


def test_beta_versions_and_mere_bodies_are_not_served() -> None:
    assert not [name for name in RESOURCES if "beta" in name]
    assert "policy/v1 Eviction" not in RESOURCES
    assert RESOURCES["authorization.k8s.io/v1 SubjectAccessReview"].verbs == {"create"}


@pytest.mark.parametrize("name", [name for name, resource in RESOURCES.items() if "status" in resource.subresources])
def test_a_status_is_changed_through_its_own_endpoint_only(name: str) -> None:
    resource = RESOURCES[name]
    old: JSONObject = {"metadata": {"name": "a"}, "spec": {"old": True}, "status": {"old": True}}
    new: JSONObject = {"metadata": {"name": "a"}, "spec": {"new": True}, "status": {"new": True}}
    by_status = copied_object(new)

    resource.strategy.prepare_status(by_status, old)

    assert by_status["spec"] == {"old": True}
    assert "new" in str(by_status["status"])


ANY_FINALIZER = {
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
}


@each_resource
def test_finalizers_without_a_domain_are_refused_except_in_some_groups(resource: ResourceType) -> None:
    obj: JSONObject = {"metadata": {"name": "a", "finalizers": ["orphan", "mine"]}}

    errors = [str(error) for error in resource.strategy.validate(obj) if error.field.startswith("metadata.finalizers")]

    complaint = (
        'metadata.finalizers[1]: Invalid value: "mine": '
        "name is neither a standard finalizer name nor is it fully qualified"
    )
    assert errors == ([] if resource.gvk.group in ANY_FINALIZER else [complaint])


def test_the_rules_of_a_kind_can_be_replaced() -> None:
    named: list[str] = []
    rules = Strategy(prepare_create=lambda new: named.append("prepared"), create_on_update=True)

    resources = built_in_resources(rules={"v1 ConfigMap": rules})

    replaced = next(resource for resource in resources if resource.gvk.kind == "ConfigMap")
    config_map: JSONObject = {"metadata": {"name": "a"}, "odd": 1}
    replaced.strategy.default(config_map)
    replaced.strategy.prepare_create(config_map)
    assert config_map == {"metadata": {"name": "a"}}
    assert named == ["prepared"]
    assert replaced.strategy.create_on_update


def test_kinds_stored_in_another_version_can_be_converted() -> None:
    stored_elsewhere = {name for name, resource in RESOURCES.items() if resource.storage is not None}

    assert stored_elsewhere == set(CONVERSIONS)


def test_update_rules_are_those_of_kubernetes() -> None:
    def having(**flags: object) -> set[str]:
        return {
            resource.plural
            for resource in RESOURCES.values()
            if all(getattr(resource.strategy, name) == value for name, value in flags.items())
        }

    assert having(create_on_update=True) == {
        "clusterrolebindings",
        "clusterroles",
        "endpoints",
        "events",
        "leases",
        "limitranges",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "services",
    }
    assert having(default_propagation="Orphan") == {"jobs", "replicationcontrollers"}
    assert having(unconditional_update=False) == {
        "apiservices",
        "csidrivers",
        "csinodes",
        "csistoragecapacities",
        "customresourcedefinitions",
        "leases",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "poddisruptionbudgets",
        "runtimeclasses",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
        "volumeattachments",
    }
