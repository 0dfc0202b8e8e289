"""Acceptance items 7 to 14: how what happens in the cluster becomes requests for a reconciler."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager

import pytest

from kubewright import Client, Manager, Model, ObjectKey, ObjectMeta, Request, Resource, Result, resource
from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from kubewright.api.core.v1 import (
    ConfigMap,
    Container,
    Node,
    Pod,
    PodSchedulingGate,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServiceAccount,
    ServicePort,
    ServiceSpec,
)
from kubewright.api.meta import LabelSelector
from kubewright.api.resources import Object
from kubewright.controller import (
    Event,
    Handler,
    Predicate,
    Watched,
    controller_for,
    for_object,
    for_owner,
    generation_changed,
    has_labels,
    in_namespaces,
    labels_changed,
    mapped,
    predicate,
    resource_version_changed,
)
from kubewright.testing.namespaces import unique_name

Install = Callable[[type[Object]], Awaitable[None]]
Running = Callable[[Manager], AbstractAsyncContextManager[None]]


class WidgetSpec(Model):
    size: int = 1


class WidgetStatus(Model):
    ready: bool = False


@resource("events-to-requests.acceptance.kubewright.test/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Something to reconcile."""


nothing = Predicate("nothing", lambda event: False)


class Requests:
    """A reconciler that records its requests."""

    def __init__(self) -> None:
        self.all: list[Request] = []
        self._news = asyncio.Condition()

    async def reconcile(self, request: Request) -> Result:
        self.all.append(request)
        async with self._news:
            self._news.notify_all()
        return Result()

    @property
    def names(self) -> set[str]:
        return {request.name for request in self.all}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self._news:
            await self._news.wait_for(holds)


@pytest.fixture
async def client(admin: Client, namespace: str, install: Install) -> Client:
    """A client besides the manager's, which changes objects in the test's namespace."""
    await install(Widget)
    return admin.in_namespace(namespace)


@pytest.fixture
async def node(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[Node]:
    """One that is not there yet."""
    node = Node(metadata=ObjectMeta(name=unique_name(request.node.name)))
    yield node
    await client.delete(node, missing_ok=True)


def widget(name: str, size: int = 1) -> Widget:
    return Widget(metadata=ObjectMeta(name=name), spec=WidgetSpec(size=size))


def pod(name: str, *owners: tuple[Object, bool]) -> Pod:
    """Kept from being scheduled, so that nothing happens to it but what the test does."""
    references = [owner.as_owner(controller=is_controller) for owner, is_controller in owners]
    return Pod(
        metadata=ObjectMeta(name=name, owner_references=references),
        spec=PodSpec(
            containers=[Container(name="app", image="app:1")],
            scheduling_gates=[PodSchedulingGate(name="test.kubewright.dev/stays")],
        ),
    )


async def test_item_07_one_reconciled_kind_many_watched_kinds(
    client: Client, manager: Manager, running: Running
) -> None:
    requests = Requests()

    @mapped
    def named_widget(secret: Secret) -> Iterable[ObjectKey]:
        widget = secret.metadata.annotations.get("widget")
        return [ObjectKey(secret.metadata.namespace, widget)] if widget else []

    controller_for(manager, Widget).owns(ConfigMap).watches(Secret, named_widget).complete(requests)

    async with running(manager):
        owner = await client.create(widget("own"))
        await client.create(widget("owner"))
        await requests.until(lambda: requests.names == {"own", "owner"})
        requests.all.clear()
        await client.create(ConfigMap(metadata=ObjectMeta(name="nobodys")))
        await client.create(ConfigMap(metadata=ObjectMeta(name="owned", owner_references=[owner.as_owner()])))
        await requests.until(lambda: bool(requests.all))
        assert requests.names == {"own"}
        await client.create(Secret(metadata=ObjectMeta(name="nobodys")))
        await client.create(Secret(metadata=ObjectMeta(name="naming", annotations={"widget": "owner"})))
        await requests.until(lambda: "owner" in requests.names)

    assert Counter(requests.all) == {(owner.metadata.namespace, "own"): 1, (owner.metadata.namespace, "owner"): 1}


async def test_item_08_several_watches_added_one_by_one(client: Client, manager: Manager, running: Running) -> None:
    requests = Requests()
    built = controller_for(manager, Widget).complete(requests)
    built.watch(Watched(manager.cache, ConfigMap, for_object, labels={"test": "08"}))

    async with running(manager):
        await client.create(widget("a-widget"))
        await client.create(ConfigMap(metadata=ObjectMeta(name="a-config-map", labels={"test": "08"})))
        await requests.until(lambda: requests.names == {"a-widget", "a-config-map"})
        built.watch(Watched(manager.cache, Secret, for_object, labels={"test": "08"}))
        await client.create(Secret(metadata=ObjectMeta(name="a-secret", labels={"test": "08"})))
        await requests.until(lambda: requests.names == {"a-widget", "a-config-map", "a-secret"})
        unwatch = built.watch(Watched(manager.cache, ServiceAccount, for_object, labels={"test": "08"}))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="an-account", labels={"test": "08"})))
        await requests.until(lambda: "an-account" in requests.names)
        unwatch()
        requests.all.clear()
        for kind in (Widget, ConfigMap, Secret):
            name = {Widget: "a-widget", ConfigMap: "a-config-map", Secret: "a-secret"}[kind]
            await client.delete(kind, name)
        await requests.until(lambda: requests.names == {"a-widget", "a-config-map", "a-secret"})


