from __future__ import annotations

import pytest

from kubewright.cache.reflector_state import (
    Blocked,
    BlockedReason,
    Empty,
    ListCompleted,
    Listing,
    ListStarted,
    Resumed,
    RevisionLost,
    State,
    Watching,
    after,
)


def blocked(reason: BlockedReason = "unreachable") -> Blocked:
    return Blocked(reason, OSError("no route to host"), 0.0)


def test_a_list_leads_to_a_watch_from_its_revision() -> None:
    listing = after(Empty(), ListStarted())
    assert isinstance(listing, Listing)
    watching = after(listing, ListCompleted(7))
    assert isinstance(watching, Watching)
    assert (watching.revision, watching.blocked, watching.is_silent) == (7, None, False)


@pytest.mark.parametrize("reason", ["forbidden", "unreachable", "failed"])
def test_a_blocked_watch_is_resumed_where_it_was(reason: BlockedReason) -> None:
    stopped = after(Watching(7), why := blocked(reason))
    assert isinstance(stopped, Watching)
    assert (stopped.revision, stopped.blocked) == (7, why)
    resumed = after(stopped, Resumed())
    assert isinstance(resumed, Watching)
    assert (resumed.revision, resumed.blocked, resumed.is_silent) == (7, None, True)


@pytest.mark.parametrize(
    ("state", "reason"), [(Empty(), "unreachable"), (Listing(100), "unreachable"), (Watching(7), "absent")]
)
def test_an_interrupted_list_and_a_watch_of_an_absent_kind_start_over(state: State, reason: BlockedReason) -> None:
    emptied = after(state, why := blocked(reason))
    assert isinstance(emptied, Empty)
    assert emptied.blocked is why


@pytest.mark.parametrize("state", [Empty(), Listing(100), Watching(7), Watching(7, blocked())])
def test_a_lost_revision_leads_to_empty_and_not_blocked(state: State) -> None:
    emptied = after(state, RevisionLost())
    assert isinstance(emptied, Empty)
    assert emptied.blocked is None


@pytest.mark.parametrize(
    ("state", "transition"), [(Empty(), ListCompleted(7)), (Watching(7), ListCompleted(8)), (Empty(), Resumed())]
)
def test_an_impossible_transition_is_refused(state: State, transition: ListCompleted | Resumed) -> None:
    with pytest.raises(ValueError, match="cannot take"):
        after(state, transition)


def test_a_note_is_part_of_the_message() -> None:
    assert str(blocked()) == "no route to host"
    assert str(Blocked("unreachable", OSError("404"), 0.0, "yet discovery has the kind")) == (
        "404; yet discovery has the kind"
    )
