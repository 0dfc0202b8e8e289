from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.events.v1 import Event
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from kubewright.api.resource import Object
from kubewright.client import Client, Config
from kubewright.client.errors import ConnectionFailed, ConnectionLost
from kubewright.client.http.response import Headers, Response, StreamedResponse
from kubewright.client.wait import deleted
from kubewright.controlplane import ControlPlane
from kubewright.manager.recorder import BURST, REFILL, SERIES_WINDOW, EventBroadcaster
from kubewright.testing.namespaces import unique_name

OBJECT = ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop", uid="1", resource_version="5"))


class ManualTime:
    """Time that passes only when somebody says so, or sleeps."""

    def __init__(self) -> None:
        self.present = datetime(2026, 1, 1, tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.present

    def advance(self, time: timedelta) -> None:
        self.present += time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(timedelta(seconds=seconds))


class EventServer:
    """A `Transport` to a server that has nothing but events. `troubles` come first: what a request fails with."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, JSONValue]] = {}
        self.requests: list[str] = []
        self.troubles: deque[Exception | tuple[int, str, str]] = deque()
        self.loses_answers = False
        self.is_silent = False
        self.meanwhile: Callable[[], None] = lambda: None

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        self.requests.append(method)
        self.meanwhile()
        if self.is_silent:
            await asyncio.Event().wait()
        if self.troubles:
            trouble = self.troubles.popleft()
            if isinstance(trouble, Exception):
                raise trouble
            return _failure(*trouble)
        response = self._answer(method, target.partition("?")[0], json.loads(body or b"{}"))
        if self.loses_answers:
            self.loses_answers = False
            raise ConnectionLost("the connection broke")
        return response

    def _answer(self, method: str, path: str, sent: dict[str, JSONValue]) -> Response:
        place = re.fullmatch(r"/apis/events\.k8s\.io/v1/namespaces/([^/]+)/events(?:/(.+))?", path)
        assert place is not None, path
        if method == "POST":
            metadata = sent["metadata"]
            assert isinstance(metadata, dict)
            assert metadata["namespace"] == place[1]
            name = str(metadata["name"])
            if name in self.events:
                return _failure(409, "AlreadyExists", name)
            self.events[name] = sent
        else:
            assert method == "PATCH"
            name = place[2]
            if name not in self.events:
                return _failure(404, "NotFound", name)
            self.events[name] |= sent
        return Response(200, Headers(), json.dumps(self.events[name]).encode())

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        raise AssertionError("a recorder watches nothing")

    async def aclose(self) -> None:
        pass

    def stored(self) -> list[Event]:
        return [from_json(Event, event) for event in self.events.values()]

    def told(self) -> list[tuple[str, int]]:
        """Notes and how often they were said."""
        return [(event.note or "", event.series.count if event.series else 1) for event in self.stored()]


def _failure(code: int, reason: str, name: str, cause: str = "") -> Response:
    causes = [{"reason": cause}] if cause else []
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"{reason}: {name}",
        "details": {"name": name, "causes": causes},
    }
    return Response(code, Headers(), json.dumps(status).encode())


@pytest.fixture
def time() -> ManualTime:
    return ManualTime()


@pytest.fixture
def server() -> EventServer:
    return EventServer()


@pytest.fixture
async def broadcaster(time: ManualTime, server: EventServer) -> AsyncIterator[EventBroadcaster]:
    async with Client(Config(server="http://events.test"), transport=server) as client:
        yield EventBroadcaster(client, instance="operator-0", now=time.now, sleep=time.sleep)


async def test_an_event_says_who_did_what_to_which_object(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    other = ClusterRole(metadata=ObjectMeta(name="admin", uid="2"))

    broadcaster.recorder("example.com/shops").warning(OBJECT, "Failed", "It did not work", action="Sync", related=other)
    await broadcaster.flush(5)

    (event,) = server.stored()
    assert (event.type, event.reason, event.action, event.note) == ("Warning", "Failed", "Sync", "It did not work")
    assert (event.reporting_controller, event.reporting_instance) == ("example.com/shops", "operator-0")
    assert event.event_time == time.present
    assert event.series is None
    assert event.metadata.namespace == "shop"
    about, related = event.regarding, event.related
    assert (about.api_version, about.kind, about.namespace, about.name) == ("v1", "ConfigMap", "shop", "settings")
    assert (about.uid, about.resource_version) == ("1", "5")
    assert related is not None
    assert (related.api_version, related.kind, related.namespace) == (
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        None,
    )
    assert (related.name, related.uid) == ("admin", "2")


async def test_the_action_is_the_reason_when_nothing_else_is_said(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    broadcaster.recorder("shops").normal(OBJECT, "Created", "made")
    await broadcaster.flush(5)

    assert [(event.type, event.action) for event in server.stored()] == [("Normal", "Created")]


async def test_an_event_about_a_cluster_scoped_object_goes_to_the_default_namespace(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    broadcaster.recorder("shops").normal(ClusterRole(metadata=ObjectMeta(name="admin")), "Seen", "there it is")
    await broadcaster.flush(5)

    (event,) = server.stored()
    assert event.metadata.namespace == "default"
    assert event.regarding.namespace is None


async def test_an_object_without_its_body_and_one_without_a_python_type_are_named_by_their_kind(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    partial: JSONValue = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}

    recorder.normal(from_json(metadata_only(ConfigMap), partial), "Seen", "a")
    recorder.normal(Dynamic.of("example.com/v1", "Widget")(metadata=ObjectMeta(name="b")), "Seen", "b")
    await broadcaster.flush(5)

    kinds = [(event.regarding.api_version, event.regarding.kind) for event in server.stored()]
    assert kinds == [("v1", "ConfigMap"), ("example.com/v1", "Widget")]


async def test_the_same_event_again_raises_the_count_of_the_one_that_is_there(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for _ in range(3):
        recorder.normal(OBJECT, "Synced", "done")
        await broadcaster.flush(5)
        time.advance(SERIES_WINDOW - timedelta(seconds=1))

    (event,) = server.stored()
    assert server.requests == ["POST", "PATCH", "PATCH"]
    assert event.series is not None
    assert event.series.count == 3
    assert event.series.last_observed_time == time.present - SERIES_WINDOW + timedelta(seconds=1)
    assert event.event_time == datetime(2026, 1, 1, tzinfo=UTC)


async def test_six_minutes_after_its_last_occurrence_an_event_is_a_new_one(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    time.advance(SERIES_WINDOW)
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.told() == [("done", 1), ("done", 1)]


async def test_an_object_that_has_changed_is_still_the_same_object(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    for revision in ("5", "6"):
        meta = ObjectMeta(name="settings", namespace="shop", uid="1", resource_version=revision)
        recorder.normal(ConfigMap(metadata=meta), "Synced", "done")
        await broadcaster.flush(5)

    assert server.told() == [("done", 2)]


async def test_whatever_differs_makes_another_event(broadcaster: EventBroadcaster, server: EventServer) -> None:
    recorder = broadcaster.recorder("shops")
    successor = ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop", uid="2"))

    recorder.normal(OBJECT, "Synced", "done")
    recorder.warning(OBJECT, "Synced", "done")
    recorder.normal(OBJECT, "Seen", "done")
    recorder.normal(OBJECT, "Synced", "done again")
    recorder.normal(OBJECT, "Synced", "done", action="Look")
    recorder.normal(OBJECT, "Synced", "done", related=successor)
    recorder.normal(successor, "Synced", "done")
    broadcaster.recorder("carts").normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert len(server.stored()) == 8
    assert not any(event.series for event in server.stored())


async def test_repetitions_that_nobody_has_written_yet_cost_one_request(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    for _ in range(500):
        recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.requests == ["POST"]
    assert server.told() == [("done", 500)]


async def test_of_one_object_so_much_is_told_at_once_and_then_one_event_every_five_minutes(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for number in range(BURST + 10):
        recorder.normal(OBJECT, "Synced", f"{number}")
    recorder.warning(OBJECT, "Failed", "a warning")
    recorder.normal(ClusterRole(metadata=ObjectMeta(name="other")), "Synced", "another object")
    await broadcaster.flush(5)
    assert [note for note, _ in server.told()] == [*map(str, range(BURST)), "a warning", "another object"]

    time.advance(REFILL)
    recorder.normal(OBJECT, "Synced", "after a while")
    recorder.normal(OBJECT, "Synced", "too soon")
    await broadcaster.flush(5)
    assert [note for note, _ in server.told()][BURST + 2 :] == ["after a while"]


async def test_repetitions_beyond_the_limit_are_counted_and_told_with_the_next_write(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for _ in range(BURST + 10):
        recorder.normal(OBJECT, "Synced", "done")
        await broadcaster.flush(5)
    assert server.told() == [("done", BURST)]

    time.advance(REFILL)
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    assert server.told() == [("done", BURST + 11)]
    assert len(server.requests) == BURST + 1


async def test_repetitions_while_one_is_written_are_limited_too(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.meanwhile = lambda: recorder.normal(OBJECT, "Synced", "done")
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert len(server.requests) == BURST


@pytest.mark.parametrize("letter", ["x", "é", "🙂"])
async def test_a_note_is_cut_to_the_bytes_that_the_server_takes(
    broadcaster: EventBroadcaster, server: EventServer, letter: str
) -> None:
    broadcaster.recorder("shops").normal(OBJECT, "R" * 200, letter * 2000)
    await broadcaster.flush(5)

    (event,) = server.stored()
    fitting = (1024 - len("...")) // len(letter.encode())
    assert event.note == letter * fitting + "..."
    assert event.reason == event.action == "R" * 125 + "..."


async def test_a_note_that_is_no_unicode_is_told_as_far_as_it_is(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    broadcaster.recorder("shops").normal(OBJECT, "Synced", "a lonely \ud800 surrogate")
    await broadcaster.flush(5)

    assert server.told() == [("a lonely ? surrogate", 1)]


async def test_events_of_one_moment_have_names_of_their_own(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    moment = int(time.present.timestamp()) * 1_000_000_000
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "one")
    recorder.normal(OBJECT, "Synced", "two")
    await broadcaster.flush(5)

    assert list(server.events) == [f"settings.{moment:x}", f"settings.{moment + 1:x}"]


@pytest.mark.parametrize("name", ["system:node", "x" * 250, "-", ""])
async def test_an_object_whose_name_no_event_may_have_gets_events_of_another_name(
    broadcaster: EventBroadcaster, server: EventServer, name: str
) -> None:
    broadcaster.recorder("shops").normal(ClusterRole(metadata=ObjectMeta(name=name)), "Synced", "done")
    await broadcaster.flush(5)

    (stored,) = server.events
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", stored)


async def test_an_event_waits_for_a_server_that_is_away_and_keeps_its_place(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    server.troubles += [ConnectionFailed("refused"), (500, "InternalError", "oops"), ConnectionFailed("refused")]

    recorder.normal(OBJECT, "Synced", "one")
    recorder.normal(OBJECT, "Synced", "two")
    await broadcaster.flush(5)

    assert server.told() == [("one", 1), ("two", 1)]
    assert time.slept == [0.25, 0.5, 1.0]
    assert next(iter(server.stored())).event_time == datetime(2026, 1, 1, tzinfo=UTC)


async def test_after_twelve_attempts_an_event_is_given_up_and_the_next_one_has_its_turn(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = broadcaster.recorder("shops")
    server.troubles += [ConnectionFailed("refused")] * 12

    recorder.normal(OBJECT, "Synced", "one")
    recorder.normal(OBJECT, "Synced", "two")
    await broadcaster.flush(5)

    assert server.told() == [("two", 1)]
    assert len(time.slept) == 11
    assert max(time.slept) == 15
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "an event could not be written: Synced of ConfigMap shop/settings" in caplog.text


async def test_a_missing_permission_costs_the_event_and_one_line_in_the_log(
    broadcaster: EventBroadcaster, server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = broadcaster.recorder("shops")
    server.troubles += [(403, "Forbidden", "no")] * 3

    for note in ("one", "two", "three", "four"):
        recorder.normal(OBJECT, "Synced", note)
    await broadcaster.flush(5)

    assert server.told() == [("four", 1)]
    assert len(caplog.records) == 1
    assert "Forbidden: no" in caplog.text


async def test_a_refused_event_is_tried_afresh_when_it_happens_again(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    server.troubles.append((403, "Forbidden", "no"))
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.told() == [("done", 1)]


async def test_an_event_whose_answer_was_lost_is_not_written_twice(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    server.loses_answers = True
    recorder = broadcaster.recorder("shops")
    for _ in range(2):
        recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.requests == ["POST", "POST", "PATCH"]
    assert server.told() == [("done", 2)]


async def test_an_event_that_the_server_has_forgotten_is_written_again_with_its_count(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    server.events.clear()
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.told() == [("done", 2)]


@pytest.fixture
def short_queue(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("kubewright.manager.recorder.LONGEST_QUEUE", 20)
    return 20


def config_map(number: int) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace="shop"))


async def test_a_full_queue_drops_what_comes_on_top_and_says_so_once(
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
    logger = logging.getLogger("kubewright.manager.recorder")
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


async def test_what_is_remembered_is_bounded(
    broadcaster: EventBroadcaster, server: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubewright.manager.recorder._MOST_REMEMBERED", 50)
    recorder = broadcaster.recorder("shops")
    for number in range(80):
        recorder.normal(config_map(number), "Synced", "done")
    await broadcaster.flush(5)

    assert len(server.events) == 80
    assert len(broadcaster._known) == len(broadcaster._buckets) == 50


async def test_what_cannot_be_an_event_costs_a_line_in_the_log_and_nothing_else(
    broadcaster: EventBroadcaster, server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    class NotAKind(Object):
        pass

    recorder = broadcaster.recorder("shops")
    recorder.normal(NotAKind(), "Synced", "done")
    recorder.normal(OBJECT, "Synced", None)  # type: ignore[arg-type]  # what untyped programs do
    await broadcaster.flush(5)

    assert not server.requests
    assert [record.getMessage() for record in caplog.records] == ["an event was not recorded: reason 'Synced'"] * 2


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
    (occurrences,) = broadcaster._known.values()
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

    assert server.told() == [("done", 1)]


@pytest.mark.parametrize("component", ["", "two words", "x" * 64, "-a", "UPPER.example.com/a", "a/b/c", "example.com/"])
async def test_a_component_that_the_server_would_refuse_is_refused_at_once(
    broadcaster: EventBroadcaster, component: str
) -> None:
    with pytest.raises(ValueError, match=f'^"{component}" cannot be the component of a recorder: expected a name'):
        broadcaster.recorder(component)


@pytest.mark.parametrize("instance", ["", "x" * 129])
async def test_an_instance_that_the_server_would_refuse_is_refused_at_once(server: EventServer, instance: str) -> None:
    async with Client(Config(server="http://events.test"), transport=server) as client:
        with pytest.raises(ValueError, match="cannot be the instance of events: expected 1 to 128 bytes"):
            EventBroadcaster(client, instance=instance)


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


async def test_a_namespace_on_its_way_out_takes_no_events_and_nobody_complains(
    admin: Client, shop: ConfigMap, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kubewright.manager.recorder")
    shop.metadata.finalizers = ["example.com/hold"]
    shop = await admin.update(shop)
    await admin.delete(Namespace, shop.metadata.namespace)
    broadcaster = EventBroadcaster(admin, instance="operator-0")
    broadcaster.recorder("shops").normal(shop, "Synced", "done")
    await broadcaster.flush(5)
    shop = await admin.get(ConfigMap, shop.key)
    shop.metadata.finalizers = []
    await admin.update(shop)
    await admin.wait_for(Namespace, deleted, name=shop.metadata.namespace, timeout=30)

    broadcaster.recorder("shops").normal(shop, "Synced", "and when it is gone")
    await broadcaster.flush(5)

    assert not caplog.records


async def test_nobody_at_home_is_no_reason_to_fail(caplog: pytest.LogCaptureFixture) -> None:
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