async def test_item_09_enqueue_for_object(client: Client, namespace: str, manager: Manager, running: Running) -> None:
    requests = Requests()
    controller_for(manager, Widget).complete(requests)

    async with running(manager):
        await client.create(widget("bar"))
        await requests.until(lambda: bool(requests.all))

    assert requests.all == [Request(namespace, "bar")]


@pytest.mark.parametrize(("every_owner", "expected"), [(False, {"leading"}), (True, {"leading", "mere"})])
async def test_item_10_enqueue_for_owner_controller_only_or_every(
    client: Client, manager: Manager, running: Running, every_owner: bool, expected: set[str]
) -> None:
    requests = Requests()
    controller_for(manager, ReplicaSet, where=nothing).owns(Pod, every_owner=every_owner).complete(requests)
    leading, mere = await client.create(replica_set("leading")), await client.create(replica_set("mere"))
    someone = await client.create(widget("leading-of-another-kind"))

    async with running(manager):
        # Before its first pod: the ReplicaSet controller takes away what a set does not want.
        await synced(manager, Pod)
        await client.create(pod("nobodys"))
        await client.create(pod("a-widgets", (someone, True)))
        await client.create(pod("owned", (mere, False)))
        await client.create(pod("led", (leading, True), (mere, False)))
        # Events of one kind arrive in their order: with the last one's request, those of all others are there.
        await requests.until(lambda: "leading" in requests.names)
        await requests.until(lambda: requests.names >= expected)

    assert requests.names == expected


def replica_set(name: str) -> ReplicaSet:
    """One that wants no pods."""
    labels = {"app": name}
    spec = PodSpec(containers=[Container(name="app", image="app:1")])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=spec)
    selector = LabelSelector(match_labels=labels)
    return ReplicaSet(
        metadata=ObjectMeta(name=name), spec=ReplicaSetSpec(replicas=0, selector=selector, template=template)
    )


async def test_item_11_enqueue_from_map_function(
    client: Client, manager: Manager, running: Running, node: Node
) -> None:
    requests = Requests()

    @mapped
    async def all_widgets(changed: Node) -> Iterable[ObjectKey]:
        if changed.metadata.name != node.metadata.name:
            return []
        return [widget.key for widget in await manager.client.list(Widget)]

    controller_for(manager, Widget, where=nothing).watches(Node, all_widgets).complete(requests)
    names = {f"widget-{number}" for number in range(5)}
    for name in names:
        await client.create(widget(name))

    async with running(manager):
        await synced(manager, Widget)
        assert requests.all == []
        await client.create(node)
        await requests.until(lambda: requests.names == names)


async def synced(manager: Manager, kind: type[Object]) -> None:
    """Wait until all objects of a kind are in the cache."""
    with manager.cache.watch(kind) as handle:
        async with asyncio.timeout(30):
            await handle.synced()


async def test_item_12_predicates_filter_and_combine(
    client: Client, namespace: str, manager: Manager, running: Running
) -> None:
    @predicate
    def became_big(old: Widget | None, new: Widget | None) -> bool:
        return (old is None or old.spec.size < 10) and new is not None and new.spec.size >= 10

    where = {
        "generation": generation_changed,
        "or": generation_changed | labels_changed,
        "and": generation_changed & has_labels({"tier": "gold"}),
        "not": ~in_namespaces(namespace),
        "custom": became_big,
        "all": resource_version_changed,
        "default": None,
    }
    seen = {name: Requests() for name in where}
    built = [
        controller_for(manager, Widget, name=name, where=test).complete(seen[name]) for name, test in where.items()
    ]

    async def counts(event: int) -> dict[str, int]:
        """How often each has run after so many events."""
        await seen["all"].until(lambda: len(seen["all"].all) == event)
        # All queues were fed in the same step of the watch, before the reconcile that was waited for.
        while any(len(each.queue) or each.queue.running() for each in built):
            await asyncio.sleep(0)
        return {name: len(requests.all) for name, requests in seen.items()}

    async with running(manager):
        created = await client.create(widget("w"))
        assert await counts(1) == {"generation": 1, "or": 1, "and": 0, "not": 0, "custom": 0, "all": 1, "default": 1}
        created.status.ready = True
        created = await client.status.update(created)
        assert await counts(2) == {"generation": 1, "or": 1, "and": 0, "not": 0, "custom": 0, "all": 2, "default": 1}
        created.metadata.labels["tier"] = "gold"
        created = await client.update(created)
        assert await counts(3) == {"generation": 1, "or": 2, "and": 0, "not": 0, "custom": 0, "all": 3, "default": 2}
        created.spec.size = 10
        created = await client.update(created)
        assert await counts(4) == {"generation": 2, "or": 3, "and": 1, "not": 0, "custom": 1, "all": 4, "default": 3}
        created.spec.size = 11
        await client.update(created)
        assert await counts(5) == {"generation": 3, "or": 4, "and": 2, "not": 0, "custom": 1, "all": 5, "default": 4}


