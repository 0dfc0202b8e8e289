from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.services import service_strategy
from kubewright.controlplane.embedded.document import JSONObject, copied_object, inside, items, mapping
from kubewright.controlplane.embedded.status import StatusError

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


def test_what_was_given_to_a_service_stays_when_it_is_not_mentioned(create: Create, update: Update) -> None:
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


def test_an_address_that_another_service_has_is_refused() -> None:
    rules = service_strategy(Allocator(addresses_in_use=lambda: ["10.0.0.7"], ports_in_use=lambda: ["30080"]))
    taken = service(clusterIP="10.0.0.7", clusterIPs=["10.0.0.7"], type="ClusterIP", sessionAffinity="None")
    ports = service(type="NodePort", sessionAffinity="None", externalTrafficPolicy="Cluster")
    for document in (taken, ports):
        inside(document, "spec")["ports"] = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
    items(ports, "spec", "ports")[0] = {"port": 80, "targetPort": 80, "protocol": "TCP", "nodePort": 30080}

    assert [str(error) for error in rules.validate(taken)] == [
        'spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated'
    ]
    assert [str(error) for error in rules.validate(ports)] == [
        "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
    ]


def test_a_port_outside_of_the_range_is_refused(create: Create) -> None:
    with pytest.raises(
        StatusError, match=r"provided port is not in the valid range\. The range of valid ports is 30000"
    ):
        create(service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]))


def test_a_full_range_is_the_servers_problem() -> None:
    allocator = Allocator()
    full = Allocator(addresses_in_use=lambda: [str(host) for host in allocator.network.hosts()])
    document = service(type="ClusterIP", sessionAffinity="None")
    inside(document, "spec")["ports"] = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]

    with pytest.raises(StatusError) as refused:
        service_strategy(full).prepare_create(document)

    assert refused.value.code == 500
