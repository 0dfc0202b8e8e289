"""Acceptance items 1 to 6 and 20: client, cache, manager, queue, requests, level-triggering and types."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import cast

import pytest

from kubewright import (
    CachedClient,
    Client,
    Condition,
    Conflict,
    ControlPlane,
    Dynamic,
    Manager,
    Model,
    NotFound,
    ObjectKey,
    ObjectMeta,
    Request,
    Resource,
    Result,
    field,
    resource,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import encode, to_json
from kubewright.api.core.v1 import ConfigMap, Service, ServicePort, ServiceSpec
from kubewright.api.errors import DecodeError
from kubewright.api.markers import JSONValue
from kubewright.api.resources import Object, resource_info
from kubewright.api.scheme import Scheme
from kubewright.api.time import now
from kubewright.client import MergePatch
from kubewright.client.errors import NoSuchKind
from kubewright.client.wait import Field, deleted
from kubewright.controller import Predicate, controller_for, for_object, mapped, predicate

GROUP = "framework.acceptance.kubewright.test"

Install = Callable[[type[Object]], Awaitable[None]]
Running = Callable[[Manager], AbstractAsyncContextManager[None]]


class WidgetSpec(Model):
    size: int = 1


class WidgetStatus(Model):
    conditions: list[Condition] = field(default_factory=list)


@resource(f"{GROUP}/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Something to reconcile."""


@pytest.fixture
async def client(admin: Client, namespace: str, install: Install) -> Client:
    """A client besides the manager's, which changes objects in the test's namespace."""
    await install(Widget)
    return admin.in_namespace(namespace)


def widget(name: str, size: int = 1) -> Widget:
    return Widget(metadata=ObjectMeta(name=name), spec=WidgetSpec(size=size))


async def resize(client: Client, name: str, size: int) -> None:
    await client.patch(Widget, name, MergePatch({"spec": {"size": size}}))


UntypedWidget = Dynamic.of(f"{GROUP}/v1", "Widget")
UntypedService = Dynamic.of("v1", "Service")
OPEN = Condition(type="Open", status="True", reason="Test", message="", last_transition_time=now())


def typed_widget() -> Widget:
    return widget("it", 1)


def typed_service() -> Service:
    return Service(metadata=ObjectMeta(name="it"), spec=ServiceSpec(ports=[ServicePort(port=1)]))


def untyped_widget() -> Dynamic:
    return UntypedWidget(metadata=ObjectMeta(name="it"), content={"spec": {"size": 1}})


def untyped_service() -> Dynamic:
    return UntypedService(metadata=ObjectMeta(name="it"), content={"spec": {"ports": [{"port": 1}]}})


def want(obj: Object, number: int) -> None:
    """Change the spec."""
    match obj:
        case Widget():
            obj.spec.size = number
        case Service():
            obj.spec.ports[0].port = number
        case Dynamic(kind="Widget"):
            obj["spec"] = {"size": number}
        case Dynamic():
            obj["spec"] = {**cast("dict[str, JSONValue]", obj["spec"]), "ports": [{"port": number}]}


def number_of(obj: Object) -> JSONValue:
    match obj:
        case Widget():
            return obj.spec.size
        case Service():
            return obj.spec.ports[0].port
        case Dynamic(kind="Widget"):
            return obj.get("spec", "size")
        case Dynamic():
            return obj.get("spec", "ports", 0, "port")
    raise TypeError(obj.kind)


def add_condition(obj: Object) -> None:
    """Change the status."""
    match obj:
        case Widget() | Service():
            obj.status.conditions.append(OPEN)
        case Dynamic():
            obj["status"] = {"conditions": [to_json(OPEN)]}


def condition_types(obj: Object) -> list[JSONValue]:
    match obj:
        case Widget() | Service():
            return [condition.type for condition in obj.status.conditions]
        case Dynamic():
            conditions = obj.get("status", "conditions") or []
            return [Field("type").read(each) for each in cast("list[dict[str, JSONValue]]", conditions)]
    raise TypeError(obj.kind)


