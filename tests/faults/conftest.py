"""A small operator, the world it is put through, and what has to hold after every fault.

Converged: each Widget has its one child and its status, of its newest generation; nothing else is left; the operator's
queue is empty and its cache is what the server has. Never: two passes of one Widget at once, or a child created twice.
After the end: no task and no file descriptor more than before.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime
from typing import Protocol

import pytest

from kubewright import (
    CachedClient,
    Client,
    Condition,
    ControlPlane,
    Manager,
    Model,
    ObjectMeta,
    Request,
    Resource,
    field,
    resource,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.api.resource import Object
from kubewright.client.errors import ConnectionLost
from kubewright.client.http.response import ByteStream
from kubewright.client.http.transport import Response, StreamedResponse, Transport
from kubewright.client.wait import deleted, established
from kubewright.controller import controller
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.request import Target
from kubewright.controlplane.user import User
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.manager import GRACE
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import run_virtual

FINALIZER = "faults.example.com/child"
PATIENCE = 3600.0  # virtual seconds
EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}}\n'
)
ASKING: ContextVar[bool] = ContextVar("the operator asks", default=False)


class WidgetSpec(Model):
    value: str


class WidgetStatus(Model):
    value: str = ""
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)


@resource("faults.example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Has its value in a ConfigMap of its name."""


class Ledger:
    """What the passes of all operators of a world did."""

    def __init__(self) -> None:
        self.under_way: dict[Request, WidgetReconciler] = {}
        self.passes: Counter[str] = Counter()
        self.created = 0
        self.mistakes: list[str] = []


async def nothing(request: Request) -> None:
    """What happens in a pass that a test has no plans for."""


