"""Sources of a controller, complete or not, coming and going; and objects that feed their own controller."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.controller.scripted import LONG, Reconciler, now, running, succeed

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache, CachedClient
from kubewright.cache.write_context import write_count
from kubewright.controller.controllers import Controller
from kubewright.controller.handler import for_object, mapped
from kubewright.controller.hot_loop import MAX_WRITING
from kubewright.controller.queue import Reason
from kubewright.controller.reconcile import Request, Result
from kubewright.controller.source import Channel
from kubewright.controller.watched import Watched
from kubewright.controlplane import ControlPlane
from kubewright.testing.virtual_time import virtual

# Sources


class Slow:
    """A source that is synced when its event is set."""

    def __init__(self, reason: str | None = "the objects are being listed") -> None:
        self.reason = reason
        self.complete = asyncio.Event()
        self.ended = asyncio.Event()

    async def run(self, queue: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()

    async def synced(self) -> None:
        await self.complete.wait()

    @property
    def not_ready_reason(self) -> str | None:
        return None if self.complete.is_set() else self.reason


@virtual
async def test_no_reconcile_starts_before_the_sources_are_synced() -> None:
    first, second = Slow("pods are being listed"), Slow("nodes are being listed")
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    for source in (first, second):
        controller.watch(source)
    assert controller.sources == [first, second]
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(1)
        assert controller.not_ready_reason == "test: pods are being listed"
        first.complete.set()
        await asyncio.sleep(1)
        assert not reconciler.begun
        assert controller.not_ready_reason == "test: nodes are being listed"
        second.complete.set()
        await asyncio.sleep(1)
        assert reconciler.times == [2]
    assert {source.not_ready_reason for source in (first, second)} == {None}


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("pods are being listed", "test: pods are being listed; waiting for it"),
        (None, "test: a source is not synced; waiting for it"),
    ],
)
@virtual
async def test_a_source_that_takes_long_is_logged_and_waited_for(
    reason: str | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = Slow(reason)
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler, sync_timeout=60)
    controller.watch(source)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(150)
        source.complete.set()
        await asyncio.sleep(1)
    assert [record.getMessage() for record in caplog.records] == [message] * 2
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    assert reconciler.times == [150]


@virtual
async def test_stop_ends_workers_that_still_wait_for_sources() -> None:
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    controller.watch(Slow())
    controller.queue.add("a")
    workers = asyncio.create_task(controller.run_workers())
    await asyncio.sleep(1)
    controller.stop()
    await workers
    assert now() == 1
    assert not reconciler.begun


@virtual
async def test_workers_that_are_stopped_before_they_begin_end_at_once() -> None:
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    controller.watch(Slow())
    controller.queue.add("a")
    controller.stop()
    await controller.run_workers()
    assert not reconciler.begun


@virtual
async def test_a_source_that_is_removed_is_not_waited_for_any_more(caplog: pytest.LogCaptureFixture) -> None:
    stays, goes = Slow(), Slow()
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    remove = controller.watch(goes)
    controller.watch(stays)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(1)
        remove()
        await asyncio.sleep(1)
        assert goes.ended.is_set()
        assert not reconciler.begun, "the other one is"
        stays.complete.set()
        await asyncio.sleep(1)
    assert reconciler.times == [2]
    assert not caplog.records


@virtual
async def test_an_error_while_waiting_for_a_source_is_raised() -> None:
    class Broken(Slow):
        async def synced(self) -> None:
            raise ValueError("cannot be complete")

    controller = Controller("test", Reconciler(succeed))
    controller.watch(Broken())
    with pytest.raises(ValueError, match="cannot be complete"):
        await controller.run_workers()


@virtual
async def test_a_source_can_be_added_and_removed_at_run_time() -> None:
    reconciler = Reconciler(succeed)
    controller = Controller("test", reconciler)
    before, after = Channel[str](), Channel[str]()
    remove_before = controller.watch(before)
    before.send("a")
    async with running(controller):
        await asyncio.sleep(1)
        remove_after = controller.watch(after)
        after.send("b")
        await asyncio.sleep(1)
        remove_after()
        await asyncio.sleep(1)
        after.send("lost")
        before.send("c")
        await asyncio.sleep(1)
        remove_before()
        remove_before()
        await asyncio.sleep(1)
        assert controller.sources == []
    assert reconciler.keys == ["a", "b", "c"]


@virtual
async def test_a_source_removed_before_the_start_never_runs() -> None:
    source = Slow()
    controller = Controller("test", Reconciler(succeed))
    controller.watch(source)()
    async with running(controller):
        await asyncio.sleep(1)
    assert not source.ended.is_set()
    assert controller.not_ready_reason is None


@virtual
async def test_sources_end_with_the_controller_and_can_be_restarted() -> None:
    source = Slow()
    controller = Controller("test", Reconciler(succeed))
    controller.watch(source)
    for _ in range(2):
        source.ended.clear()
        sources = asyncio.create_task(controller.run_sources())
        await asyncio.sleep(1)
        assert not source.ended.is_set()
        sources.cancel()
        with suppress(asyncio.CancelledError):
            await sources
        assert source.ended.is_set()


@virtual
async def test_a_source_that_fails_ends_the_sources_and_is_raised() -> None:
    class Broken(Slow):
        async def run(self, queue: object) -> None:
            raise ValueError("no")

    other = Slow()
    controller = Controller("test", Reconciler(succeed))
    controller.watch(other)
    controller.watch(Broken())
    with pytest.raises(ExceptionGroup) as raised:
        await controller.run_sources()
    assert [str(error) for error in raised.value.exceptions] == ["no"]
    assert other.ended.is_set()


# Hot loops


def write() -> None:
    """As a client does."""
    write_count.get().value += 1


@virtual
async def test_an_object_that_its_own_reconciles_write_over_and_over_is_slowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(key: str) -> None:
        if key == "loop":
            await asyncio.sleep(0.01)
            write()
            controller.queue.add("loop")

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("loop")
        await asyncio.sleep(3)
        controller.queue.add("other")
        await asyncio.sleep(LONG)
    loop = [when for when, key in reconciler.begun if key == "loop"]
    # 100 reconciles in the first second, then pauses of 1, 2, 4 … 60 s: 63 s for six of them, then one a minute.
    assert len([when for when in loop if when < 1]) == MAX_WRITING
    assert MAX_WRITING + 60 < len(loop) < MAX_WRITING + 70
    assert (3, "other") in reconciler.begun, "no worker waits meanwhile"
    assert controller.statistics.hot_loops == len(loop) - MAX_WRITING + 1
    assert len(caplog.records) == controller.statistics.hot_loops
    assert "[test loop] hot loop: reconciled over and over" in caplog.records[0].getMessage()
    assert "Does every reconcile write something" in caplog.records[0].getMessage()
    assert "pausing it for 1 s" in caplog.records[0].getMessage()


@virtual
async def test_deleting_over_and_over_is_a_hot_loop_too() -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        client = CachedClient(admin, Cache(admin))

        async def act(key: str) -> None:
            await client.delete(await admin.create(ConfigMap(metadata=ObjectMeta(name=key, namespace="default"))))
            if len(reconciler.begun) < 2 * MAX_WRITING:
                controller.queue.add(key)

        reconciler = Reconciler(act)
        controller = Controller("test", reconciler)
        async with running(controller):
            controller.queue.add("a")
            while not controller.statistics.hot_loops:
                await asyncio.sleep(0.1)
    assert len(reconciler.begun) == MAX_WRITING
    assert controller.statistics.hot_loops == 1


@virtual
async def test_writing_what_is_there_already_over_and_over_is_a_hot_loop_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server has to handle each of these writes, and takes so long that they are far fewer than idle reconciles."""
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        client = CachedClient(admin, Cache(admin))
        settings = await admin.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))

        async def act(key: str) -> Result:
            await asyncio.sleep(0.05)
            await client.update(settings)
            return Result(requeue_after=0.001)

        reconciler = Reconciler(act)
        controller = Controller("test", reconciler)
        async with running(controller):
            controller.queue.add("a")
            await asyncio.sleep(60)
    assert MAX_WRITING < len(reconciler.begun) < MAX_WRITING + 10
    assert "Is its requeue_after too short" in caplog.records[0].getMessage()


