"""The world that an operator is put through, and what has to hold after every fault.

Converged: each Widget has its one child and its status, of its newest generation; nothing else is left; the operator's
queue is empty and its cache is what the server has. Never: two reconciles of one Widget at once, or a child created
twice. After the end: no task and no file descriptor more than before.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

import pytest
from tests.faults.widgets import ASKING, Ledger, Operator, Widget, WidgetSpec, revisions
from tests.faults.wire import Wire

from kubewright import Client, ControlPlane, ObjectMeta
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.client.wait import deleted, established
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.user import User
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.manager import GRACE
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import run_virtual

PATIENCE = 3600.0  # virtual seconds


class World:
    """A control plane, the Widgets that its users want, and the operators that run."""

    def __init__(self, plane: ControlPlane, admin: Client, namespace: str, user: User) -> None:
        self.plane = plane
        self.admin = admin
        self.namespace = namespace
        self.user = user
        self.ledger = Ledger()
        self.operators: list[Operator] = []
        self.wanted: dict[str, str] = {}
        self.births = 0
        """How many children had to be created."""
        self.creates: Counter[int] = Counter()
        """The number of such requests that the server answered. Embedded servers only."""
        self.unanswered = 0
        """How many of them an operator did not see: the response was lost, or came after its death."""
        self.binding: ClusterRoleBinding | None = None

    @property
    def embedded(self) -> EmbeddedControlPlane:
        assert isinstance(self.plane, EmbeddedControlPlane)
        return self.plane

    # Its users

    async def make(self, name: str, value: str = "one") -> None:
        self.wanted[name] = value
        self.births += 1
        metadata = ObjectMeta(name=name, namespace=self.namespace)
        await self.admin.create(Widget(metadata=metadata, spec=WidgetSpec(value=value)))

    async def change(self, name: str, value: str) -> None:
        self.wanted[name] = value
        widget = await self.admin.get(Widget, name, namespace=self.namespace)
        widget.spec.value = value
        await self.admin.patch(widget)

    async def remove(self, name: str) -> None:
        del self.wanted[name]
        if not self.operators and await self.admin.find(ConfigMap, name, namespace=self.namespace) is None:
            self.births -= 1  # it will not come to that any more
        await self.admin.delete(Widget, name, namespace=self.namespace)

    async def lose_child(self, name: str) -> None:
        child = await self.admin.find(ConfigMap, name, namespace=self.namespace)
        if child is not None:
            self.births += 1
            await self.admin.delete(child)

    async def install(self) -> None:
        definition = definition_of(Widget)
        await self.admin.create(definition)
        await self.admin.wait_for(type(definition), definition.metadata.name, established, timeout=60)

    async def uninstall(self) -> None:
        """Remove the kind, and all its objects with it."""
        self.wanted.clear()
        definition = await self.admin.get(CustomResourceDefinition, definition_of(Widget).metadata.name)
        await self.admin.delete(definition)
        await self.admin.wait_for(definition, deleted, timeout=60)

    async def abandon(self) -> None:
        """Remove the kind and its objects, without waiting for what an operator would do."""
        if await self.admin.find(CustomResourceDefinition, definition_of(Widget).metadata.name) is None:
            return
        for widget in await self.admin.list(Widget, namespace=self.namespace):
            widget.metadata.finalizers.clear()
            await self.admin.patch(widget)
        await self.uninstall()

    async def collect_garbage(self) -> None:
        """Remove all children."""
        await self.admin.delete_all(ConfigMap, namespace=self.namespace, labels="widget")

    async def permit(self) -> None:
        subject = Subject(kind="User", name=self.user.name, api_group="rbac.authorization.k8s.io")
        role = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=self.user.name)
        self.binding = await self.admin.create(
            ClusterRoleBinding(metadata=ObjectMeta(name=self.user.name), subjects=[subject], role_ref=role)
        )

    async def forbid(self) -> None:
        assert self.binding is not None
        await self.admin.delete(self.binding)

    # Its operators

    def connect(self, *, dies_at: int = 0, takes_effect: bool = False) -> tuple[Client, Wire]:
        """A connection of the operator's user within this process."""
        client = self.embedded.client(self.user)
        session = client._operations.session
        session._transport = wire = Wire(session._transport, dies_at=dies_at, takes_effect=takes_effect)
        return client, wire

    def operate(
        self,
        client: Client | None = None,
        *,
        election: LeaderElection | None = None,
        timeout: float | None = None,
        grace: float = GRACE,
        stream: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> Operator:
        """Start an operator."""
        client = client or self.plane.client(self.user)
        operator = Operator(
            client,
            self.ledger,
            self.namespace,
            election=election,
            timeout=timeout,
            grace=grace,
            stream=stream,
            now=now,
        )
        self.operators.append(operator)
        return operator

    async def dismiss(self, operator: Operator) -> None:
        """End an operator as its user would; its failure is raised."""
        self.operators.remove(operator)
        await operator.stop()

    # What has to hold

    async def converged(self, patience: float = PATIENCE) -> None:
        """Wait until everything is as it is wanted, and at rest."""
        pause = 0.02
        found: list[str] = []
        try:
            async with asyncio.timeout(patience):
                while found := await self.differences():
                    for operator in self.operators:
                        if operator.task.done():
                            operator.task.result()
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, patience / 360)
        except TimeoutError:
            raise AssertionError(f"not converged after {patience:g} s: {found}") from None

    async def differences(self) -> list[str]:
        """What is not as it is wanted."""
        namespace = self.namespace
        widgets = {widget.metadata.name: widget for widget in await self.admin.list(Widget, namespace=namespace)}
        maps = await self.admin.list(ConfigMap, namespace=namespace)
        children = {child.metadata.name: child for child in maps if "widget" in child.metadata.labels}
        found = [f"Widget {name} is still there" for name in widgets.keys() - self.wanted.keys()]
        found += [f"ConfigMap {name} is left over" for name in children.keys() - self.wanted.keys()]
        for name, value in self.wanted.items():
            found += wrong(name, value, widgets.get(name), children.get(name))
        working = [operator for operator in self.operators if operator.is_at_work()]
        if len(working) != 1:
            found.append(f"{len(working)} operators work")
        for operator in working:
            found += operator.unsettled()
            if await operator.cached(Widget, namespace) != revisions(widgets.values()):
                found.append("the cache has other Widgets than the server")
            if await operator.cached(ConfigMap, namespace) != revisions(maps):
                found.append("the cache has other ConfigMaps than the server")
        return found

    async def described(self) -> list[str]:
        """All that there is, but for what is different each time: ids, revisions and times."""
        widgets = await self.admin.list(Widget, namespace=self.namespace)
        maps = await self.admin.list(ConfigMap, namespace=self.namespace)
        said = []
        for metadata, content in [
            *((widget.metadata, str((widget.spec, widget.status))) for widget in widgets),
            *((child.metadata, str(child.data)) for child in maps),
        ]:
            owners = [(owner.kind, owner.name, owner.controller) for owner in metadata.owner_references]
            known = (metadata.name, metadata.generation, metadata.labels, metadata.finalizers, owners)
            said.append(re.sub(r"last_transition_time=.*?\), ", "", f"{known} {content}"))
        return said

    async def verify(self) -> None:
        """End every operator, and check: each child was created once, no two reconciles of a key overlapped."""
        for operator in list(self.operators):
            await self.dismiss(operator)
        assert self.ledger.mistakes == []
        assert self.ledger.under_way == {}
        assert self.ledger.created + self.unanswered == self.births
        if isinstance(self.plane, EmbeddedControlPlane):
            assert self.creates[201] == self.births
            # It is not even tried again: an operator knows what it wrote, however far its watch is behind.
            assert self.creates[409] <= self.unanswered


