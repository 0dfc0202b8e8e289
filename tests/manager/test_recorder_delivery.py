"""How events get to the server: one that is away, that refuses, that is silent; and to the control planes."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import ContextVar

import pytest
from tests.manager.event_server import OBJECT, EventServer, config_map

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.events.v1 import Event
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.client import Client, Config
from kubewright.client.errors import ConnectionFailed
from kubewright.client.wait import deleted
from kubewright.controlplane import ControlPlane
from kubewright.manager.recorder import EventBroadcaster
from kubewright.testing.namespaces import unique_name
from kubewright.testing.virtual_time import run_virtual


def virtually(test: Callable[[EventBroadcaster, EventServer], Coroutine[None, None, None]]) -> Callable[[], None]:
    """The test in virtual time."""

    async def main() -> None:
        server = EventServer()
        async with asyncio.timeout(3600), Client(Config(server="http://events.test"), transport=server) as client:
            await test(EventBroadcaster(client, instance="operator-0"), server)

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def now() -> float:
    return asyncio.get_running_loop().time()


@virtually
async def test_an_event_waits_for_an_unreachable_server_and_keeps_its_position(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.failures += [ConnectionFailed("refused")] * 3

    recorder.normal(OBJECT, "Synced", "one")
    recorder.normal(OBJECT, "Synced", "two")
    await broadcaster.flush(60)

    assert server.counted_notes() == [("one", 1), ("two", 1)]
    assert now() == 0.25 + 0.5 + 1


@virtually
async def test_an_event_that_is_written_once_is_stored_on_return_and_another_process_does_not_repeat_it(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    await recorder.once("Normal", OBJECT, "Completed", "done")
    assert server.counted_notes() == [("done", 1)]

    other = EventBroadcaster(broadcaster._client, instance="operator-1").recorder("shops")
    await other.once("Normal", OBJECT, "Completed", "it was done already")
    await other.once("Warning", OBJECT, "Failed", "something else")
    await other.once("Normal", config_map(1), "Completed", "another object")
    assert server.counted_notes() == [("done", 1), ("something else", 1), ("another object", 1)]


@virtually
async def test_an_event_that_is_written_once_is_waited_for_two_seconds_and_then_written_as_any_other(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.is_silent = True
    await recorder.once("Normal", OBJECT, "Completed", "done")
    assert (now(), server.counted_notes()) == (2, [])
    server.is_silent = False
    server.failures += [ConnectionFailed("refused")]
    await recorder.once("Normal", OBJECT, "Failed", "refused")
    assert now() == 2
    await broadcaster.flush(60)
    assert server.counted_notes() == [("done", 1), ("refused", 1)]


def test_after_twelve_attempts_an_event_is_given_up_and_the_next_one_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @virtually
    async def scenario(broadcaster: EventBroadcaster, server: EventServer) -> None:
        recorder = broadcaster.recorder("shops")
        server.failures += [ConnectionFailed("refused")] * 12

        recorder.normal(OBJECT, "Synced", "one")
        recorder.normal(OBJECT, "Synced", "two")
        await broadcaster.flush(600)

        assert server.counted_notes() == [("two", 1)]
        assert now() == sum([0.25, 0.5, 1, 2, 4, 8, 15, 15, 15, 15, 15, 15])

    scenario()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "an event could not be written: Synced of ConfigMap shop/settings" in caplog.text


@virtually
async def test_an_event_that_is_refused_does_not_hold_up_the_others(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.failures += [(500, "InternalError", "failed calling webhook")]
    for number in range(9):
        recorder.normal(OBJECT, "Synced", f"{number}")
    await broadcaster.flush(60)

    assert server.counted_notes() == [(f"{number}", 1) for number in (*range(1, 9), 0)]
    assert now() == 0.25


@pytest.mark.parametrize("seconds", [0.0, 10.0], ids=["at once", "after ten seconds"])
def test_a_namespace_in_which_everything_is_refused_does_not_hold_up_the_rest(seconds: float) -> None:
    @virtually
    async def scenario(broadcaster: EventBroadcaster, server: EventServer) -> None:
        recorder = broadcaster.recorder("shops")
        server.refused = {"refusing": seconds}
        task = asyncio.create_task(broadcaster.run())
        for minute in range(10):
            for number in range(100):
                recorder.normal(config_map(number, "refusing"), "Synced", f"{minute}")
                recorder.normal(config_map(number, "taking"), "Synced", f"{minute}")
            await asyncio.sleep(0.1)
            assert len(server.events) == 100 * (minute + 1)
            await asyncio.sleep(60)
        # And no more requests fail than it takes to notice that the server has recovered.
        assert len([each for each in server.attempts if each[0] == "refusing"]) < 100
        server.refused = {}
        await broadcaster.flush(60)
        assert len(server.events) > 1900
        await _end(task)

    scenario()


@virtually
async def test_at_the_end_everything_is_tried_once_more_within_the_time_there_is(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.refused = {"shop": 0.0, "refusing": 0.0}
    task = asyncio.create_task(broadcaster.run())
    for namespace in ("shop", "refusing"):
        for number in range(30):
            recorder.normal(config_map(number, namespace), "Synced", "done")
    await asyncio.sleep(50)
    del server.refused["shop"]
    began = now()
    await broadcaster.flush(2)
    assert now() == began + 2
    assert len(server.events) == 30
    await _end(task)


@virtually
async def test_what_happens_again_while_it_is_written_raises_the_count_after_it(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    task = asyncio.create_task(broadcaster.run())
    server.meanwhile = lambda: recorder.normal(OBJECT, "Synced", "done") if len(server.requests) < 5 else None
    recorder.normal(OBJECT, "Synced", "done")
    await asyncio.sleep(1)
    assert server.requests == ["POST", "PATCH", "PATCH", "PATCH", "PATCH"]
    assert server.counted_notes() == [("done", 5)]
    await _end(task)


@virtually
async def test_writers_do_not_run_in_the_context_of_the_recording_code(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    """What a reconcile may not do any more when the lease is lost, or how it is called in the log, is its own."""
    whose: ContextVar[str] = ContextVar("whose", default="unset")
    seen: list[str] = []
    server.meanwhile = lambda: seen.append(whose.get())
    task = asyncio.create_task(broadcaster.run())
    await asyncio.sleep(0)
    whose.set("a reconcile's")
    broadcaster.recorder("shops").normal(OBJECT, "Synced", "done")
    await asyncio.sleep(1)
    assert seen == ["unset"]
    await _end(task)


async def test_a_missing_permission_drops_the_event_and_is_logged_once(
    broadcaster: EventBroadcaster, server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = broadcaster.recorder("shops")
    server.failures += [(403, "Forbidden", "no")] * 3

    for note in ("one", "two", "three", "four"):
        recorder.normal(OBJECT, "Synced", note)
    await broadcaster.flush(5)

    assert server.counted_notes() == [("four", 1)]
    assert len(caplog.records) == 1
    assert "Forbidden: no" in caplog.text


async def test_a_refused_event_is_retried_when_it_happens_again(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.failures.append((403, "Forbidden", "no"))
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.counted_notes() == [("done", 1)]


async def test_an_event_whose_answer_was_lost_is_not_written_twice(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    server.loses_answers = True
    recorder = broadcaster.recorder("shops")
    for _ in range(2):
        recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.requests == ["POST", "POST", "PATCH"]
    assert server.counted_notes() == [("done", 2)]


async def test_an_event_that_the_server_has_forgotten_is_written_again_with_its_count(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    server.events.clear()
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.counted_notes() == [("done", 2)]


@pytest.fixture
def short_queue(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("kubewright.manager.event_queue.MAX_SIZE", 20)
    return 20


async def test_a_full_queue_drops_further_events_and_logs_that_once(
    broadcaster: EventBroadcaster, server: EventServer, short_queue: int, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = broadcaster.recorder("shops")
    for number in range(short_queue + 5):
        recorder.normal(config_map(number), "Synced", "done")
    await broadcaster.flush(5)

    assert len(server.events) == short_queue
    assert [record.getMessage() for record in caplog.records] == [
        f"events are dropped: {short_queue} wait to be written already"
    ]


async def test_a_full_queue_has_room_for_namespaces_with_fewer_events(
    broadcaster: EventBroadcaster, server: EventServer, short_queue: int
) -> None:
    recorder = broadcaster.recorder("shops")
    for number in range(short_queue + 5):
        recorder.normal(config_map(number, "noisy"), "Synced", "done")
    for number in range(5):
        recorder.normal(config_map(number, "quiet"), "Synced", "done")
    await broadcaster.flush(5)

    written = Counter(event.metadata.namespace for event in server.stored())
    assert written == {"noisy": short_queue - 5, "quiet": 5}


async def test_a_log_that_becomes_events_does_not_block_the_recorder(
    broadcaster: EventBroadcaster, server: EventServer, short_queue: int
) -> None:
    recorder = broadcaster.recorder("shops")
    logged: list[str] = []

    class Telling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append(record.getMessage())
            recorder.warning(OBJECT, "Logged", record.getMessage())

    handler = Telling()
    logger = logging.getLogger("kubewright.manager.event_queue")
    logger.addHandler(handler)
    try:
        for number in range(short_queue + 1):
            # In a thread, so that a recorder that waits for itself is a failure and not the end of the run.
            recording = threading.Thread(
                target=recorder.normal, args=(config_map(number), "Synced", "done"), daemon=True
            )
            recording.start()
            recording.join(10)
            assert not recording.is_alive()
    finally:
        logger.removeHandler(handler)

    await broadcaster.flush(5)
    assert len(server.events) == short_queue
    assert logged == [f"events are dropped: {short_queue} wait to be written already"]


async def test_events_are_written_as_they_come_while_the_task_runs(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "before the start")
    task = asyncio.create_task(broadcaster.run())
    await _until(lambda: len(server.events) == 1)
    recorder.normal(OBJECT, "Synced", "one")
    await _until(lambda: len(server.events) == 2)
    await asyncio.to_thread(recorder.normal, OBJECT, "Synced", "from a thread")
    await _until(lambda: len(server.events) == 3)

    await _end(task)


async def test_recorders_may_be_used_from_many_threads_at_once(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    task = asyncio.create_task(broadcaster.run())

    def record() -> None:
        for _ in range(200):
            recorder.normal(OBJECT, "Synced", "done")

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    occurrences = broadcaster._correlator._events.oldest()
    await broadcaster.flush(5)

    assert occurrences.count == 800
    assert len(server.events) == 1
    await _end(task)


async def test_a_silent_server_holds_up_neither_the_reconcile_nor_the_shutdown(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    server.is_silent = True
    recorder = broadcaster.recorder("shops")
    task = asyncio.create_task(broadcaster.run())
    recorder.normal(OBJECT, "Synced", "one")
    await _until(lambda: server.requests == ["POST"])
    recorder.normal(OBJECT, "Synced", "two")

    await broadcaster.flush(0.01)

    assert server.requests == ["POST"]
    await _end(task)


async def test_what_the_task_was_writing_when_it_was_cancelled_is_written_by_the_flush(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    server.is_silent = True
    task = asyncio.create_task(broadcaster.run())
    broadcaster.recorder("shops").normal(OBJECT, "Synced", "done")
    await _until(lambda: server.requests == ["POST"])
    await _end(task)
    server.is_silent = False

    await broadcaster.flush(5)

    assert server.counted_notes() == [("done", 1)]


# What the servers make of it


@pytest.fixture
async def shop(admin: Client) -> AsyncIterator[ConfigMap]:
    """An object in a namespace of its own."""
    namespace = await admin.create(Namespace(metadata=ObjectMeta(name=unique_name("recorder"))))
    yield await admin.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace.metadata.name)))
    await admin.delete(namespace, missing_ok=True)


async def test_kubectl_shows_the_events_and_how_often_they_happened(
    control_plane: ControlPlane, admin: Client, shop: ConfigMap
) -> None:
    broadcaster = EventBroadcaster(admin, instance="operator-0")
    recorder = broadcaster.recorder("shops")
    for _ in range(3):
        recorder.warning(shop, "SyncFailed", "The shop is closed")
        await broadcaster.flush(5)
    recorder.normal(shop, "Synced", "x" * 5000)
    await broadcaster.flush(5)
    namespace = shop.metadata.namespace

    events = (await control_plane.kubectl("events", "-n", namespace, "--no-headers")).stdout
    described = (await control_plane.kubectl("describe", "configmap", "settings", "-n", namespace)).stdout

    assert re.search(r"\(x3 over \S+\) +Warning +SyncFailed +ConfigMap/settings +The shop is closed\n", events)
    assert re.search(r" Normal +Synced +ConfigMap/settings +x{1021}\.\.\.\n", events)
    assert re.search(r"Warning +SyncFailed +\S+ \(x3 over \S+\) +shops +The shop is closed\n", described)


async def test_permission_to_create_and_patch_is_enough(
    control_plane: ControlPlane, admin: Client, shop: ConfigMap
) -> None:
    name = unique_name("recorder")
    rule = PolicyRule(api_groups=["events.k8s.io"], resources=["events"], verbs=["create", "patch"])
    role = await admin.create(ClusterRole(metadata=ObjectMeta(name=name), rules=[rule]))
    binding = await admin.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name=name),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name),
            subjects=[Subject(api_group="rbac.authorization.k8s.io", kind="User", name=name)],
        )
    )
    async with control_plane.client(control_plane.add_user(name)) as client:
        broadcaster = EventBroadcaster(client, instance="operator-0")
        recorder = broadcaster.recorder("shops")
        for _ in range(2):
            recorder.normal(shop, "Synced", "done")
            recorder.normal(role, "Synced", "done")
            await broadcaster.flush(5)

    (event,) = await admin.list(Event, namespace=shop.metadata.namespace)
    (elsewhere,) = await admin.list(Event, namespace="default", fields={"regarding.name": name})
    assert event.series is not None
    assert elsewhere.series is not None
    assert (event.series.count, elsewhere.series.count) == (2, 2)
    for created in (role, binding, elsewhere):
        await admin.delete(created)


async def test_a_terminating_namespace_accepts_no_events_and_nothing_is_logged(
    admin: Client, shop: ConfigMap, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kubewright.manager")
    shop.metadata.finalizers = ["example.com/hold"]
    shop = await admin.update(shop)
    await admin.delete(Namespace, shop.metadata.namespace)
    broadcaster = EventBroadcaster(admin, instance="operator-0")
    broadcaster.recorder("shops").normal(shop, "Synced", "done")
    await broadcaster.flush(5)
    shop = await admin.get(ConfigMap, shop.key)
    shop.metadata.finalizers = []
    await admin.update(shop)
    await admin.wait_for(Namespace, shop.metadata.namespace, deleted, timeout=30)

    broadcaster.recorder("shops").normal(shop, "Synced", "and when it is gone")
    await broadcaster.flush(5)

    assert not [record for record in caplog.records if record.name.startswith("kubewright.manager")]


async def test_an_unreachable_server_is_no_reason_to_fail(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(Config(server="http://127.0.0.1:9")) as client:
        broadcaster = EventBroadcaster(client, instance="operator-0")
        broadcaster.recorder("shops").normal(OBJECT, "Synced", "done")
        await broadcaster.flush(0.1)

    assert "an event could not be written: Synced of ConfigMap shop/settings" in caplog.text


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
