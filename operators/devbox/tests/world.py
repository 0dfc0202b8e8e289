"""A Devbox on an embedded control plane, in virtual time, and the operator that reconciles it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from operators.devbox import (
    Committer,
    Config,
    Devbox,
    DevBoxRelease,
    DevboxSpec,
    Network,
    Options,
    Registry,
    devbox_manager,
    setup,
)
from operators.devbox.types import NetworkType, Phase, State

from kubewright import Client, ControlPlane, Field, Manager, ObjectMeta, Quantity
from kubewright.api import Object
from kubewright.api.core.v1 import Event, PersistentVolumeClaim, Pod
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.testing import settled

O = TypeVar("O", bound=Object)  # noqa: E741

LONG = 3600.0
COMMITS = {"app.kubernetes.io/name": "it-commit"}
"""The labels of the pods that commit."""


def devbox(
    *, name: str = "it", namespace: str = "default", state: State = "Running", network: NetworkType = "NodePort"
) -> Devbox:
    return Devbox(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=DevboxSpec(
            image="dev:1",
            resource={"cpu": Quantity("2"), "memory": Quantity("4Gi")},
            network=Network(type=network),
            state=state,
            config=Config(),
        ),
    )


class World:
    """Devboxes in the namespace `default`, mostly just `it`, as their users see them, and the operator."""

    def __init__(self, plane: EmbeddedControlPlane, admin: Client, own: Client, make: Callable[[], Manager]) -> None:
        self.plane = plane
        self.admin = admin
        self.own = own
        self._make = make
        self.manager = make()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the operator, as another process."""
        self.manager = self._make()
        self._task = asyncio.create_task(self.manager.run())
        await self.manager.synced()

    async def kill(self) -> None:
        """End the operator as a crash does."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def create(self, wanted: Devbox | None = None) -> Devbox:
        return await self.admin.create(wanted or devbox())

    async def read(self, name: str = "it") -> Devbox:
        return await self.admin.get(Devbox, name)

    async def change(self, change: Callable[[Devbox], object], name: str = "it") -> Devbox:
        found = await self.read(name)
        change(found)
        return await self.admin.patch(found)

    async def set_state(self, state: State, name: str = "it") -> Devbox:
        return await self.change(lambda found: setattr(found.spec, "state", state), name)

    async def reaches(self, phase: Phase, name: str = "it", timeout: float = LONG) -> Devbox:
        """The Devbox once it is in that phase."""
        found = await self.admin.wait_for(Devbox, name, Field("status.phase").equals(phase), timeout=timeout)
        assert found is not None
        return found

    async def at_rest(self, name: str = "it") -> Devbox:
        """The Devbox once the operator has nothing left to do."""
        await settled(self.manager, quiet=2, timeout=LONG)
        return await self.read(name)

    async def run(self) -> Devbox:
        """A new Devbox, once it runs."""
        await self.create()
        return await self.reaches("Running")

    async def stop_and_run(self) -> Devbox:
        """The Devbox once it was stopped and runs again, from what it has committed."""
        await self.set_state("Stopped")
        await self.reaches("Stopped")
        await self.set_state("Running")
        return await self.reaches("Running")

    async def pod(self, name: str = "it") -> Pod | None:
        return await self.admin.find(Pod, name)

    async def running_pod(self, other_than: str = "") -> Pod:
        """The pod once it runs, if it has another uid."""
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, other_than), "is another")
        running = Field("status.phase").equals("Running")
        found = await self.admin.wait_for(Pod, "it", another & running, timeout=LONG)
        assert found is not None
        return found

    async def claims(self) -> list[str]:
        """The names of all claims."""
        return sorted(each.metadata.name for each in await self.admin.list(PersistentVolumeClaim))

    async def names(self, kind: type[O]) -> list[str]:
        return sorted(each.metadata.name for each in await self.admin.list(kind))

    async def events(self) -> list[tuple[str | None, str | None, str | None]]:
        """The events about the Devbox; they are written a little after what they are about."""
        await asyncio.sleep(5)
        found = await self.admin.list(Event)
        about = [each for each in found if each.involved_object.kind == "Devbox"]
        return [(each.type, each.reason, each.message) for each in about]


@asynccontextmanager
async def running_world(
    *,
    nodes: int = 1,
    options: Options | None = None,
    committer: Committer | None = None,
    registry: Registry | None = None,
) -> AsyncIterator[World]:
    """An operator that runs."""
    plane = ControlPlane.embedded(definitions=[Devbox, DevBoxRelease], nodes=nodes)
    async with plane, plane.client() as admin, plane.client() as own:

        def make() -> Manager:
            manager = devbox_manager(own, webhook_address="0")
            setup(manager, options, committer=committer, registry=registry)
            return manager

        world = World(plane, admin.in_namespace("default"), own, make)
        await world.start()
        try:
            yield world
        finally:
            await world.kill()
