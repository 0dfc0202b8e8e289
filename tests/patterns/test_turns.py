from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from kubewright import Request
from kubewright.patterns.turns import Turn, Turns

OLD, NEW, NEWEST = (Request("default", name) for name in ("old", "new", "newest"))


def turn(second: int, key: str = "bob", *, is_begun: bool = False) -> Turn:
    return Turn(key, (datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), "uid"), is_begun)


def test_the_oldest_of_a_key_is_next_in_whichever_order_they_come() -> None:
    turns = Turns()
    for second, request in ((3, NEWEST), (1, OLD), (2, NEW)):
        assert turns.enter(request, turn(second)) is None
    assert [turns.is_next(each) for each in (OLD, NEW, NEWEST)] == [True, False, False]


def test_of_the_same_second_the_uid_decides() -> None:
    turns = Turns()
    for name in ("b", "a"):
        turns.enter(Request("", name), turn(1)._replace(order=(turn(1).order[0], name)))
    assert turns.is_next(Request("", "a"))
    assert not turns.is_next(Request("", "b"))


def test_what_was_begun_goes_on_and_no_other_is_next_before_it_ends() -> None:
    turns = Turns()
    turns.enter(OLD, turn(1))
    turns.enter(NEW, turn(2, is_begun=True))
    assert (turns.is_next(OLD), turns.is_next(NEW)) == (False, True)
    assert turns.leave(NEW) == OLD
    assert turns.is_next(OLD)


def test_keys_do_not_wait_for_each_other() -> None:
    turns = Turns()
    turns.enter(OLD, turn(1, is_begun=True))
    turns.enter(NEW, turn(2, "eve"))
    assert turns.is_next(NEW)


def test_the_one_that_is_next_is_returned_when_one_leaves() -> None:
    turns = Turns()
    for second, request in ((1, OLD), (2, NEW), (3, NEWEST)):
        turns.enter(request, turn(second))
    assert turns.leave(NEWEST) == OLD
    assert turns.leave(OLD) == NEW
    assert turns.leave(NEW) is None
    assert turns.leave(NEW) is None


def test_a_request_that_changes_its_key_leaves_the_line_of_the_old_one() -> None:
    turns = Turns()
    turns.enter(OLD, turn(1))
    turns.enter(NEW, turn(2))
    assert turns.enter(OLD, turn(1, "eve")) == NEW
    assert turns.is_next(OLD)
    assert turns.is_next(NEW)


def test_a_request_of_which_nothing_is_known_is_not_next() -> None:
    assert not Turns().is_next(OLD)


def test_nothing_is_kept_of_requests_that_have_left() -> None:
    turns = Turns()
    turns.enter(OLD, turn(1))
    turns.enter(OLD, turn(1, is_begun=True))
    turns.enter(NEW, turn(2))
    turns.enter(NEW, turn(3))
    turns.leave(OLD)
    turns.leave(NEW)
    turns.leave(NEWEST)
    assert (turns._turns, turns._lines) == ({}, {})


KEYS = ("bob", "eve")
STEPS = st.tuples(
    st.sampled_from([Request("", name) for name in "abcde"]),
    st.none() | st.tuples(st.sampled_from(KEYS), st.integers(0, 3), st.booleans()),
)


@given(st.lists(STEPS))
def test_turns_are_those_of_a_plain_search(steps: list[tuple[Request, tuple[str, int, bool] | None]]) -> None:
    turns, known = Turns(), dict[Request, Turn]()
    for request, given_turn in steps:
        if given_turn is None:
            turns.leave(request)
            known.pop(request, None)
        else:
            key, second, is_begun = given_turn
            known[request] = turn(second, key, is_begun=is_begun)
            turns.enter(request, known[request])
    for request, own in known.items():
        line = {each: other for each, other in known.items() if other.key == own.key}
        is_held = any(other.is_begun for other in line.values())
        oldest = min(line, key=lambda each: (line[each].order, each))
        assert turns.is_next(request) == (own.is_begun or (not is_held and oldest == request))
