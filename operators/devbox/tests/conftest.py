"""What the tests of Devboxes use on both control planes: volumes that are there as soon as they are claimed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright import ControlPlane, ObjectMeta
from kubewright.api.storage.v1 import StorageClass
from kubewright.controlplane.controllers.storage_class import DRIVER
from kubewright.controlplane.controllers.volume_provisioner import VolumeProvisioner
from kubewright.testing.namespaces import unique_name


@pytest.fixture
async def storage_class(control_plane: ControlPlane) -> AsyncIterator[str]:
    """The name of a class whose volumes are simulated."""
    async with control_plane.client() as client:
        task = asyncio.create_task(VolumeProvisioner(client).run())
        metadata = ObjectMeta(name=unique_name("devbox"))
        made = await client.create(StorageClass(metadata=metadata, provisioner=DRIVER, reclaim_policy="Delete"))
        yield made.metadata.name
        await client.delete(made)
        task.cancel()
        await asyncio.wait([task])