@pytest.mark.parametrize("new", [typed_service, untyped_service, typed_widget, untyped_widget])
async def test_item_01_client_typed_and_untyped(client: Client, new: Callable[[], Object]) -> None:
    created = await client.create(new())
    kind = type(created)
    assert (created.metadata.uid != "", number_of(created)) == (True, 1)
    assert await client.get(kind, "it") == created
    assert await client.find(kind, "other") is None
    assert created in await client.list(kind)

    want(created, 2)
    updated = await client.update(created)
    assert (number_of(updated), number_of(await client.get(kind, "it"))) == (2, 2)
    with pytest.raises(Conflict):
        await client.update(created)

    want(updated, 3)
    add_condition(updated)
    patched = await client.patch(updated)
    assert (number_of(patched), condition_types(patched)) == (3, [])

    want(patched, 4)
    add_condition(patched)
    status_updated = await client.status.update(patched)
    assert (number_of(status_updated), condition_types(status_updated)) == (3, ["Open"])

    await client.delete(status_updated)
    assert await client.wait_for(status_updated, deleted, timeout=30) is None
    with pytest.raises(NotFound):
        await client.get(kind, "it")


async def test_item_02_cache_backed_reads_with_watch_updates(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    await client.create(widget("w", 0))
    with manager.cache.watch(Widget) as handle:
        changed = asyncio.Event()
        handle.subscribe(lambda old, new, initial, own: changed.set())
        async with running(manager), asyncio.timeout(30):
            await handle.synced()
            requests = sum(manager.live.answers.values())
            for _ in range(100):
                assert (await manager.client.get(Widget, "w", namespace=namespace)).spec.size == 0
                assert len(await manager.client.list(Widget, namespace=namespace)) == 1
            assert sum(manager.live.answers.values()) == requests

            # The median, because on a busy machine any single one may be held up for any time.
            delays = []
            for size in range(1, 6):
                changed.clear()
                await resize(client, "w", size)
                answered = asyncio.get_running_loop().time()
                while (await manager.client.get(Widget, "w", namespace=namespace)).spec.size != size:
                    await changed.wait()
                    changed.clear()
                delays.append(asyncio.get_running_loop().time() - answered)
            assert statistics.median(delays) < 1.0
            assert sum(manager.live.answers.values()) == requests


class Lasting:
    """A reconciler whose reconciles last until they are let go."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.let_go = asyncio.Event()
        self._news = asyncio.Condition()

    async def reconcile(self, request: Request) -> Result:
        self.begun.append(request.name)
        await self._notify()
        await self.let_go.wait()
        self.ended.append(request.name)
        await self._notify()
        return Result()

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(holds)


async def test_item_03_manager_creates_shares_starts_stops(
    client: Client, control_plane: ControlPlane, namespace: str
) -> None:
    await client.create(widget("w"))
    async with control_plane.client() as own:
        manager = Manager(own, namespaces=[namespace], grace=20.0)
        first, second = Lasting(manager.client), Lasting(manager.client)
        controller_for(manager, Widget, name="first").owns(ConfigMap).complete(first)
        controller_for(manager, Widget, name="second").owns(ConfigMap).complete(second)
        assert first.client is second.client
        run = asyncio.create_task(manager.run())
        await first.until(lambda: first.begun == ["w"])
        await second.until(lambda: second.begun == ["w"])
        kinds = [resource_info(kind).gvk for kind in (Widget, ConfigMap)]
        assert [len(manager.cache.informers(kind)) for kind in kinds] == [1, 1]
        # By their names: an embedded server and its controllers run in the same loop.
        names = ("first", "second", namespace)
        tasks = [task for task in asyncio.all_tasks() if any(name in task.get_name() for name in names)]
        assert {task.get_name() for task in tasks} >= {"first: worker 0", "second: worker 0", "sources of first"}

        manager.stop()
        first.let_go.set()
        second.let_go.set()
        async with asyncio.timeout(20.0):
            await run
        assert (first.ended, second.ended) == (["w"], ["w"])
        assert manager.cache.informers() == []
    assert [task for task in tasks if not task.done()] == []


async def test_item_04_a_slow_reconcile_does_not_hold_up_events(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    slow = Lasting(manager.client)
    names = {f"widget-{number}" for number in range(20)}
    enqueued: set[str] = set()
    all_there = asyncio.Event()

    @mapped
    def note(changed: Widget) -> Iterable[ObjectKey]:
        enqueued.add(changed.metadata.name)
        if enqueued >= names:
            all_there.set()
        return [changed.key]

    built = controller_for(manager, Widget, where=Predicate("nothing", lambda event: False)).watches(Widget, note)
    running_controller = built.complete(slow)

    async with running(manager):
        await client.create(widget("first"))
        await slow.until(lambda: slow.begun == ["first"])
        for name in names:
            await client.create(widget(name))
        async with asyncio.timeout(30):
            await all_there.wait()
        assert (slow.begun, slow.ended, len(running_controller.queue)) == (["first"], [], 20)
        assert len(await manager.client.list(Widget, namespace=namespace)) == 21
        slow.let_go.set()
        await slow.until(lambda: set(slow.ended) == names | {"first"})


class Arguments:
    """A reconciler that takes whatever it is given."""

    def __init__(self) -> None:
        self.calls: asyncio.Queue[tuple[tuple[object, ...], dict[str, object]]] = asyncio.Queue()

    async def reconcile(self, *positional: object, **named: object) -> Result:
        self.calls.put_nowait((positional, named))
        return Result()


async def test_item_05_a_request_is_namespace_and_name(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    arguments = Arguments()
    controller_for(manager, Widget).complete(arguments)
    expected: tuple[object, ...] = ((Request(namespace, "w"),), {})

    async with running(manager), asyncio.timeout(30):
        await client.create(widget("w"))
        created = await arguments.calls.get()
        await resize(client, "w", 2)
        updated = await arguments.calls.get()
        await client.delete(Widget, "w")
        gone = await arguments.calls.get()

    assert [created, updated, gone] == [expected] * 3
    assert Request._fields == ("namespace", "name")


class Copying:
    """Keeps a ConfigMap that says how big the widget is, and none when there is no widget."""

    def __init__(self, client: CachedClient) -> None:
        self._client = client

    async def reconcile(self, request: Request) -> Result:
        found = await self._client.find(Widget, request)
        present = await self._client.find(ConfigMap, request)
        if found is None or found.metadata.deletion_timestamp is not None:
            return Result()
        desired = {"size": str(found.spec.size)}
        if present is None:
            meta = ObjectMeta(name=request.name, namespace=request.namespace, owner_references=[found.as_owner()])
            await self._client.create(ConfigMap(metadata=meta, data=desired))
        elif present.data != desired:
            present.data = desired
            await self._client.update(present)
        return Result()


@pytest.mark.parametrize("events", ["each once", "each three times", "most of them lost", "all missed while stopped"])
async def test_item_06_lost_and_repeated_events_lead_to_the_same_state(
    client: Client, manager: Manager, running: Running, events: str
) -> None:
    @predicate
    def is_last(old: Widget | None, new: Widget | None) -> bool:
        return new is not None and new.spec.size == 5

    lost = events == "most of them lost"
    built = controller_for(manager, Widget, where=is_last if lost else None)
    if not lost:
        built.owns(ConfigMap)
    if events == "each three times":
        built.watches(Widget, mapped(lambda changed: [changed.key])).watches(Widget, for_object)
    built.complete(Copying(manager.client))

    async def happen() -> None:
        for name in ("a", "b", "c"):
            await client.create(widget(name))
        for size in range(2, 6):
            for name in ("a", "b", "c"):
                await resize(client, name, size)

    missed = events == "all missed while stopped"
    if missed:
        await happen()
    async with running(manager):
        if not missed:
            await happen()
        for name in ("a", "b", "c"):
            await client.wait_for(ConfigMap, name, Field("data.size").equals("5"), timeout=30)

    copies = {each.metadata.name: each.data for each in await client.list(ConfigMap) if each.metadata.owner_references}
    assert copies == {name: {"size": "5"} for name in ("a", "b", "c")}


async def test_item_20_types_lists_and_registration(client: Client) -> None:
    created = await client.create(widget("w", 7))
    scheme = Scheme(Widget)
    read = scheme.decode(encode(created))
    assert isinstance(read, Widget)
    assert read == created
    assert (read.spec.size, read.metadata.uid, read.status.conditions) == (7, created.metadata.uid, [])
    assert scheme.type_for(f"{GROUP}/v1", "Widget") is Widget

    listed = await client.list(Widget)
    assert [type(each) for each in listed] == [Widget]
    definition = await client.get(CustomResourceDefinition, f"widgets.{GROUP}")
    assert definition.spec.names.list_kind == "WidgetList"

    @resource(f"{GROUP}/v1", kind="Widget")
    class Another(Resource[WidgetSpec, WidgetStatus]):
        """One class too many for the kind."""

    with pytest.raises(ValueError, match=f"{GROUP}/v1 Widget is registered as Widget already"):
        scheme.register(Another)
    assert issubclass(scheme.type_for(f"{GROUP}/v1", "Gizmo"), Dynamic)
    with pytest.raises(DecodeError, match=r"not a Kubernetes object: .*kind"):
        scheme.decode(b'{"apiVersion":"v1"}')
    with pytest.raises(NoSuchKind, match=f"no such kind, Gizmo in {GROUP}/v1 .kinds there: Widget.: is its Custom"):
        await client.get(scheme.type_for(f"{GROUP}/v1", "Gizmo"), "g")
