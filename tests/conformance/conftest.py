"""One source, every control plane: `control_plane` is each of them in turn, `client` its admin in a fresh namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONValue
from kubewright.client import Client, Config
from kubewright.client.wait import established
from kubewright.controlplane import ControlPlane


@pytest.fixture(params=["real"])
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    plane = request.getfixturevalue(f"{request.param}_control_plane")
    assert isinstance(plane, ControlPlane)
    return plane


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(Config.from_kubeconfig_text(control_plane.kubeconfig())) as client:
        yield client


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