class WidgetReconciler:
    """Finalizer, child, status, in this order; and back. `before` is what a test wants to happen in each pass."""

    def __init__(self, client: CachedClient, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self.client = client
        self.ledger = ledger
        self.now = now
        self.before: Callable[[Request], Awaitable[None]] = nothing

    async def reconcile(self, request: Request) -> None:
        if request in self.ledger.under_way:
            self.ledger.mistakes.append(f"two passes of {request} at once")
        if any(other is not self for other in self.ledger.under_way.values()):
            self.ledger.mistakes.append(f"a pass of {request} while another operator was at work")
        self.ledger.under_way[request] = self
        try:
            self.ledger.passes[request.name] += 1
            await self.before(request)
            await self.converge(request)
        finally:
            del self.ledger.under_way[request]

    async def converge(self, request: Request) -> None:
        widget = await self.client.find(Widget, request)
        if widget is None:
            return
        child = await self.client.find(ConfigMap, request)
        if widget.metadata.deletion_timestamp is not None:
            if child is not None:
                await self.client.delete(child, uid=child.metadata.uid, missing_ok=True)
            if FINALIZER in widget.metadata.finalizers:
                widget.metadata.finalizers.remove(FINALIZER)
                await self.client.update(widget)
            return
        if FINALIZER not in widget.metadata.finalizers:
            widget.metadata.finalizers.append(FINALIZER)
            widget = await self.client.update(widget)
        data = {"value": widget.spec.value}
        if child is None:
            await self.client.create(ConfigMap(metadata=child_of(widget), data=data))
            self.ledger.created += 1
        elif child.data != data:
            child.data = data
            await self.client.update(child)
        await self.report(widget)

    async def report(self, widget: Widget) -> None:
        status = widget.status
        status.value = widget.spec.value
        status.observed_generation = widget.metadata.generation
        since = status.conditions[0].last_transition_time if status.conditions else self.now().replace(microsecond=0)
        status.conditions = [
            Condition(
                type="Ready",
                status="True",
                reason="HasChild",
                observed_generation=widget.metadata.generation,
                last_transition_time=since,
            )
        ]
        await self.client.status.patch(widget)


def child_of(widget: Widget) -> ObjectMeta:
    return ObjectMeta(
        name=widget.metadata.name,
        namespace=widget.metadata.namespace,
        labels={"widget": widget.metadata.name},
        owner_references=[widget.as_owner()],
    )


class Wire:
    """An operator's way to the server, in the hands of a test: its calls are counted, and at one of them it may die.

    From then on nothing reaches the server and nothing comes back, as with a process that was killed.
    """

    def __init__(self, inner: Transport, *, dies_at: int = 0, takes_effect: bool = False) -> None:
        """At call number `dies_at` it dies: before the call reaches the server, or before the answer comes back."""
        self.calls = 0
        self.died = asyncio.Event()
        self.lost_answers: Counter[str] = Counter()
        """How many answers are still to be lost, by method."""
        self.unheard: list[str] = []
        """What took effect after it had died, or with its death: the method and path of each call."""
        self._inner = inner
        self._dies_at = dies_at
        self._takes_effect = takes_effect
        self._streams: list[_Tapped] = []

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        is_last = await self._count()
        response = await self._inner.request(method, target, headers, body, timeout=timeout)
        await self._answered(is_last, f"{method} {target.partition('?')[0]}")
        if self.lost_answers[method]:
            self.lost_answers[method] -= 1
            raise ConnectionLost(f"{method}: the connection was closed without an answer")
        return response

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        is_last = await self._count()
        response = await self._inner.stream(method, target, headers, body, timeout=timeout)
        self._streams.append(tapped := _Tapped(response._body))
        await self._answered(is_last, f"{method} {target.partition('?')[0]}")
        return StreamedResponse(response.status, response.headers, tapped)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def expire(self) -> None:
        """Have the server say, on every open watch, that it has expired."""
        for stream in self._streams:
            stream.last = EXPIRED
            await stream.inner.aclose()
        self._streams.clear()

    async def _count(self) -> bool:
        """Count a call; returns whether it is the last one. Never returns when the process is dead."""
        self.calls += 1
        is_last = self.calls == self._dies_at
        if is_last and not self._takes_effect:
            self.died.set()
        await self._live()
        return is_last

    async def _answered(self, is_last: bool, call: str) -> None:
        if is_last:
            self.died.set()
        if self.died.is_set():
            self.unheard.append(call)
        await self._live()

    async def _live(self) -> None:
        if self.died.is_set():
            await asyncio.Event().wait()


class _Tapped:
    """A stream that a test can end with a line of its own."""

    def __init__(self, inner: ByteStream) -> None:
        self.inner = inner
        self.last: bytes | None = None

    async def receive(self, idle_timeout: float | None = None) -> bytes:
        if self.last is None:
            try:
                return await self.inner.receive(idle_timeout)
            except ConnectionLost:
                if self.last is None:
                    raise
        line, self.last = self.last, b""
        return line

    async def aclose(self) -> None:
        await self.inner.aclose()


class Operator:
    """The program under test: a manager with one controller, and the connection that it owns."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        namespace: str,
        *,
        election: LeaderElection | None = None,
        timeout: float | None = None,
        grace: float = GRACE,
        stream: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.manager = Manager(client, namespaces=[namespace], election=election, grace=grace, stream=stream)
        self.reconciler = WidgetReconciler(self.manager.client, ledger, now)
        self.controller = (
            controller(self.manager, Widget, workers=4, timeout=timeout).owns(ConfigMap).complete(self.reconciler)
        )
        self._client = client
        context = copy_context()
        context.run(ASKING.set, True)
        self.task = asyncio.create_task(self._run(), context=context)

    async def _run(self) -> None:
        async with self._client:
            await self.manager.run()

    def is_at_work(self) -> bool:
        return self.manager.elected.is_set()

    async def stop(self) -> None:
        """End it as its user would; a failure is raised."""
        self.manager.stop()
        await self.task

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))

    def unsettled(self) -> list[str]:
        """What it still has to do."""
        queue = self.controller.queue.snapshot()
        counts = queue["counts"]
        found = [] if counts == {"due": 0, "running": 0, "delayed": 0} else [f"the queue holds {queue}"]
        if self.controller.missing is not None:
            found.append(self.controller.missing)
        informers = self.manager.cache.informers()
        return found + [f"{each.kind_name} is {each.state}" for each in informers if each.state != "watching"]

    async def cached(self, kind: type[Object], namespace: str) -> dict[str, str]:
        return revisions(await self.manager.client.list(kind, namespace=namespace, consistency="cached"))


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
        """How many times the server was asked to, by its answers. Embedded servers only."""
        self.unanswered = 0
        """How many of them an operator was not told of: the answer was lost, or came after its death."""
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
        await self.admin.wait_for(type(definition), established, name=definition.metadata.name, timeout=60)

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
        """End every operator, and see that each child was created once and no pass ran beside another of its key."""
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


def revisions(objects: Iterable[Object]) -> dict[str, str]:
    return {each.metadata.name: each.metadata.resource_version for each in objects}


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
