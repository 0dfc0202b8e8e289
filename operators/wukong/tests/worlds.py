"""A cluster in which the operator and the simulators run: in virtual time, or on a control plane that is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from operators.wukong import Disk, Options, Wukong, WukongSnapshot, WukongSpec, setup
from operators.wukong.kubevirt import VirtualMachine, VirtualMachineInstance
from operators.wukong.simulators import (
    DEFINITIONS,
    CDIScript,
    KubeVirtScript,
    NMStateScript,
    SnapshotScript,
    set_up_cdi,
    set_up_kubevirt,
    set_up_nmstate,
    set_up_snapshots,
)

from kubewright import Client, ControlPlane, Field, Manager, ObjectMeta, Quantity
from kubewright.api import Object
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import (
    HostPathVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from kubewright.api.events.v1 import Event
from kubewright.api.storage.v1 import StorageClass
from kubewright.client import MergePatch
from kubewright.controlplane.definitions import DefinitionSource, load_definitions
from kubewright.controlplane.embedded.server.faults import Faults
from kubewright.patterns import get_condition
from kubewright.testing import settled

Kinds = Literal["kubevirt", "snapshots", "cdi", "multus", "nmstate"]
ALL: tuple[Kinds, ...] = ("kubevirt", "snapshots", "cdi", "multus", "nmstate")
MOST: tuple[Kinds, ...] = ("kubevirt", "cdi", "multus")
"""What most tests need: a world with all takes half as long again to begin. Kinds that are missing are polled."""
CONTROLLERS = (
    "garbage-collector",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "pv-protection",
    "pvc-protection",
    "volume-provisioner",
)
PROVISIONER = "csi.kubewright.dev"
STORAGE = ("fast", "late", "fixed", "manual")

T = TypeVar("T", bound=Object)


def definition(kinds: Kinds) -> Path:
    return DEFINITIONS / f"{kinds}.yaml"


@dataclass
class Scripts:
    """What the simulators do."""

    kubevirt: KubeVirtScript = field(default_factory=KubeVirtScript)
    cdi: CDIScript = field(default_factory=CDIScript)
    nmstate: NMStateScript = field(default_factory=NMStateScript)
    snapshots: SnapshotScript = field(default_factory=SnapshotScript)

    def setup(self, manager: Manager, kinds: Sequence[Kinds] = ALL) -> None:
        """Set up the simulators of these kinds."""
        if "kubevirt" in kinds:
            set_up_kubevirt(manager, self.kubevirt)
        if "snapshots" in kinds:
            set_up_snapshots(manager, self.snapshots)
        if "cdi" in kinds:
            set_up_cdi(manager, self.cdi)
        if "nmstate" in kinds:
            set_up_nmstate(manager, self.nmstate)


class World:
    """What a test does and sees, as a user with all rights in one namespace."""

    faults: Faults
    """In virtual time: requests that fail."""
    simulators: Manager | None = None
    """On a control plane that is there: who simulates."""

    def __init__(self, client: Client, own: Client, manager: Manager, scripts: Scripts, suffix: str = "") -> None:
        self.client = client
        self.own = own
        """The client of the operator."""
        self.manager = manager
        self.scripts = scripts
        self._suffix = suffix

    def storage(self, name: str) -> str:
        """The class: fast, late (binds when first used), fixed (cannot grow) or manual (without a provisioner)."""
        return f"{name}{self._suffix}"

    async def create_classes(self) -> None:
        """Create the storage classes."""
        for name in STORAGE:
            await self.client.create(
                StorageClass(
                    metadata=ObjectMeta(name=self.storage(name)),
                    provisioner="manual.example.com" if name == "manual" else PROVISIONER,
                    allow_volume_expansion=True if name != "fixed" else None,
                    reclaim_policy="Delete",
                    volume_binding_mode="WaitForFirstConsumer" if name == "late" else "Immediate",
                )
            )

    def disk(self, name: str = "root", storage: str = "fast", size: str = "1Gi", **fields: object) -> Disk:
        disk = Disk(name=name, size=size, storage_class_name=self.storage(storage))
        for field_name, value in fields.items():
            setattr(disk, field_name, value)
        return disk

    def wukong(self, name: str = "web", **fields: object) -> Wukong:
        """One with a disk, unless it is given others."""
        spec = WukongSpec(cpu=1, disks=[self.disk()])
        for field_name, value in fields.items():
            setattr(spec, field_name, value)
        return Wukong(metadata=ObjectMeta(name=name), spec=spec)

    async def create(self, name: str = "web", **fields: object) -> Wukong:
        return await self.client.create(self.wukong(name, **fields))

    async def get(self, name: str = "web") -> Wukong:
        return await self.client.get(Wukong, name)

    async def machine(self, name: str = "web") -> VirtualMachine:
        return await self.client.get(VirtualMachine, f"{name}-vm")

    async def instance(self, name: str = "web") -> VirtualMachineInstance:
        return await self.client.get(VirtualMachineInstance, f"{name}-vm")

    async def reaches(self, phase: str, name: str = "web", *, timeout: float = 60) -> Wukong:
        found = await self.client.wait_for(Wukong, name, Field("status.phase").equals(phase), timeout=timeout)
        assert found is not None
        return found

    async def becomes(self, holds: Callable[[Wukong], object], name: str = "web", *, timeout: float = 60) -> Wukong:
        found = await self.client.wait_for(Wukong, name, holds, timeout=timeout)
        assert found is not None
        return found

    async def running(self, name: str = "web", **fields: object) -> Wukong:
        """Create one, and wait until it runs and everything is at rest."""
        await self.create(name, **fields)
        await self.reaches("Running", name)
        await self.settled()
        return await self.get(name)

    async def settled(self) -> None:
        """Until the operator is at rest; and what it works for, which on a busy server may take longer."""
        managers = [self.manager] if self.simulators is None else [self.manager, self.simulators]
        await asyncio.gather(*(settled(manager, quiet=0.5) for manager in managers))

    async def change(self, patch: dict[str, object], name: str = "web") -> Wukong:
        return await self.client.patch(Wukong, name, MergePatch({"spec": patch}))

    async def change_disks(self, *disks: Disk, name: str = "web") -> Wukong:
        return await self.change({"disks": [to_json(disk) for disk in disks]}, name)

    async def names(self, kind: type[Object]) -> set[str]:
        return {each.metadata.name for each in await self.client.list(kind)}

    async def bind(self, claim_name: str) -> None:
        """Provide a volume for a claim by hand."""
        claim = await self.client.wait_for(PersistentVolumeClaim, claim_name, lambda claim: True)
        assert claim is not None
        spec = PersistentVolumeSpec(
            access_modes=["ReadWriteOnce"],
            capacity={"storage": Quantity("1Gi")},
            claim_ref=ObjectReference(namespace=claim.metadata.namespace, name=claim_name),
            host_path=HostPathVolumeSource(path="/srv"),
            persistent_volume_reclaim_policy="Retain",
            storage_class_name=claim.spec.storage_class_name,
        )
        metadata = ObjectMeta(name=f"by-hand-{claim.metadata.uid}")
        volume = await self.client.create(PersistentVolume(metadata=metadata, spec=spec))
        await self.client.wait_for(volume, Field("status.phase").satisfies(bool, "is set"))
        # A real controller syncs claims every 15 seconds, unless they change.
        touch = MergePatch({"metadata": {"annotations": {"test": "touched"}}})
        await self.client.patch(PersistentVolumeClaim, claim_name, touch)
        await self.client.wait_for(PersistentVolumeClaim, claim_name, Field("status.phase").equals("Bound"))

    async def install(self, kinds: Kinds) -> None:
        """Install the kinds of others."""
        for loaded in load_definitions([definition(kinds)]):
            await self.client.create(loaded.value)

    async def warnings(self, reason: str) -> list[str]:
        """The notes of events of a reason."""
        return [note or "" for found, note in await self.events() if found == reason]

    async def events(self) -> list[tuple[str | None, str | None]]:
        """Reasons and notes, once they have been written."""
        await asyncio.sleep(2)
        return [(event.reason, event.note) for event in await self.client.list(Event)]


def verdict(wukong: Wukong, type_: str) -> tuple[str, str, str] | None:
    """Status, reason and message of a condition."""
    found = get_condition(wukong, type_)
    return (found.status, found.reason, found.message) if found is not None else None


@asynccontextmanager
async def virtual_world(
    *,
    nmstate: Literal["off", "before", "after"] = "off",
    kinds: Sequence[Kinds] = MOST,
    scripts: Scripts | None = None,
    namespaces: Sequence[str] = (),
) -> AsyncIterator[World]:
    """A world in virtual time, with the kinds that are installed and simulated; the operator in some namespaces."""
    scripts = scripts or Scripts()
    definitions: list[DefinitionSource] = [Wukong, WukongSnapshot, *map(definition, kinds)]
    async with (
        ControlPlane.embedded(definitions=definitions, controllers=CONTROLLERS, nodes=0) as plane,
        plane.client() as admin,
        plane.client() as own,
        plane.client() as simulating,
    ):
        simulators = Manager(simulating, webhook_address="0")
        manager = Manager(own, namespaces=namespaces, webhook_address="0")
        scripts.setup(simulators, kinds)
        setup(manager, Options(nmstate=nmstate))
        world = World(admin.in_namespace("default"), own, manager, scripts)
        world.faults = plane.faults
        await world.create_classes()
        async with AsyncExitStack() as running:
            for each in (simulators, manager):
                if each.controllers:
                    await running.enter_async_context(each.running())
            yield world
