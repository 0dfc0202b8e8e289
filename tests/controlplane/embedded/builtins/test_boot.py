from __future__ import annotations

from datetime import UTC, datetime

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, mapping, text
from kubewright.controlplane.embedded.builtins.boot import boot_objects
from kubewright.controlplane.embedded.builtins.registry import built_in_resources

RESOURCES = {f"{resource.gvk.api_version} {resource.gvk.kind}": resource for resource in built_in_resources()}


def kind_of(obj: JSONObject) -> str:
    return f"{text(obj, 'apiVersion')} {text(obj, 'kind')}"


def test_the_objects_of_every_cluster_exist() -> None:
    found = [f"{text(obj, 'kind')} {text(obj, 'metadata', 'name')}" for obj in boot_objects()]

    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        assert f"Namespace {name}" in found
    for name in (
        "Service kubernetes",
        "ServiceCIDR kubernetes",
        "PriorityClass system-node-critical",
        "APIService v1.",
    ):
        assert name in found


def test_objects_are_complete() -> None:
    for obj in boot_objects(host="192.0.2.1"):
        again = copied_object(obj)
        RESOURCES[kind_of(obj)].strategy.default(again)

        assert again == obj


def test_only_a_server_that_pods_can_reach_has_endpoints() -> None:
    assert not [obj for obj in boot_objects(host="127.0.0.1") if text(obj, "kind").startswith("Endpoint")]
    reachable = [kind_of(obj) for obj in boot_objects(host="192.0.2.1") if text(obj, "kind").startswith("Endpoint")]
    assert reachable == ["v1 Endpoints", "discovery.k8s.io/v1 EndpointSlice"]


def test_conditions_carry_the_time_that_was_given() -> None:
    objects = boot_objects(now=lambda: datetime(2026, 1, 2, tzinfo=UTC))

    cidr = next(obj for obj in objects if obj["kind"] == "ServiceCIDR")
    assert "'lastTransitionTime': '2026-01-02T00:00:00Z'" in str(mapping(cidr, "status"))