def wrong(name: str, value: str, widget: Widget | None, child: ConfigMap | None) -> list[str]:
    """What is not as it should be of one Widget."""
    if widget is None:
        return [f"Widget {name} is missing"]
    found = []
    if widget.spec.value != value or widget.metadata.deletion_timestamp is not None:
        found.append(f"Widget {name} is another one: {widget}")
    if child is None:
        found.append(f"ConfigMap {name} is missing")
    elif child.data != {"value": value} or [each.uid for each in child.metadata.owner_references] != [
        widget.metadata.uid
    ]:
        found.append(f"ConfigMap {name} is {child}")
    status, generation = widget.status, widget.metadata.generation
    conditions = [(each.type, each.status, each.observed_generation) for each in status.conditions]
    if (status.value, status.observed_generation, conditions) != (value, generation, [("Ready", "True", generation)]):
        found.append(f"the status of {name} in generation {generation} is {status}")
    return found


def open_files() -> set[str]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names are all there is
        try:
            found.add(f"{descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}")  # noqa: PTH115  # as above
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


async def leaked(tasks: set[asyncio.Task[object]], files: set[str]) -> list[str]:
    """Tasks and open files that are there now and were not then, after those had their time that are just ending."""
    for _ in range(100):
        # This one need not be the one that began: the end of a fixture has a task of its own.
        found = [f"task {task}" for task in asyncio.all_tasks() - tasks if task is not asyncio.current_task()]
        found += sorted(open_files() - files)
        if not found:
            break
        await asyncio.sleep(0.05)
    return found


