"""The messages of the real server are compared in tests/conformance/test_endpoints.py."""

from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.endpoints.request import parse_query, parse_target
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.routing import check_route

RESOURCES = {(resource.gvk.group, resource.plural): resource for resource in built_in_resources()}
METHODS = {
    "list": ("GET", "", ""),
    "watch": ("GET", "", "watch=1"),
    "create": ("POST", "", ""),
    "deletecollection": ("DELETE", "", ""),
    "get": ("GET", "/x", ""),
    "update": ("PUT", "/x", ""),
    "patch": ("PATCH", "/x", ""),
    "delete": ("DELETE", "/x", ""),
}


def taken(resource: ResourceType, method: str, path: str, query: str = "") -> bool:
    target = parse_target(method, path, parse_query(query))
    try:
        check_route(target, resource, method)
    except StatusError:
        return False
    return True


@pytest.mark.parametrize("key", sorted(RESOURCES), ids="/".join)
def test_a_kind_takes_the_verbs_it_announces_and_no_others(key: tuple[str, str]) -> None:
    resource = RESOURCES[key]
    group, version = resource.gvk[:2]
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    inside = f"{root}/namespaces/n" if resource.namespaced else root
    found = {
        verb
        for verb, (method, name, query) in METHODS.items()
        if taken(resource, method, f"{inside}/{resource.plural}{name}", query)
    }
    assert found == set(resource.verbs)
    if resource.namespaced:
        everywhere = {
            verb
            for verb, (method, name, query) in METHODS.items()
            if taken(resource, method, f"{root}/{resource.plural}{name}", query)
        }
        assert everywhere == {"list", "watch"} & set(resource.verbs)
    for name in resource.subresources:
        assert not taken(resource, "DELETE", f"{inside}/{resource.plural}/x/{name}") or name == "proxy"
