"""What an informer shows and emits, event by event, without a server."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import resource_info
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.index import field_values
from kubewright.cache.informer import Informer, Scope
from kubewright.cache.write_origin import WriteOrigin
from kubewright.client import Client

KEY = ObjectKey("ns", "a")
GVK = resource_info(ConfigMap).gvk


def thing(revision: int, name: str = "a", *, uid: str = "u", namespace: str = "ns", **data: str) -> CacheEntry:
    metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": str(revision)}
    return parse_entry(msgspec.json.encode({"kind": "ConfigMap", "metadata": metadata, "data": data}))


class RecordingSubscriber:
    """A subscriber that records its notifications, as revisions."""

    def __init__(self) -> None:
        self.events: list[tuple[int | None, int | None]] = []
        self.initial: list[bool] = []
        self.own: list[WriteOrigin | None] = []

    def __call__(self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        self.events.append((old.revision if old is not None else None, new.revision if new is not None else None))
        self.initial.append(initial)
        self.own.append(own)


def informer(scope: Scope | None = None) -> Informer:
    return Informer(cast(Client, None), ConfigMap, scope or Scope(GVK))


def synced(*entries: CacheEntry, revision: int = 10, scope: Scope | None = None) -> Informer:
    new = informer(scope)
    new.init()
    for entry in entries:
        new.init_apply(entry)
    new.init_done(revision)
    return new


def wrote(view: Informer, entry: CacheEntry, origin: WriteOrigin | None = None) -> None:
    view.written(entry.key, entry.revision, entry.body, origin)


def relist(view: Informer, *entries: CacheEntry, revision: int) -> None:
    view.init()
    for entry in entries:
        view.init_apply(entry)
    view.init_done(revision)


def test_the_initial_list_is_emitted_as_it_arrives_and_is_complete_at_its_end() -> None:
    view, subscriber = informer(), RecordingSubscriber()
    view.subscribe(subscriber)
    view.init()
    view.init_apply(thing(3))
    assert subscriber.events == [(None, 3)]
    assert subscriber.initial == [True]
    assert not view.synced.is_set()
    view.init_done(10)
    assert view.synced.is_set()
    assert view.revision == 10


def test_a_change_during_the_streamed_initial_list_is_emitted_as_a_change() -> None:
    view, subscriber = informer(), RecordingSubscriber()
    view.subscribe(subscriber)
    view.init()
    view.init_apply(thing(3))
    view.init_apply(thing(11))
    view.delete(thing(12))
    view.init_done(12)
    assert subscriber.events == [(None, 3), (3, 11), (12, None)]
    assert view.find(KEY) is None


def test_an_object_deleted_during_a_streamed_relist_does_not_come_back() -> None:
    """The server sends what happens since the beginning of the list before it says that the list is complete."""
    view, subscriber = synced(thing(3)), RecordingSubscriber()
    view.subscribe(subscriber)
    view.init()
    view.init_apply(thing(3))
    view.delete(thing(15))
    assert view.find(KEY) is not None  # readers see the store as it was until the new list is complete
    view.init_done(15)
    assert view.find(KEY) is None
    assert subscriber.events == [(None, 3), (3, None)]


def test_a_relist_emits_only_the_differences() -> None:
    view, subscriber = synced(thing(1, "stays"), thing(2, "changes"), thing(3, "goes")), RecordingSubscriber()
    view.subscribe(subscriber)
    subscriber.events.clear()
    relist(view, thing(1, "stays"), thing(12, "changes"), thing(13, "comes"), revision=20)
    assert subscriber.events == [(3, None), (2, 12), (None, 13)]
    assert view.revision == 20


def test_an_interrupted_list_leaves_no_trace() -> None:
    view = synced(thing(1))
    view.init()
    view.init_apply(thing(2, "half"))
    relist(view, thing(1), revision=20)
    assert view.find(ObjectKey("ns", "half")) is None


def test_the_rest_of_an_interrupted_initial_list_is_emitted_as_initial() -> None:
    view, subscriber = informer(), RecordingSubscriber()
    view.subscribe(subscriber)
    view.init()
    view.init_apply(thing(1, "first"))
    relist(view, thing(1, "first"), thing(2, "second"), revision=10)
    assert subscriber.events == [(None, 1), (None, 2)]
    assert subscriber.initial == [True, True]


def test_list_items_without_apiversion_and_kind_are_not_a_change() -> None:
    watched = thing(3, x="1")
    content = msgspec.json.decode(watched.body)
    del content["kind"]
    view, subscriber = synced(watched), RecordingSubscriber()
    view.subscribe(subscriber)
    relist(view, parse_entry(msgspec.json.encode(content)), revision=20)
    assert subscriber.events == [(None, 3)]


def test_after_a_restore_the_same_revision_may_be_another_state() -> None:
    view, subscriber = synced(thing(8, x="lost")), RecordingSubscriber()
    view.subscribe(subscriber)
    relist(view, thing(8, x="restored"), revision=9)
    found = view.find(KEY)
    assert found is not None
    assert b"restored" in found.body
    assert subscriber.events == [(None, 8), (8, 8)]


def test_own_writes_from_before_a_restore_are_forgotten() -> None:
    view = synced(thing(3))
    wrote(view, thing(15, x="lost"))
    relist(view, thing(3), revision=9)
    found = view.find(KEY)
    assert found is not None
    assert found.revision == 3


def test_a_repeated_change_is_emitted_once() -> None:
    view, subscriber = synced(), RecordingSubscriber()
    view.subscribe(subscriber)
    for revision in (11, 12, 11):
        view.apply(thing(revision))
    assert subscriber.events == [(None, 11), (11, 12)]
    assert view.revision == 12


def test_a_repeated_deletion_does_not_remove_the_successor() -> None:
    view = synced(thing(3))
    view.delete(thing(11))
    view.apply(thing(12, uid="successor"))
    view.delete(thing(11))
    found = view.find(KEY)
    assert found is not None
    assert found.revision == 12


def test_a_response_older_than_the_watch_is_not_shown() -> None:
    view = synced(thing(3))
    view.apply(thing(11))
    view.apply(thing(12))
    wrote(view, thing(11))
    found = view.find(KEY)
    assert found is not None
    assert found.revision == 12


def test_an_update_response_that_arrives_after_the_deletion_response_restores_nothing() -> None:
    view = synced(thing(3))
    view.removed(KEY, "u")
    wrote(view, thing(11))
    assert view.find(KEY) is None


def test_an_object_created_and_removed_while_the_watch_is_behind_uncovers_no_predecessor() -> None:
    view = synced(thing(3, uid="first"))
    view.removed(KEY, "first")
    wrote(view, thing(12, uid="second"))
    view.removed(KEY, "second")
    assert view.find(KEY) is None
    view.delete(thing(11, uid="first"))
    assert view.find(KEY) is None
    view.apply(thing(12, uid="second"))
    assert view.find(KEY) is None
    assert list(view.select()) == []
    view.delete(thing(13, uid="second"))
    view.apply(thing(14, uid="third"))
    assert view.find(KEY) is not None


def test_the_echo_of_an_own_write_is_emitted_with_its_origin() -> None:
    view, subscriber, origin = synced(), RecordingSubscriber(), WriteOrigin()
    view.subscribe(subscriber)
    wrote(view, thing(11), origin)
    assert subscriber.events == []
    view.apply(thing(11))
    view.apply(thing(12))
    assert subscriber.own == [origin, None]


def test_own_writes_are_found_by_index_and_namespace_before_the_watch_brings_them() -> None:
    view = synced(thing(3, node="n1"))
    view.add_index("data.node", field_values("data.node"))
    wrote(view, thing(11, node="n2"))
    wrote(view, thing(12, "b", namespace="other", node="n1"))
    assert [entry.key.name for entry in view.select(index=("data.node", "n1"))] == ["b"]
    assert [entry.revision for entry in view.select("ns", ("data.node", "n2"))] == [11]
    assert [entry.revision for entry in view.select("other")] == [12]
    assert [entry.revision for entry in view.select(index=("data.node", "n1"), own_writes=False)] == [3]


def test_an_own_write_that_leaves_the_selector_leaves_the_view() -> None:
    view = synced(thing(3), scope=Scope(GVK, fields="metadata.name=a,data.x!=out"))
    wrote(view, thing(11, x="out"))
    assert view.find(KEY) is None
    wrote(view, thing(12, x="in"))
    assert view.find(KEY) is not None


def test_when_the_kind_is_gone_every_object_is_emitted_as_deleted_and_none_is_shown() -> None:
    view, subscriber = synced(thing(3)), RecordingSubscriber()
    view.subscribe(subscriber)
    wrote(view, thing(11, "b"))
    view.gone()
    assert subscriber.events == [(None, 3), (3, None)]
    assert view.find(KEY) is None
    assert view.find(ObjectKey("ns", "b")) is None
    assert not view.synced.is_set()


def test_a_subscriber_notified_of_a_relist_reads_all_of_it() -> None:
    view = synced(thing(3), thing(4, "b"))
    wrote(view, thing(12, "b"))
    seen: list[list[tuple[str, int]]] = []
    view.subscribe(lambda *_: seen.append(sorted((entry.key.name, entry.revision) for entry in view.select())))
    seen.clear()
    relist(view, thing(13, "b"), thing(14, "c"), revision=20)
    assert seen == [[("b", 13), ("c", 14)]] * 3


def test_a_subscriber_that_unsubscribes_while_notified_does_not_keep_others_from_being_notified() -> None:
    view, subscriber = synced(), RecordingSubscriber()
    unsubscribe = view.subscribe(lambda *_: unsubscribe())
    view.subscribe(subscriber)
    view.apply(thing(11))
    assert subscriber.events == [(None, 11)]


def test_after_unsubscribing_no_further_object_of_the_same_list_is_notified() -> None:
    view, subscriber = synced(), RecordingSubscriber()

    def once(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        subscriber(old, new, initial, own)
        unsubscribe()

    unsubscribe = view.subscribe(once)
    relist(view, thing(11), thing(12, "b"), revision=20)
    assert subscriber.events == [(None, 11)]


def test_a_subscriber_added_during_a_notification_is_notified_of_each_object_once() -> None:
    view, late = synced(thing(3)), RecordingSubscriber()

    def bring_another(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if not initial:
            view.subscribe(late)

    view.subscribe(bring_another)
    view.apply(thing(11))
    assert late.events == [(None, 11)]


def test_a_transform_that_fails_keeps_the_object_whole_and_the_watch_going(caplog: pytest.LogCaptureFixture) -> None:
    def fails(raw: bytes) -> bytes:
        if b"bad" in raw:
            raise KeyError("spec")
        return raw.replace(b"large", b"")

    things = thing(3, x="bad large"), thing(4, "b", x="large"), thing(5, "c", x="bad")
    view = synced(*things, scope=Scope(GVK, transform=fails))
    bad, good = view.find(KEY), view.find(ObjectKey("ns", "b"))
    assert bad is not None
    assert good is not None
    assert b"large" in bad.body
    assert b"large" not in good.body
    assert "the transform of configmaps failed, first for ns/a; such objects are kept whole" in caplog.text
    assert len(caplog.records) == 1


def test_statistics_count_only_what_the_watch_brought() -> None:
    view = synced(thing(3), thing(4, "b"))
    wrote(view, thing(11, "c"))
    assert view.statistics.objects == 2
    assert view.statistics.bytes == len(thing(3).body) + len(thing(4, "b").body)
    view.delete(thing(12, "b"))
    assert view.statistics.objects == 1
    assert view.statistics.bytes == len(thing(3).body)


@pytest.mark.parametrize("dropped", ["name", "namespace", "uid", "resourceVersion"])
def test_a_transform_that_drops_identifying_fields_keeps_the_object_whole_and_is_logged_once(
    dropped: str, caplog: pytest.LogCaptureFixture
) -> None:
    def transform(raw: bytes) -> bytes:
        content = msgspec.json.decode(raw)
        del content["data"], content["metadata"][dropped]
        return msgspec.json.encode(content)

    view = synced(thing(3, x="1"), thing(4, "b"), scope=Scope(GVK, transform=transform))
    view.apply(thing(11, x="2"))
    found = view.find(KEY)
    assert found is not None
    assert (found.body, found.header.uid) == (thing(11, x="2").body, "u")
    assert view.statistics.objects == 2
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [
        "the transform of configmaps changes or drops name"
    ]
