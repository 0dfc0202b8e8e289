"""The objects of a new server, on every control plane."""

from __future__ import annotations

import pytest

from kubewright.api.codec import decode_json, origin
from kubewright.api.core.v1 import ConfigMap, Namespace, Service
from kubewright.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from kubewright.api.markers import JSONObject
from kubewright.api.resources import Object
from kubewright.api.scheduling.v1 import PriorityClass
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.boot import boot_objects

BOOT = {f"{text(found, 'kind')} {text(found, 'metadata', 'name')}": found for found in boot_objects()}


def sent(item: Object) -> JSONObject:
    """What the server sent, not what the type makes of it."""
    return mapping(decode_json(origin(item) or b"{}"))


@pytest.mark.parametrize("kind", [FlowSchema, PriorityLevelConfiguration, PriorityClass])
async def test_there_are_the_settings_of_every_cluster(admin: Client, kind: type[Object]) -> None:
    found = {item.metadata.name: sent(item) for item in await admin.list(kind)}
    ours = {text(obj, "metadata", "name"): obj for obj in BOOT.values() if obj["kind"] == kind.__name__}
    # Other tests may leave more.
    assert ours.keys() <= found.keys()
    for name, expected in ours.items():
        same = {"spec", "value", "description", "preemptionPolicy"} & expected.keys()
        assert {key: found[name][key] for key in same} == {key: expected[key] for key in same}, name
        annotations = mapping(expected, "metadata", "annotations")
        assert mapping(found[name], "metadata", "annotations") == annotations
        assert mapping(found[name], "metadata")["generation"] == 1


async def test_flow_schemas_refer_to_levels_that_exist(admin: Client) -> None:
    levels = {level.metadata.name for level in await admin.list(PriorityLevelConfiguration)}
    for schema in await admin.list(FlowSchema):
        if f"FlowSchema {schema.metadata.name}" not in BOOT:
            continue
        (condition,) = items(sent(schema), "status", "conditions")
        level = text(sent(schema), "spec", "priorityLevelConfiguration", "name")
        assert level in levels
        refusal = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
        assert {name: value for name, value in mapping(condition).items() if name != "lastTransitionTime"} == {
            "type": "Dangling",
            "status": "False",
            "reason": "Found",
            "message": refusal,
        }


async def test_extension_servers_find_the_client_certificate_authority(
    control_plane: ControlPlane, admin: Client
) -> None:
    found = await admin.get(ConfigMap, "extension-apiserver-authentication", namespace="kube-system")
    assert found.data == {"client-ca-file": control_plane.ca_certificate}


async def test_namespaces_and_the_service_of_the_server_exist(admin: Client) -> None:
    names = {namespace.metadata.name for namespace in await admin.list(Namespace)}
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} <= names
    service = await admin.wait_for(Service, "kubernetes", exists, namespace="default", timeout=30)
    assert service is not None
    assert service.metadata.labels == {"component": "apiserver", "provider": "kubernetes"}
    assert [(port.name, port.port) for port in service.spec.ports] == [("https", 443)]
