from __future__ import annotations

import pytest

from kubewright.controller.hot_loop import MAX_IDLE, MAX_WRITING, PAUSE, SECONDS, HotLoops


def until_paused(loops: HotLoops[str], key: str, start: float, interval: float) -> tuple[int, float, float]:
    """Writing reconciles at a steady pace: how many until the first pause, when, and how long it is."""
    for number in range(1, 10 * MAX_WRITING):
        now = start + number * interval
        if pause := loops.note(key, 1, now):
            return number, now, pause
    raise AssertionError("never paused")


def test_many_writing_reconciles_in_a_short_time_are_paused() -> None:
    number, _, pause = until_paused(HotLoops(), "a", 0.0, 0.01)
    assert number == MAX_WRITING
    assert pause == PAUSE.base


def test_the_pauses_grow_up_to_a_limit() -> None:
    loops = HotLoops[str]()
    _, now, pause = until_paused(loops, "a", 0.0, 0.01)
    pauses = [pause]
    for _ in range(9):
        now += pause + 0.01
        pause = loops.note("a", 1, now)
        pauses.append(pause)
    assert pauses == [1, 2, 4, 8, 16, 32, PAUSE.limit, PAUSE.limit, PAUSE.limit, PAUSE.limit]


def test_reconciles_that_write_nothing_are_a_loop_when_there_are_far_more_of_them() -> None:
    loops = HotLoops[str]()
    paused = [loops.note("a", 0, number * 0.001) for number in range(MAX_IDLE)]
    assert paused == [0.0] * (MAX_IDLE - 1) + [PAUSE.base]


def test_an_object_that_is_polled_quickly_is_never_paused() -> None:
    loops = HotLoops[str]()
    slow = 1.05 * SECONDS / (MAX_IDLE - 1)
    assert not any(loops.note("a", 0, number * slow) for number in range(5 * MAX_IDLE))


def test_an_object_that_is_written_now_and_then_is_never_paused() -> None:
    loops = HotLoops[str]()
    slow = 1.05 * SECONDS / (MAX_WRITING - 1)
    assert not any(loops.note("a", 1, number * slow) for number in range(20 * MAX_WRITING))


def test_reconciles_without_writes_between_those_with_count_less() -> None:
    loops = HotLoops[str]()
    paused = [loops.note("a", number % 3 == 0, number * 0.01) > 0 for number in range(3 * MAX_WRITING)]
    assert paused.index(True) == 3 * MAX_IDLE // (MAX_IDLE // MAX_WRITING + 2) - 1


def test_one_key_does_not_slow_another() -> None:
    loops = HotLoops[str]()
    _, now, _ = until_paused(loops, "a", 0.0, 0.01)
    assert loops.note("b", 1, now) == 0.0


def test_a_key_that_was_idle_starts_over() -> None:
    loops = HotLoops[str]()
    _, now, pause = until_paused(loops, "a", 0.0, 0.01)
    number, _, again = until_paused(loops, "a", now + pause + SECONDS, 0.01)
    assert number == MAX_WRITING
    assert again == PAUSE.base


@pytest.mark.parametrize("earlier_pauses", [0, 8])
def test_nothing_is_kept_of_idle_keys(earlier_pauses: int) -> None:
    loops = HotLoops[int]()
    now = 0.0
    for number in range(MAX_WRITING + earlier_pauses):
        now += max(loops.note(-1, 1, now), 0.01)
        if number < MAX_WRITING:
            loops.note(number, 1, now)
    assert loops._windows

    now += 2 * PAUSE.limit + SECONDS
    loops.note(1000, 0, now)
    assert set(loops._windows) == {1000}


def test_a_paused_key_is_kept_beyond_its_pause() -> None:
    """Else a loop that is slowed to a reconcile a minute would look like a new one each time."""
    loops = HotLoops[str]()
    _, now, pause = until_paused(loops, "a", 0.0, 0.01)
    while pause < PAUSE.limit:
        now += pause
        pause = loops.note("a", 1, now)
    for _ in range(5):
        now += pause / 2
        loops.note("other", 0, now)  # what is old is cleared away
        now += pause / 2 + 1
        assert loops.note("a", 1, now) == PAUSE.limit
