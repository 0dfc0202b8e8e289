from __future__ import annotations

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONValue
from kubewright.api.resources import resource_info
from kubewright.client import Client
from kubewright.controlplane.controllers.served import ServedKind, defined_by, discover


def definition(served: dict[str, bool], *, established: str = "True", scope: str = "Namespaced") -> ServedKind | None:
    versions: list[JSONValue] = [
        {"name": name, "served": is_served, "storage": False} for name, is_served in served.items()
    ]
    return defined_by(
        from_json(
            CustomResourceDefinition,
            {
                "metadata": {"name": "gadgets.example.com"},
                "spec": {
                    "group": "example.com",
                    "scope": scope,
                    "names": {"plural": "gadgets", "kind": "Gadget"},
                    "versions": versions,
                },
                "status": {"conditions": [{"type": "Established", "status": established}]},
            },
        )
    )


def test_a_defined_kind_is_seen_in_the_version_that_the_server_prefers() -> None:
    kind = definition({"v1beta1": True, "v1": True, "v2": False})
    assert kind is not None
    assert kind.versions == ("v1", "v1beta1")
    info = resource_info(kind.view)
    assert (info.gvk.api_version, info.gvk.kind, info.plural, info.namespaced) == (
        "example.com/v1",
        "Gadget",
        "gadgets",
        True,
    )


def test_the_scope_is_that_of_the_definition() -> None:
    kind = definition({"v1": True}, scope="Cluster")
    assert kind is not None
    assert not kind.namespaced


def test_a_definition_that_is_not_established_serves_nothing() -> None:
    assert definition({"v1": True}, established="False") is None


def test_a_definition_without_served_versions_serves_nothing() -> None:
    assert definition({"v1": False}) is None


def test_the_same_version_of_a_kind_is_the_same_view() -> None:
    """Who follows a kind sees by this whether anything has changed for him."""
    one, two = definition({"v1": True}), definition({"v1": True, "v1beta1": True})
    assert one is not None
    assert two is not None
    assert one.view is two.view


async def test_the_server_reports_of_its_own_kinds_once_each(client: Client) -> None:
    discovered = await discover(client)
    assert not discovered.failures
    kinds = {(kind.group, kind.plural): kind for kind in discovered.kinds}
    assert len(kinds) == len(discovered.kinds)
    assert kinds["", "pods"].namespaced
    assert not kinds["", "namespaces"].namespaced
    assert "deletecollection" not in kinds["", "namespaces"].verbs
    assert kinds["autoscaling", "horizontalpodautoscalers"].versions == ("v2", "v1")
    assert "list" not in kinds["authorization.k8s.io", "subjectaccessreviews"].verbs
    assert not any("/" in kind.plural for kind in discovered.kinds)
    assert str(kinds["apps", "deployments"]) == "apps/v1, Resource=deployments"