@virtual
async def test_writing_what_is_there_already_after_events_of_others_is_no_hot_loop() -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        client = CachedClient(admin, Cache(admin))
        settings = await admin.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))

        async def act(request: Request) -> None:
            await client.update(settings)

        controller, request = Controller("test", act), Request("default", "a")
        async with running(controller):
            for _ in range(2 * MAX_WRITING):
                controller.queue.add(request, reason=Reason("ConfigMap", "updated", request))
                await asyncio.sleep(0.02)
    assert controller.statistics.results["success"] == 2 * MAX_WRITING
    assert controller.statistics.hot_loops == 0


@virtual
async def test_a_change_during_the_pause_is_seen_after_it() -> None:
    changes: list[float] = []

    async def act(key: str) -> None:
        if len(reconciler.begun) <= MAX_WRITING:
            write()
            controller.queue.add("a")

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(0.5)
        controller.queue.add("a")
        changes.append(now())
        await asyncio.sleep(LONG)
    assert len(reconciler.begun) == MAX_WRITING + 1
    assert reconciler.times[-1] == 1.0


@virtual
async def test_an_object_that_is_busy_but_not_written_is_not_slowed(caplog: pytest.LogCaptureFixture) -> None:
    async def act(key: str) -> None:
        if len(reconciler.begun) < 10 * MAX_WRITING:
            child = ObjectKey("default", f"child-{len(reconciler.begun)}")
            controller.queue.add("a", reason=Reason("Pod", "updated", child))
        if len(reconciler.begun) % 20 == 0:
            write()

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler)
    async with running(controller):
        controller.queue.add("a")
        await asyncio.sleep(0.001)
        assert len(reconciler.begun) == 10 * MAX_WRITING
    assert controller.statistics.hot_loops == 0
    assert not caplog.records


