"""What is in an event, when it is the same one again, and how many are written."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.manager.event_server import OBJECT, EventServer, ManualTime, config_map

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.client import Client, Config
from kubewright.manager.event_correlator import BURST, MAX_NOTES, REFILL, SIMILAR_WINDOW
from kubewright.manager.event_form import SERIES_WINDOW
from kubewright.manager.recorder import EventBroadcaster


async def test_an_event_names_the_reporter_the_action_and_the_object(
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


async def test_the_action_is_the_reason_by_default(broadcaster: EventBroadcaster, server: EventServer) -> None:
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


async def test_the_same_event_again_raises_the_count_of_the_existing_one(
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

    assert server.counted_notes() == [("done", 1), ("done", 1)]


async def test_an_object_that_has_changed_is_still_the_same_object(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    for revision in ("5", "6"):
        meta = ObjectMeta(name="settings", namespace="shop", uid="1", resource_version=revision)
        recorder.normal(ConfigMap(metadata=meta), "Synced", "done")
        await broadcaster.flush(5)

    assert server.counted_notes() == [("done", 2)]


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


async def test_repetitions_that_are_not_written_yet_cost_one_request(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    recorder = broadcaster.recorder("shops")
    for _ in range(500):
        recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)

    assert server.requests == ["POST"]
    assert server.counted_notes() == [("done", 500)]


async def test_about_one_object_a_burst_is_written_at_once_and_then_one_event_every_five_minutes(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for number in range(BURST + 10):
        recorder.normal(OBJECT, f"Synced{number}", f"{number}")
    recorder.warning(OBJECT, "Failed", "a warning")
    recorder.normal(ClusterRole(metadata=ObjectMeta(name="other")), "Synced", "another object")
    await broadcaster.flush(5)
    notes = [note for note, _ in server.counted_notes()]
    notes.remove("another object")  # whenever that was: objects do not wait for each other
    assert notes == [*map(str, range(BURST)), "a warning"]

    time.advance(REFILL)
    recorder.normal(OBJECT, "Synced", "after a while")
    recorder.normal(OBJECT, "Synced", "too soon")
    await broadcaster.flush(5)
    assert [note for note, _ in server.counted_notes()][BURST + 2 :] == ["after a while"]


async def test_from_the_tenth_note_on_events_that_differ_in_their_note_alone_are_combined(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for number in range(MAX_NOTES + 2):
        recorder.normal(OBJECT, "Created", f"pod {number}")
        recorder.normal(OBJECT, "Synced", "done")
        await broadcaster.flush(5)
    combined = f"(combined from similar events): pod {MAX_NOTES - 1}"
    single = [(f"pod {number}", 1) for number in range(MAX_NOTES - 1)]
    assert sorted(server.counted_notes()) == sorted([*single, (combined, 3), ("done", MAX_NOTES + 2)])

    time.advance(SIMILAR_WINDOW + timedelta(seconds=1))
    recorder.normal(OBJECT, "Created", "pod 99")
    await broadcaster.flush(5)
    assert server.counted_notes()[-1] == ("pod 99", 1)


async def test_repetitions_beyond_the_limit_are_counted_and_written_with_the_next_write(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    for _ in range(BURST + 10):
        recorder.normal(OBJECT, "Synced", "done")
        await broadcaster.flush(5)
    assert server.counted_notes() == [("done", BURST)]

    time.advance(REFILL)
    recorder.normal(OBJECT, "Synced", "done")
    await broadcaster.flush(5)
    assert server.counted_notes() == [("done", BURST + 11)]
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
async def test_a_note_is_cut_to_the_servers_limit(
    broadcaster: EventBroadcaster, server: EventServer, letter: str
) -> None:
    broadcaster.recorder("shops").normal(OBJECT, "R" * 200, letter * 2000)
    await broadcaster.flush(5)

    (event,) = server.stored()
    fitting = (1024 - len("...")) // len(letter.encode())
    assert event.note == letter * fitting + "..."
    assert event.reason == event.action == "R" * 125 + "..."


async def test_a_note_that_is_no_unicode_is_written_as_far_as_it_is(
    broadcaster: EventBroadcaster, server: EventServer
) -> None:
    broadcaster.recorder("shops").normal(OBJECT, "Synced", "a lonely \ud800 surrogate")
    await broadcaster.flush(5)

    assert server.counted_notes() == [("a lonely ? surrogate", 1)]


async def test_events_of_one_moment_have_names_of_their_own(
    broadcaster: EventBroadcaster, server: EventServer, time: ManualTime
) -> None:
    recorder = broadcaster.recorder("shops")
    recorder.normal(OBJECT, "Synced", "one")
    recorder.normal(OBJECT, "Synced", "two")
    await broadcaster.flush(5)

    one, two = (int(name.removeprefix("settings."), 16) for name in server.events)
    assert two == one + 1
    assert 0 <= one - int(time.present.timestamp()) * 1_000_000_000 < 1000


async def test_events_of_two_replicas_at_one_moment_have_names_of_their_own(
    server: EventServer, time: ManualTime
) -> None:
    async with Client(Config(server="http://events.test"), transport=server) as client:
        for instance in ("operator-0", "operator-1"):
            broadcaster = EventBroadcaster(client, instance=instance, now=time.now)
            broadcaster.recorder("shops").normal(OBJECT, "Synced", "one")
            await broadcaster.flush(5)

    assert len(server.events) == 2


@pytest.mark.parametrize("name", ["system:node", "x" * 250, "-", ""])
async def test_an_object_whose_name_no_event_may_have_gets_events_of_another_name(
    broadcaster: EventBroadcaster, server: EventServer, name: str
) -> None:
    broadcaster.recorder("shops").normal(ClusterRole(metadata=ObjectMeta(name=name)), "Synced", "done")
    await broadcaster.flush(5)

    (stored,) = server.events
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", stored)


async def test_the_number_of_kept_events_is_bounded(
    broadcaster: EventBroadcaster, server: EventServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubewright.manager.event_correlator.MAX_REMEMBERED", 50)
    recorder = broadcaster.recorder("shops")
    for number in range(80):
        recorder.normal(config_map(number), "Synced", "done")
    await broadcaster.flush(5)

    assert len(server.events) == 80
    remembered = broadcaster._correlator
    assert len(remembered._events) == len(remembered._notes) == len(remembered._buckets) == 50


async def test_an_invalid_event_is_logged_and_fails_nothing(
    broadcaster: EventBroadcaster, server: EventServer, caplog: pytest.LogCaptureFixture
) -> None:
    class NotAKind(Object):
        pass

    recorder = broadcaster.recorder("shops")
    recorder.normal(NotAKind(), "Synced", "done")
    recorder.normal(OBJECT, "Synced", None)  # type: ignore[arg-type]  # what untyped programs do
    recorder.normal("a-map", "Synced", "done")  # type: ignore[arg-type]
    await broadcaster.flush(5)

    assert not server.requests
    assert caplog.messages == [
        "an event was not recorded: reason 'Synced'",
        f"an event was not recorded: reason 'Synced': the note of ConfigMap {OBJECT.key} is a text, not None: "
        "write normal(obj, reason, note)",
        "an event was not recorded: reason 'Synced': expected the object that it is about, not a str: "
        "write normal(obj, reason, note)",
    ]
    assert [record.exc_info is not None for record in caplog.records] == [True, False, False]


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
