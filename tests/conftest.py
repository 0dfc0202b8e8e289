"""One source, every control plane: `control_plane` is each of them in turn, `client` its admin in a fresh namespace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name

pytest_plugins = ["pytester"]


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
async def own_namespace(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own, on the control plane it runs on."""
    created = await admin.create(Namespace(metadata=ObjectMeta(name=unique_name(request.node.name))))
    await admin.wait_for(ServiceAccount, exists, name="default", namespace=created.metadata.name, timeout=10)
    yield created.metadata.name
    await admin.delete(created, missing_ok=True)