@virtual
async def test_hot_loop_protection_can_be_disabled(caplog: pytest.LogCaptureFixture) -> None:
    async def act(key: str) -> None:
        write()
        if len(reconciler.begun) < 10 * MAX_WRITING:
            controller.queue.add("a")

    reconciler = Reconciler(act)
    controller = Controller("test", reconciler, slow_hot_loops=False)
    async with running(controller):
        controller.queue.add("a")
        while len(reconciler.begun) < 10 * MAX_WRITING:
            await asyncio.sleep(0.001)
        # The first pause of a hot loop would be a second.
        assert asyncio.get_running_loop().time() < 1
    assert not caplog.records


@virtual
async def test_when_too_many_events_wait_to_be_mapped_everything_is_reconciled_instead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is dropped may map to any object: all of them are reconciled."""
    monkeypatch.setattr("kubewright.controller.watched.MAX_UNMAPPED", 20)
    blocked = asyncio.Event()

    @mapped
    async def slow(secret: Secret) -> list[ObjectKey]:
        await blocked.wait()
        return [ObjectKey("default", "never")]

    seen: list[str] = []

    class Noting:
        async def reconcile(self, request: Request) -> None:
            seen.append(request.name)

    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        cache = Cache(admin, namespaces=["default"])
        controller = Controller("test", Noting())
        mapping = Watched(cache, Secret, slow)
        controller.watch(Watched(cache, ConfigMap, for_object))
        controller.watch(mapping)
        for name in "ab":
            await admin.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
        secret = await admin.create(Secret(metadata=ObjectMeta(name="s", namespace="default")))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(cache.run()), group.create_task(controller.run_sources())]
            await asyncio.sleep(10)
            controller._working.set()  # the watch is fed to the queue, and nothing waits for what is to be mapped
            await asyncio.sleep(10)
            for number in range(50):
                secret.string_data = {"number": f"{number}"}
                secret = await admin.update(secret)
            await asyncio.sleep(10)
            assert mapping._unmapped.qsize() <= 20
            blocked.set()
            await asyncio.sleep(10)
            tasks.append(group.create_task(controller.run_workers()))
            await asyncio.sleep(10)
            for task in tasks:
                task.cancel()
    assert {"a", "b"} <= set(seen)
    assert controller.statistics.reasons["Secret too many to map"] == 2
    assert "the map function of Secret does not keep up: everything is reconciled instead" in caplog.text