async def count_creates(plane: EmbeddedControlPlane, creates: Counter[int]) -> None:
    async for event in plane.audit.follow():
        if (event.verb, event.resource) == ("create", "configmaps"):
            creates[event.status] += 1


@asynccontextmanager
async def world_on(plane: ControlPlane, namespace: str, user: User) -> AsyncIterator[World]:
    """A world with the kind installed and its operator's user permitted; verified at the end, and then taken down."""
    tasks, files = asyncio.all_tasks(), open_files()
    async with plane.client() as admin:
        world = World(plane, admin, namespace, user)
        counting: asyncio.Task[None] | None = None
        if isinstance(plane, EmbeddedControlPlane):
            counting = asyncio.create_task(count_creates(plane, world.creates))
        rules = [
            PolicyRule(api_groups=["faults.example.com"], resources=["widgets", "widgets/status"], verbs=["*"]),
            PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["*"]),
            PolicyRule(api_groups=["coordination.k8s.io"], resources=["leases"], verbs=["*"]),
        ]
        role = await admin.create(ClusterRole(metadata=ObjectMeta(name=user.name), rules=rules))
        await world.permit()
        await world.install()
        try:
            yield world
            await world.verify()
        finally:
            for operator in world.operators:
                await operator.kill()
            if counting is not None:
                counting.cancel()
                await asyncio.wait((counting,))
            await world.abandon()
            await world.collect_garbage()
            await world.forbid()
            await admin.delete(role)
    assert await leaked(tasks, files) == []


class InWorld(Protocol):
    """Runs a scenario in virtual time, on an embedded control plane in the same process."""

    def __call__(self, scenario: Callable[[World], Awaitable[None]], clock: Clock | None = None) -> None: ...


@pytest.fixture
def in_world() -> InWorld:
    def run(scenario: Callable[[World], Awaitable[None]], clock: Clock | None = None) -> None:
        async def main() -> None:
            async with (
                ControlPlane.embedded(controllers=[], clock=clock) as plane,
                world_on(plane, "default", plane.add_user("operator")) as world,
            ):
                await scenario(world)

        run_virtual(main)

    return run


@pytest.fixture
def new_world() -> Callable[[ControlPlane, str, User], AbstractAsyncContextManager[World]]:
    return world_on


@pytest.fixture
def operators_only() -> Callable[[Callable[[Target], bool]], Callable[[Target], bool]]:
    """Confines what a fault strikes to what the operator asks, so that the test itself still sees what there is."""

    def confined(chooses: Callable[[Target], bool]) -> Callable[[Target], bool]:
        return lambda target: ASKING.get() and chooses(target)

    return confined
