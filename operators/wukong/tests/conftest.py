"""The operator, the simulators and some storage on each control plane, the operator with exactly its role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from operators.conftest import AsOperator
from operators.wukong import Wukong, WukongSnapshot, setup
from operators.wukong.cdi import DataVolume
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance
from operators.wukong.simulators import DEFINITIONS
from operators.wukong.tests.worlds import STORAGE, Scripts, World

from kubewright import Client, ControlPlane, Manager
from kubewright.api.core.v1 import PersistentVolume
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.controlplane.controllers.volume_provisioner import VolumeProvisioner
from kubewright.testing import Install


@pytest.fixture
async def world(
    control_plane: ControlPlane, admin: Client, namespace: str, install: Install, as_operator: AsOperator
) -> AsyncIterator[World]:
    """Simulators and storage work; the manager of the operator is set up and does not run yet."""
    await install(Wukong, WukongSnapshot, DEFINITIONS)
    manager = Manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager)
    async with control_plane.client() as simulating:
        simulators = Manager(simulating, namespaces=[namespace], webhook_address="0")
        world = World(admin.in_namespace(namespace), manager.live, manager, Scripts(), f"-{namespace}")
        world.scripts.setup(simulators)
        world.simulators = simulators
        await world.create_classes()
        storage = asyncio.create_task(VolumeProvisioner(simulating).run())
        async with simulators.running():
            yield world
        storage.cancel()
        await asyncio.wait([storage])
        await release(world.client)
        for name in STORAGE:
            await admin.delete(StorageClass, world.storage(name))
        await delete_volumes(admin, {world.storage(name) for name in STORAGE})


async def release(client: Client) -> None:
    """Take the finalizers off what nobody is left to clean up: it would keep its namespace, and its definition."""
    for kind in (Wukong, WukongSnapshot, VirtualMachine, VirtualMachineInstance, DataVolume):
        for obj in await client.list(kind):
            if obj.metadata.finalizers:
                await client.patch(kind, obj.metadata.name, MergePatch({"metadata": {"finalizers": None}}))


async def delete_volumes(admin: Client, classes: set[str]) -> None:
    """Delete what the provisioner, which is gone, would delete after the claims: other tests list what there is."""
    for volume in await admin.list(PersistentVolume):
        if volume.spec.storage_class_name in classes:
            await admin.delete(volume, missing_ok=True)
            await admin.patch(PersistentVolume, volume.metadata.name, MergePatch({"metadata": {"finalizers": None}}))
