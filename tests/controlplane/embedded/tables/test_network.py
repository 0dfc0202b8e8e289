from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.network import PRINTERS


def cells(group: str, plural: str, obj: JSONObject) -> list[JSONValue]:
    return PRINTERS[group, plural].cells({"metadata": {"name": "n"}, **obj}, 0.0)


@pytest.mark.parametrize(
    ("spec", "balancers", "expected"),
    [
        ({"type": "ClusterIP"}, [], "<none>"),
        ({"type": "NodePort", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, [], "1.1.1.1,2.2.2.2"),
        ({"type": "LoadBalancer"}, [], "<pending>"),
        ({"type": "LoadBalancer"}, [{"hostname": "b"}, {"ip": "1.1.1.1"}], "1.1.1.1,b"),
        ({"type": "LoadBalancer", "externalIPs": ["2.2.2.2"]}, [{"ip": "1.1.1.1"}], "1.1.1.1,2.2.2.2"),
        ({"type": "ExternalName", "externalName": "example.com"}, [], "example.com"),
        ({"type": "Later"}, [], "<unknown>"),
    ],
)
def test_where_a_service_is_reached_from_outside(spec: JSONObject, balancers: list[JSONValue], expected: str) -> None:
    obj: JSONObject = {"spec": spec, "status": {"loadBalancer": {"ingress": balancers}}}
    assert cells("", "services", obj)[3] == expected


def test_ports_of_a_service_are_shown_with_those_of_the_nodes() -> None:
    ports: list[JSONValue] = [
        {"port": 80, "protocol": "TCP", "nodePort": 30080},
        {"port": 53, "protocol": "UDP"},
    ]
    assert cells("", "services", {"spec": {"ports": ports}})[4] == "80:30080/TCP,53/UDP"


def test_of_many_endpoints_the_first_three_are_shown() -> None:
    addresses: list[JSONValue] = [{"ip": f"10.0.0.{number}"} for number in range(1, 4)]
    subset: JSONObject = {"addresses": addresses, "ports": [{"port": 80}, {"port": 81}]}
    assert cells("", "endpoints", {"subsets": [subset]})[1] == "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 3 more..."
    assert cells("", "endpoints", {"subsets": [{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]})[1] == (
        "[fd00::1]:80"
    )
    assert cells("", "endpoints", {})[1] == "<none>"


def test_hosts_of_an_ingress_are_counted_by_rules() -> None:
    rules: list[JSONValue] = [{"host": "a"}, {}, {"host": "b"}, {"host": "c"}, {"host": "d"}]
    assert cells("networking.k8s.io", "ingresses", {"spec": {"rules": rules}})[2] == "a,b,c + 2 more..."
    assert cells("networking.k8s.io", "ingresses", {"spec": {"rules": [{}]}})[2] == "*"


def test_the_default_class_of_ingresses_is_marked() -> None:
    annotations: JSONObject = {"ingressclass.kubernetes.io/is-default-class": "true"}
    obj: JSONObject = {"metadata": {"name": "n", "annotations": annotations}}
    assert cells("networking.k8s.io", "ingressclasses", obj)[0] == "n (default)"
