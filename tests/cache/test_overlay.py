from __future__ import annotations

import msgspec

from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.overlay import Overlay
from kubewright.cache.write_origin import WriteOrigin

KEY = ObjectKey("ns", "a")


def _entry(revision: int, uid: str = "u") -> CacheEntry:
    metadata = {"namespace": "ns", "name": "a", "uid": uid, "resourceVersion": str(revision)}
    return parse_entry(msgspec.json.encode({"metadata": metadata}))


def test_a_write_is_shown_until_the_watch_reaches_its_revision() -> None:
    overlay, stored, written = Overlay(), _entry(1), _entry(5)
    overlay.written(KEY, 5, written)
    assert overlay.over(KEY, stored) is written
    overlay.reached(4)
    assert overlay.over(KEY, stored) is written
    overlay.reached(5)
    assert overlay.over(KEY, stored) is stored
    assert len(overlay) == 0


def test_a_write_given_as_json_is_shown_as_an_entry() -> None:
    overlay, written = Overlay(), _entry(5)
    overlay.written(KEY, 5, written.body)
    shown = overlay.over(KEY, None)
    assert shown is not None
    assert (shown.key, shown.revision, shown.body) == (KEY, 5, written.body)
    assert overlay.over(KEY, None) is shown


def test_the_newer_of_two_writes_is_shown_in_whatever_order_they_are_answered() -> None:
    overlay, first, second = Overlay(), _entry(5), _entry(6)
    overlay.written(KEY, 6, second)
    overlay.written(KEY, 5, first)
    assert overlay.over(KEY, None) is second


def test_a_removed_object_is_hidden_and_its_successor_is_not() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 3)
    assert overlay.over(KEY, _entry(3)) is None
    assert overlay.over(KEY, _entry(9, uid="another")) is not None


def test_a_removed_object_stays_hidden_through_changes_that_came_before_the_removal() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 3)
    overlay.seen(KEY, _entry(4), 4)
    overlay.reached(100)
    assert overlay.over(KEY, _entry(4)) is None
    overlay.seen(KEY, None, 101)
    assert len(overlay) == 0


def test_a_relist_settles_removals() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 3)
    overlay.replaced(7, lambda key: "u")
    assert overlay.over(KEY, _entry(4)) is None
    overlay.replaced(8, lambda key: "")
    assert len(overlay) == 0


def test_the_echo_of_a_write_is_known_as_such() -> None:
    overlay = Overlay()
    origin = WriteOrigin()
    overlay.written(KEY, 5, _entry(5), origin)
    assert overlay.origin(KEY, 5) is origin
    assert overlay.origin(KEY, 6) is None
    assert overlay.origin(ObjectKey("ns", "b"), 5) is None


def test_the_lag_of_the_watch_is_measured_by_own_writes() -> None:
    now = 10.0
    overlay = Overlay(now=lambda: now)
    overlay.written(KEY, 5, _entry(5))
    now = 12.5
    overlay.reached(5)
    assert overlay.lag == 2.5


def test_a_removed_object_hides_its_predecessors_too() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "second", 7)
    assert overlay.over(KEY, _entry(3, uid="first")) is None
    overlay.seen(KEY, None, 5)
    assert overlay.over(KEY, _entry(7, uid="second")) is None
    overlay.seen(KEY, None, 8)
    assert len(overlay) == 0


def test_a_list_from_before_a_removed_object_was_made_does_not_settle_its_removal() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 7)
    overlay.replaced(6, lambda key: "")
    assert overlay.over(KEY, _entry(7)) is None
    overlay.replaced(7, lambda key: "")
    assert len(overlay) == 0


def test_states_of_a_removed_object_are_known_as_such() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 3)
    assert overlay.is_removed(KEY, _entry(9).body)
    assert not overlay.is_removed(KEY, _entry(9, uid="another").body)
    overlay.written(KEY, 9, _entry(9, uid="another"))
    assert not overlay.is_removed(KEY, _entry(9, uid="another").body)


def test_the_deletion_event_of_a_removed_object_is_not_the_echo_of_a_write() -> None:
    overlay = Overlay()
    overlay.removed(KEY, "u", 3)
    assert overlay.origin(KEY, 3) is None


def test_an_object_that_was_removed_before_the_watch_brought_it_is_hidden_until_its_end() -> None:
    overlay = Overlay()
    overlay.removed_unseen(KEY, "u")
    assert overlay.over(KEY, None) is None
    overlay.seen(KEY, _entry(7), 7)
    assert overlay.over(KEY, _entry(7)) is None
    overlay.ended(_entry(8, uid="another"))
    assert overlay.over(KEY, _entry(7)) is None
    overlay.ended(_entry(9))
    assert len(overlay) == 0


def test_only_a_list_that_began_later_forgets_an_object_that_was_removed_unseen() -> None:
    overlay = Overlay()
    overlay.list_begins()
    overlay.removed_unseen(KEY, "u")
    overlay.replaced(5, lambda key: "")
    assert overlay.over(KEY, _entry(7)) is None
    overlay.list_begins()
    overlay.replaced(9, lambda key: "")
    assert len(overlay) == 0


def test_an_object_that_was_removed_unseen_hides_no_other_of_that_name() -> None:
    overlay, written = Overlay(), _entry(5, uid="written")
    overlay.removed_unseen(KEY, "u")
    assert overlay.over(KEY, other := _entry(3, uid="another")) is other
    overlay.written(KEY, 5, written)
    overlay.removed_unseen(KEY, "u")
    assert overlay.over(KEY, None) is written
