from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.services import service_strategy

Create = Callable[[JSONObject], JSONObject]
Update = Callable[[JSONObject, JSONObject], JSONObject]


def service(**spec: JSONValue) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def as_type(stored: JSONObject, kind: str, **spec: JSONValue) -> JSONObject:
    changed = copied_object(stored)
    inside(changed, "spec").update(type=kind, **spec)
    return changed


def test_allocations_of_a_service_stay_when_they_are_not_set(create: Create, update: Update) -> None:
    stored = create(service(type="NodePort"))
    sent = service(type="NodePort")
    inside(sent, "metadata").update(namespace="default")

    replaced = update(stored, sent)

    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports"):
        assert mapping(replaced, "spec")[field] == mapping(stored, "spec")[field]


def test_node_ports_go_with_the_type(create: Create, update: Update) -> None:
    stored = create(service(type="NodePort"))

    changed = update(stored, as_type(stored, "ClusterIP"))

    assert items(changed, "spec", "ports") == [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
    assert "externalTrafficPolicy" not in mapping(changed, "spec")
    assert mapping(changed, "spec")["clusterIP"] == mapping(stored, "spec")["clusterIP"]


def test_an_external_name_needs_no_address(create: Create, update: Update) -> None:
    stored = create(service())

    changed = update(stored, as_type(stored, "ExternalName", externalName="example.com"))

    assert set(mapping(changed, "spec")) == {"ports", "type", "sessionAffinity", "externalName"}


def test_a_service_gets_an_address_when_it_needs_one(create: Create, update: Update) -> None:
    stored = create(service(type="ExternalName", externalName="example.com"))
    changed = as_type(stored, "ClusterIP")
    inside(changed, "spec").pop("externalName")

    assert str(mapping(update(stored, changed), "spec")["clusterIP"]).startswith("10.0.0.")


def test_an_address_or_a_port_that_another_service_has_is_refused() -> None:
    rules = service_strategy(Allocator(addresses_in_use=lambda: ["10.0.0.7"], ports_in_use=lambda: ["30080"]))
    taken = service(type="ClusterIP", clusterIP="10.0.0.7")
    ports = service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}])

    with pytest.raises(StatusError, match=r"failed to allocate IP 10\.0\.0\.7: provided IP is already allocated"):
        rules.begin_create(taken)
    with pytest.raises(StatusError, match=r"ports\[0\]\.nodePort: Invalid value: 30080: provided port is already"):
        rules.begin_create(ports)


def test_a_port_outside_of_the_range_is_refused(create: Create) -> None:
    with pytest.raises(
        StatusError, match=r"provided port is not in the valid range\. The range of valid ports is 30000"
    ):
        create(service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]))


def test_a_full_range_is_the_servers_problem() -> None:
    allocator = Allocator()
    full = Allocator(addresses_in_use=lambda: [str(host) for host in allocator.network.hosts()])

    with pytest.raises(StatusError) as refused:
        service_strategy(full).begin_create(service(type="ClusterIP"))

    assert refused.value.code == 500


def test_a_failed_allocation_is_reported_before_anything_else(create: Create) -> None:
    with pytest.raises(StatusError) as refused:
        create(service(ports=[], clusterIPs=["wrong"], internalTrafficPolicy="Other"))

    assert [text(cause, "field") for cause in items(refused.value.details, "causes")] == [
        "spec.clusterIPs",
        "spec.clusterIPs[0]",
    ]


def test_a_service_of_an_unknown_type_needs_an_address_like_any_other(create: Create) -> None:
    """So that its type is all that is wrong with it."""
    with pytest.raises(StatusError) as refused:
        create(service(type="Unknown"))

    assert [text(cause, "field") for cause in items(refused.value.details, "causes")] == ["spec.type"]


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "ipFamilies": ["IPv6"]}, ["IPv6", "IPv4"], "RequireDualStack"),
        ({"clusterIP": "None", "ipFamilyPolicy": "SingleStack"}, ["IPv4"], "SingleStack"),
        ({"clusterIP": "None", "selector": {"app": "x"}}, ["IPv4"], "SingleStack"),
        ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack"),
    ],
)
def test_a_headless_service_without_selector_has_both_families(
    create: Create, spec: JSONObject, families: list[str], policy: str
) -> None:
    stored = mapping(create(service(**spec)), "spec")

    assert (stored["ipFamilies"], stored["ipFamilyPolicy"]) == (families, policy)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        (
            {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "SingleStack"},
            "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
        ),
    ],
)
def test_a_family_that_the_cluster_does_not_have_is_refused(create: Create, spec: JSONObject, complaint: str) -> None:
    with pytest.raises(StatusError, match=complaint):
        create(service(**spec))


def test_a_service_with_both_families_releases_one_by_single_stack(create: Create, update: Update) -> None:
    stored = create(service(clusterIP="None"))

    fewer = update(stored, as_type(stored, "ClusterIP", ipFamilyPolicy="SingleStack"))
    with pytest.raises(StatusError, match="must be 'SingleStack' to release the secondary IP family"):
        update(stored, as_type(stored, "ClusterIP", ipFamilies=["IPv4"]))

    assert mapping(fewer, "spec")["ipFamilies"] == ["IPv4"]


def test_the_same_port_in_another_protocol_is_the_same_node_port(create: Create) -> None:
    both: list[JSONValue] = [{"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]

    first, second = items(create(service(type="NodePort", ports=both)), "spec", "ports")

    assert mapping(first)["nodePort"] == mapping(second)["nodePort"]


@pytest.mark.parametrize(
    ("kind", "ingress", "expected"),
    [
        ("LoadBalancer", {"ip": "1.2.3.4", "ipMode": "VIP", "hostname": "example.com"}, []),
        ("LoadBalancer", {"ip": "1.2.3.4"}, ["ipMode: Required value: must be specified when `ip` is set"]),
        ("LoadBalancer", {"ipMode": "VIP"}, ["ipMode: Forbidden: may not be specified when `ip` is not set"]),
        (
            "LoadBalancer",
            {"ip": "1.2.3.4", "ipMode": "Other"},
            ['ipMode: Unsupported value: "Other": supported values: "Proxy", "VIP"'],
        ),
        (
            "LoadBalancer",
            {"hostname": "1.2.3.4"},
            ['hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
        ),
    ],
)
def test_addresses_of_a_load_balancer_are_judged(kind: str, ingress: JSONObject, expected: list[str]) -> None:
    new: JSONObject = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": [ingress]}}}

    errors = service_strategy(Allocator()).validate_status(new, {})

    assert [str(error) for error in errors] == [f"status.loadBalancer.ingress[0].{complaint}" for complaint in expected]


def test_only_a_load_balancer_has_addresses_in_its_status() -> None:
    new: JSONObject = {"spec": {"type": "ClusterIP"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}

    errors = service_strategy(Allocator()).validate_status(new, {})

    assert [str(error) for error in errors] == [
        "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"
    ]