class Held(Requests):
    """Passes that last until they are let go, and how many of one key there were at once."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.most_at_once = 0
        self._now: Counter[Request] = Counter()

    async def reconcile(self, request: Request) -> Result:
        self._now[request] += 1
        self.most_at_once = max(self.most_at_once, self._now[request])
        try:
            result = await super().reconcile(request)
            await self.let_go.wait()
            # Others get their turn, so that a second reconcile of the same key could begin if nothing prevented it.
            await asyncio.sleep(0)
            return result
        finally:
            self._now[request] -= 1


async def test_item_13_a_thousand_events_of_one_owner_cause_one_further_reconcile(
    client: Client, manager: Manager, running: Running
) -> None:
    requests = Held()
    owner = await client.create(widget("owner"))
    pods = [await client.create(pod(f"pod-{number}", (owner, True))) for number in range(10)]
    counted = 0
    all_there = asyncio.Event()

    @Handler
    def count_and_enqueue(event: Event[Object]) -> Iterable[Request]:
        nonlocal counted
        counted += event.verb == "updated" and "round" in event.entry.labels
        if counted >= 1000:
            all_there.set()
        return for_owner(Widget)(event)

    controller_for(manager, Widget, workers=4).watches(Pod, count_and_enqueue).complete(requests)

    async def label_a_hundred_times(target: Pod) -> None:
        for number in range(100):
            target.metadata.labels["round"] = str(number)
            target = await client.patch(target)

    async with running(manager):
        await requests.until(lambda: len(requests.all) == 1)
        async with asyncio.TaskGroup() as group:
            for each in pods:
                group.create_task(label_a_hundred_times(each))
        async with asyncio.timeout(30):
            await all_there.wait()
        assert requests.all == [owner.key]
        requests.let_go.set()
        await requests.until(lambda: len(requests.all) == 2)
        await client.create(widget("later"))
        await requests.until(lambda: "later" in requests.names)

    assert Counter(request.name for request in requests.all) == {"owner": 2, "later": 1}
    assert requests.most_at_once == 1


class Annotating(Requests):
    """Writes one service of a node in each reconcile, and counts what that costs."""

    def __init__(self, manager: Manager, node: str) -> None:
        super().__init__()
        self.costs: list[Counter[str]] = []
        self._manager = manager
        self._node = node

    async def reconcile(self, request: Request) -> Result:
        before = self._answers()
        service = await self._manager.client.get(Service, request)
        service.metadata.annotations["node"] = self._node
        await self._manager.client.patch(service)
        self.costs.append(self._answers() - before)
        return await super().reconcile(request)

    def _answers(self) -> Counter[str]:
        methods: Counter[str] = Counter()
        for (_, method, _), count in self._manager.live.answers.items():
            methods[method] += count
        return methods


async def test_item_14_a_request_is_about_one_object(
    client: Client, manager: Manager, running: Running, node: Node
) -> None:
    requests = Annotating(manager, node.metadata.name)

    @predicate
    def added(old: Node | None, new: Node | None) -> bool:
        return old is None and new is not None and new.metadata.name == node.metadata.name

    @mapped
    async def all_services(added: Node) -> Iterable[ObjectKey]:
        return [service.key for service in await manager.client.list(Service)]

    controller_for(manager, Service, where=nothing).watches(Node, all_services, where=added).complete(requests)
    names = {f"service-{number}" for number in range(5)}
    for name in names:
        await client.create(Service(metadata=ObjectMeta(name=name), spec=ServiceSpec(ports=[ServicePort(port=80)])))

    async with running(manager):
        await synced(manager, Service)
        await client.create(node)
        await requests.until(lambda: len(requests.all) == len(names))

    assert requests.names == names
    assert requests.costs == [{"PATCH": 1}] * len(names)
    annotated = [service.metadata.annotations.get("node") for service in await client.list(Service)]
    assert annotated == [node.metadata.name] * len(names)
