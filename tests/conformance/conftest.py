"""One source, every control plane: `control_plane` is each of them in turn, `client` its admin in a fresh namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import established, exists
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name


@pytest.fixture
async def embedded_control_plane() -> AsyncIterator[ControlPlane]:
    """Without nodes, as the real one is: pods are created, but run nowhere."""
    async with ControlPlane.embedded(nodes=0) as plane:
        yield plane


@pytest.fixture(params=["embedded", "real"])
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    plane = request.getfixturevalue(f"{request.param}_control_plane")
    assert isinstance(plane, ControlPlane)
    return plane


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with control_plane.client() as client:
        yield client


@pytest.fixture
async def namespace(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own, on the control plane it runs on."""
    created = await admin.create(Namespace(metadata=ObjectMeta(name=unique_name(request.node.name))))
    await admin.wait_for(ServiceAccount, exists, name="default", namespace=created.metadata.name, timeout=10)
    yield created.metadata.name
    await admin.delete(created, missing_ok=True)


@pytest.fixture
def client(admin: Client, namespace: str) -> Client:
    return admin.in_namespace(namespace)


@pytest.fixture
async def widgets(admin: Client) -> None:
    """A custom kind, `example.com/v1 Widget`, that stores whatever it is given."""
    anything: JSONValue = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {
                            "status": {},
                            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                        },
                        "schema": {
                            "openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}
                        },
                    }
                ],
            },
        },
    )
    await admin.wait_for(await admin.apply(definition), established)
