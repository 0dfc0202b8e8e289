"""Watches as sources, in virtual time, on an embedded control plane without sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests.controller.feeding import feeding, keys, not_ready_reason, taken
from tests.controller.scripted import cancelled_task

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, ServiceAccount
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource, resource
from kubewright.cache import Cache, CachedClient
from kubewright.cache.write_context import reconcile_priority
from kubewright.client import Client
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, for_object, mapped
from kubewright.controller.predicates import Predicate, in_namespaces, labels_changed
from kubewright.controller.queue import Queue, Reason
from kubewright.controller.reconcile import Request
from kubewright.controller.source import INITIAL_PRIORITY
from kubewright.controller.watched import Watched
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manifest.crd import crd_of
from kubewright.testing.virtual_time import run_virtual, virtual


class World:
    def __init__(self, plane: EmbeddedControlPlane, client: Client, cache: Cache) -> None:
        self.plane = plane
        self.client = client
        self.cache = cache
        self.queue = Queue[Request]()

    async def create(self, name: str, **labels: str) -> ConfigMap:
        metadata = ObjectMeta(name=name, namespace="default", labels=labels)
        return await self.client.create(ConfigMap(metadata=metadata))

    async def keys(self) -> list[str]:
        """Names of what was put into the queue by all that has happened."""
        await asyncio.sleep(10)
        return [request.name for request in await keys(self.queue)]


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        assert isinstance(plane, EmbeddedControlPlane)
        cache = Cache(client, namespaces=["default"])  # the plane keeps settings of its own elsewhere
        task = asyncio.create_task(cache.run())
        try:
            yield World(plane, client, cache)
        finally:
            task.cancel()
            await asyncio.wait((task,))


def reads_config_maps(target: Target) -> bool:
    return target.verb in ("list", "watch") and target.resource == "configmaps"


def why(what: str, name: str) -> tuple[Reason, ...]:
    return (Reason("ConfigMap", what, ObjectKey("default", name)),)


@virtual
async def test_existing_objects_are_reconciled_after_changes() -> None:
    async with world() as here:
        await here.create("old")
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            await source.synced()
            assert await taken(here.queue) == [(Request("default", "old"), INITIAL_PRIORITY, why("added", "old"))]
            created = await here.create("new")
            await asyncio.sleep(1)
            assert await taken(here.queue) == [(Request("default", "new"), 0, why("added", "new"))]
            created.data["x"] = "1"
            await here.client.update(created)
            await asyncio.sleep(1)
            assert await taken(here.queue) == [(Request("default", "new"), 0, why("updated", "new"))]
            await here.client.delete(created)
            await asyncio.sleep(1)
            assert await taken(here.queue) == [(Request("default", "new"), 0, why("deleted", "new"))]


@virtual
async def test_all_existing_objects_are_enqueued_when_the_source_is_synced() -> None:
    async with world() as here:
        names = [f"{number:03}" for number in range(300)]
        for name in names:
            await here.create(name)
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            await source.synced()
            assert len(here.queue) == 300


@virtual
async def test_an_own_write_is_recognized_and_has_the_priority_of_its_reconcile() -> None:
    async with world() as here:
        client = CachedClient(here.client, here.cache)
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            await source.synced()
            # The echo comes after the answer only if something holds it up.
            here.plane.faults.cut_open_watches(reads_config_maps)
            here.plane.faults.delay(reads_config_maps, 5.0)
            await client.create(ConfigMap(metadata=ObjectMeta(name="in-no-reconcile", namespace="default")))
            for name, priority in (("initial", INITIAL_PRIORITY), ("urgent", 7)):
                reconcile_priority.set(priority)
                await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
            await asyncio.sleep(10)
            assert await taken(here.queue) == [
                (Request("default", name), priority, why("own write", name))
                for name, priority in (("urgent", 7), ("in-no-reconcile", 0), ("initial", INITIAL_PRIORITY))
            ]


@virtual
async def test_a_predicate_keeps_events_from_the_queue() -> None:
    async with world() as here:
        source = Watched(here.cache, ConfigMap, for_object, where=labels_changed & in_namespaces("default"))
        async with feeding(source, here.queue):
            created = await here.create("a")
            assert await here.keys() == ["a"]
            created.data["x"] = "1"
            created = await here.client.update(created)
            assert await here.keys() == []
            created.metadata.labels["app"] = "web"
            await here.client.update(created)
            assert await here.keys() == ["a"]


def fails_for_b(event: Event[Object]) -> bool:
    if event.key.name == "b":
        raise ValueError("cannot judge")
    return True


def handler_failing_for_b(event: Event[Object]) -> Iterable[Request]:
    fails_for_b(event)
    return for_object(event)


def lazy_handler_failing_for_b(event: Event[Object]) -> Iterator[Request]:
    fails_for_b(event)
    yield from for_object(event)


async def async_handler_failing_for_b(event: Event[Object]) -> Iterable[Request]:
    return handler_failing_for_b(event)


async def async_handler_of_a_lazy_answer(event: Event[Object]) -> Iterable[Request]:
    return lazy_handler_failing_for_b(event)


async def async_handler_whose_task_is_cancelled_for_b(event: Event[Object]) -> Iterable[Request]:
    if event.entry.name == "b":
        await cancelled_task()
    return for_object(event)


FAILING = [
    Handler(async_handler_whose_task_is_cancelled_for_b),
    Handler(handler_failing_for_b),
    Handler(lazy_handler_failing_for_b),
    Handler(async_handler_failing_for_b),
    Handler(async_handler_of_a_lazy_answer),
]


@pytest.mark.parametrize("handler", FAILING, ids=str)
@pytest.mark.parametrize("resync", [None, 100.0])
@virtual
async def test_a_map_function_that_fails_stops_nothing(
    handler: Handler[Request], resync: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with world() as here:
        for name in "ab":
            await here.create(name)
        source = Watched(here.cache, ConfigMap, handler, resync=resync)
        async with feeding(source, here.queue):
            await source.synced()
            await here.create("c")
            assert sorted(await here.keys()) == ["a", "c"]
            assert len(caplog.records) == 1
            await asyncio.sleep(120)
            assert sorted(await here.keys()) == ([] if resync is None else ["a", "c"])
            await here.create("d")
            assert await here.keys() == ["d"]
    assert len(caplog.records) == (1 if resync is None else 2)
    assert all("default/b" in record.getMessage() and record.exc_info is not None for record in caplog.records)


@virtual
async def test_a_handler_that_fails_for_every_object_is_logged_as_an_error_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @mapped
    def named(settings: ConfigMap) -> list[Request]:
        return [settings.metadata.name]  # type: ignore[list-item]  # the mistake

    async with world() as here:
        source = Watched(here.cache, ConfigMap, named)
        async with feeding(source, here.queue):
            for name in "abc":
                await here.create(name)
            assert await here.keys() == []
            await asyncio.sleep(61)
            await here.create("d")
            assert await here.keys() == []
    first, second = (record for record in caplog.records if record.levelno >= logging.ERROR)
    assert first.getMessage().startswith("the handler of ConfigMap failed for default/a, so that nothing was enqueued:")
    assert first.getMessage().endswith("or the .key of an object")
    assert "failed for default/d (and 2 times since the last such line)" in second.getMessage()
    assert first.exc_info is None, "the sentence says it all"


@pytest.mark.parametrize("resync", [0, -1, timedelta(minutes=1), "60"])
@virtual
async def test_a_resync_is_a_number_of_seconds(resync: Any) -> None:
    async with world() as here:
        with pytest.raises((TypeError, ValueError), match=r"ConfigMap: resync=.* expected"):
            Watched(here.cache, ConfigMap, for_object, resync=resync)


@virtual
async def test_an_event_that_a_predicate_fails_for_is_enqueued(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as here:
        source = Watched(here.cache, ConfigMap, for_object, where=Predicate("broken", fails_for_b))
        async with feeding(source, here.queue):
            for name in "abc":
                await here.create(name)
            assert sorted(await here.keys()) == ["a", "b", "c"]
    (record,) = caplog.records
    assert (
        "the predicate broken failed for ConfigMap default/b; reconciling it: ValueError: cannot judge"
        in record.getMessage()
    )


@virtual
async def test_events_are_mapped_in_their_order_however_long_each_takes() -> None:
    mapped_names: list[str] = []

    async def slow_first(settings: ConfigMap) -> list[Request]:
        await asyncio.sleep({"a": 5, "b": 3, "c": 0}[settings.metadata.name])
        mapped_names.append(settings.metadata.name)
        return [settings.key]

    async with world() as here:
        source = Watched(here.cache, ConfigMap, mapped(slow_first))
        async with feeding(source, here.queue):
            await source.synced()
            for name in "abc":
                await here.create(name)
            assert await here.keys() == ["a", "b", "c"]
    assert mapped_names == ["a", "b", "c"]


@virtual
async def test_a_source_with_an_async_map_function_is_synced_when_all_is_mapped() -> None:
    async def slow(settings: ConfigMap) -> list[Request]:
        await asyncio.sleep(5)
        return [settings.key]

    async with world() as here:
        for name in "abc":
            await here.create(name)
        source = Watched(here.cache, ConfigMap, mapped(slow))
        async with feeding(source, here.queue):
            await source.synced()
            assert len(here.queue) == 3
            assert {priority for _, priority, _ in await taken(here.queue)} == {INITIAL_PRIORITY}


@pytest.mark.parametrize("is_async", [False, True])
@virtual
async def test_everything_is_enqueued_again_periodically_whatever_the_predicate_says(is_async: bool) -> None:
    @Handler
    async def later(event: Event[Object]) -> Iterable[Request]:
        return for_object(event)

    async with world() as here:
        await here.create("a")
        await here.create("b")
        never = Predicate("never", lambda event: False)
        source = Watched(here.cache, ConfigMap, later if is_async else for_object, where=never, resync=1000)
        async with feeding(source, here.queue):
            await source.synced()
            time = asyncio.get_running_loop().time
            for _ in range(3):
                began = time()
                works = [await here.queue.get() for _ in "ab"]
                assert 900 <= time() - began <= 1100
                for work, name in zip(works, "ab", strict=True):
                    here.queue.done(work.key)
                    assert (work.key, work.priority) == (Request("default", name), INITIAL_PRIORITY)
                    assert work.reasons == why("resync", name)


@virtual
async def test_an_event_whose_map_function_lists_by_an_index_is_mapped_when_the_listed_objects_are_there() -> None:
    async with world() as here:
        client = CachedClient(here.client, here.cache)
        here.cache.index(ConfigMap, "account", lambda each: [each.metadata.labels.get("account", "")])
        await here.create("a", account="default")

        @mapped
        async def users(account: ServiceAccount) -> Iterable[Request]:
            return [each.key for each in await client.list(ConfigMap, index=("account", account.metadata.name))]

        account = ServiceAccount(metadata=ObjectMeta(name="default", namespace="default"))
        await here.client.create(account)
        here.plane.faults.delay(reads_config_maps, 20.0)
        source = Watched(here.cache, ServiceAccount, users)
        with here.cache.watch(ConfigMap):
            async with feeding(source, here.queue):
                assert await here.keys() == []
                await source.synced()
                assert await here.keys() == ["a"]


@virtual
async def test_without_resync_nothing_is_enqueued_again() -> None:
    async with world() as here:
        await here.create("a")
        async with feeding(Watched(here.cache, ConfigMap, for_object), here.queue):
            assert await here.keys() == ["a"]
            await asyncio.sleep(5_000)
            assert await here.keys() == []


@virtual
async def test_a_watch_can_be_confined() -> None:
    async with world() as here:
        await here.create("a", app="web")
        await here.create("b", app="api")
        bodies: list[bytes] = []

        @Handler
        def note(event: Event[Object]) -> Iterable[Request]:
            bodies.append(event.entry.body)
            return for_object(event)

        def without_data(raw: bytes) -> bytes:
            whole = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            return msgspec.json.encode({"metadata": whole["metadata"]})

        for options, expected in (
            ({"labels": {"app": "web"}}, ["a"]),
            ({"fields": {"metadata.name": "b"}}, ["b"]),
            ({"namespace": "nowhere"}, []),
            ({"namespace": "default"}, ["a", "b"]),
            ({"transform": without_data}, ["a", "b"]),
        ):
            source = Watched(here.cache, ConfigMap, note, **options)
            async with feeding(source, here.queue):
                assert sorted(await here.keys()) == expected, options
        assert b'"kind"' in bodies[0]
        assert b'"kind"' not in bodies[-1]


@virtual
async def test_the_watch_is_released_at_the_end_and_the_source_can_be_restarted() -> None:
    async with world() as here:
        await here.create("a")
        source = Watched(here.cache, ConfigMap, for_object)
        for _ in range(2):
            assert not_ready_reason(source) == "ConfigMap is not watched yet"
            async with feeding(source, here.queue):
                await source.synced()
                assert not_ready_reason(source) is None
                assert await here.keys() == ["a"]
            assert not here.cache.informers()


@virtual
async def test_it_reports_that_it_is_not_synced_yet() -> None:
    async with world() as here:
        here.plane.faults.delay(reads_config_maps, 5.0)
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            assert not_ready_reason(source) == "the objects of configmaps are being listed"
            await source.synced()
            assert round(asyncio.get_running_loop().time(), 6) == 5
            assert not_ready_reason(source) is None


@virtual
async def test_it_reports_why_it_is_not_synced() -> None:
    async with world() as here:
        here.plane.faults.fail(reads_config_maps, code=403, message="you may not", times=None)
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            await asyncio.sleep(100)
            assert "you may not" in (not_ready_reason(source) or "")
            here.plane.faults.clear()
            await source.synced()
            assert not_ready_reason(source) is None


class GadgetSpec(Model):
    size: int = 1


@resource("sources.example.com/v1")
class Gadget(Resource[GadgetSpec, GadgetSpec]):
    """A kind that may not be installed."""


async def install(client: Client) -> None:
    await client.create(from_json(CustomResourceDefinition, crd_of(Gadget)))
    await asyncio.sleep(60)


async def create_gadget(client: Client) -> None:
    await client.create(Gadget(metadata=ObjectMeta(name="a", namespace="default"), spec=GadgetSpec()))


@virtual
async def test_a_watch_blocked_for_long_is_a_not_ready_reason_and_one_blocked_for_a_moment_is_not() -> None:
    async with world() as here:
        source = Watched(here.cache, ConfigMap, for_object)
        async with feeding(source, here.queue):
            await source.synced()
            here.plane.faults.fail(reads_config_maps, code=503, message="away", times=None)
            here.plane.faults.cut_open_watches(reads_config_maps)
            await asyncio.sleep(30)
            assert here.cache.informers()[0].state == "unreachable"
            assert not_ready_reason(source) is None
            await asyncio.sleep(60)
            assert "away" in (not_ready_reason(source) or "")
            here.plane.faults.clear()
            await asyncio.sleep(60)
            assert not_ready_reason(source) is None


@virtual
async def test_a_kind_that_is_not_installed_is_waited_for() -> None:
    async with world() as here:
        source = Watched(here.cache, Gadget, for_object)
        async with feeding(source, here.queue):
            synced = asyncio.create_task(source.synced())
            await asyncio.sleep(100)
            assert not synced.done()
            assert "gadgets" in (not_ready_reason(source) or "")
            await install(here.client)
            await synced
            assert not_ready_reason(source) is None
            await create_gadget(here.client)
            assert await here.keys() == ["a"]


@virtual
async def test_an_optional_kind_counts_as_one_without_objects_until_it_is_installed() -> None:
    async with world() as here:
        source = Watched(here.cache, Gadget, for_object, optional=True)
        async with feeding(source, here.queue):
            await source.synced()
            assert not_ready_reason(source) is None
            await install(here.client)
            await create_gadget(here.client)
            assert await here.keys() == ["a"]
            assert not_ready_reason(source) is None


@virtual
async def test_an_optional_kind_that_may_not_be_read_is_not_taken_for_an_absent_one() -> None:
    async with world() as here:
        here.plane.faults.fail(reads_config_maps, code=403, message="you may not", times=None)
        source = Watched(here.cache, ConfigMap, for_object, optional=True)
        async with feeding(source, here.queue):
            synced = asyncio.create_task(source.synced())
            await asyncio.sleep(100)
            assert not synced.done()
            assert "you may not" in (not_ready_reason(source) or "")
            here.plane.faults.clear()
            await synced


def test_a_source_knows_what_it_watches() -> None:
    async def scenario() -> None:
        async with world() as here:
            source = Watched(here.cache, ConfigMap, for_object)
            assert source.kind is ConfigMap
            assert repr(source) == "Watched(ConfigMap)"

    run_virtual(scenario)
