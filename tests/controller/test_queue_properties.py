"""The queue against a model that is as simple as it can be: no heap, no timer, no levels; it checks every key."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Hashable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubewright.controller.queue import Queue, QueueClosed, Work
from kubewright.testing.virtual_time import VirtualTimeLoop

T = TypeVar("T")

NEVER = math.inf
# Few, so that much happens to each.
NAMES = "abc"
KEYS = st.sampled_from(NAMES)
PRIORITIES = st.sampled_from([-100, 0, 7])
# Halves of seconds are exact in binary, so that times can be compared.
SECONDS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5, 6.0])


class Doubling:
    """1, 2, 4 … seconds: a rate limiter whose delays are exact."""

    def __init__(self) -> None:
        self.counted: dict[Hashable, int] = {}

    def delay(self, key: Hashable) -> float:
        self.counted[key] = self.failures(key) + 1
        return min(2.0 ** (self.counted[key] - 1), 8.0)

    def forget(self, key: Hashable) -> None:
        self.counted.pop(key, None)

    def failures(self, key: Hashable) -> int:
        return self.counted.get(key, 0)


@dataclass
class Expected:
    """All that should be true of one key."""

    requested: float = NEVER
    quiet: float = NEVER
    burst_ends: float = NEVER
    priority: int = 0
    retry: float = NEVER
    retry_priority: int = 0
    running: bool = False
    held: float = 0.0  # the end of its pause
    due_since: float = NEVER
    position: tuple[float, int] | None = None  # where it stands in its level; the same for keys whose order is open
    level: int = 0

    def added_for(self) -> float:
        return min(self.requested, self.quiet)


@dataclass
class Model:
    debounce: float
    limit: float
    now: float = 0.0
    keys: dict[str, Expected] = field(default_factory=lambda: {key: Expected() for key in NAMES})
    limiter: Doubling = field(default_factory=Doubling)
    closed: bool = False
    passed_over: int = 0
    adds: int = 0
    retries: int = 0
    positions: int = 0

    def add(self, name: str, priority: int, after: float) -> None:
        if self.closed:
            return
        self.retries += after > 0
        key = self.keys[name]
        key.priority = priority if key.added_for() == NEVER else max(key.priority, priority)
        if after:
            key.requested = min(key.requested, self.now + after)
        elif self.debounce and key.due_since == NEVER:
            if key.quiet == NEVER:
                key.burst_ends = self.now + self.limit
            key.quiet = min(self.now + self.debounce, key.burst_ends)
        else:
            key.requested = min(key.requested, self.now)
        self.settle()

    def add_failed(self, name: str, priority: int | None) -> None:
        if self.closed:
            return
        key = self.keys[name]
        pending = self.now < key.retry < NEVER or (key.retry <= self.now and key.position is not None)
        if not pending:
            key.retry = self.now + self.limiter.delay(name)
            self.retries += 1
        key.retry_priority = key.level if priority is None else priority
        self.settle()

    def forget(self, name: str) -> None:
        self.limiter.forget(name)
        key = self.keys[name]
        if key.retry == NEVER:
            return
        key.retry = NEVER
        if key.position is not None and key.added_for() > self.now:
            key.position, key.due_since = None, NEVER
        self.settle()

    def advance(self, seconds: float) -> None:
        """From one moment at which anything is due to the next."""
        end = self.now + seconds
        while True:
            times = [time for key in self.keys.values() for time in (key.requested, key.quiet, key.retry, key.held)]
            self.now = min([time for time in times if self.now < time <= end], default=end)
            self.settle()
            if self.now == end:
                return

    def settle(self) -> None:
        """Let everything be due that is by now. What becomes due at the same moment may come in any order."""
        self.positions += 1
        for key in self.keys.values():
            if key.held > self.now:
                continue
            added = key.added_for() <= self.now
            if not added and (key.running or key.retry > self.now):
                if key.position is None and not key.running and min(key.added_for(), key.retry) == NEVER:
                    key.level = 0  # nothing is known of it any more
                if key.position is None:
                    continue
            if key.due_since == NEVER:
                key.due_since = self.now
                self.adds += 1
            if key.running:
                continue
            wishes = [key.priority] if key.added_for() < NEVER else []
            wishes += [key.retry_priority] if key.retry < NEVER else []
            if key.position is None or max(wishes) > key.level:
                key.level = max(wishes)
                key.position = (self.now, self.positions)

    def choices(self) -> set[str]:
        """Which keys may be handed out now."""
        levels: dict[int, dict[str, Expected]] = {}
        for name, key in self.keys.items():
            if key.position is not None:
                levels.setdefault(key.level, {})[name] = key
        firsts = []
        for _, level in sorted(levels.items(), reverse=True):
            first = min(key.position for key in level.values() if key.position is not None)
            firsts.append({name for name, key in level.items() if key.position == first})
        if self.passed_over < 15 or len(firsts) < 2:
            return firsts[0]
        return set().union(*firsts[1:])

    def hand_out(self, work: Work[str]) -> None:
        assert work.key in self.choices()
        key = self.keys[work.key]
        waiting = {key.level for key in self.keys.values() if key.position is not None}
        turn = self.passed_over == 15 and len(waiting) > 1
        if turn:
            assert key.level < max(waiting)
        self.passed_over = 0 if turn or len(waiting) < 2 else self.passed_over + 1
        assert not key.running
        assert work.priority == key.level
        assert work.waited == self.now - key.due_since
        assert work.attempt == self.limiter.failures(work.key)
        key.position, key.due_since, key.requested, key.quiet = None, NEVER, NEVER, NEVER
        key.running = True
        if key.retry <= self.now:
            key.retry = NEVER

    def done(self, name: str, pause: float) -> None:
        key = self.keys[name]
        key.running = False
        if pause and not self.closed:
            key.held = self.now + pause
            if key.due_since < NEVER:
                key.due_since = key.held
        self.settle()

    def close(self) -> None:
        self.closed = True
        for key in self.keys.values():
            if key.held > self.now:
                key.held, key.due_since = self.now, NEVER
            if key.due_since == NEVER or key.added_for() > self.now:
                key.requested = key.quiet = NEVER
            if key.position is None or key.retry > self.now:
                key.retry = NEVER
        self.settle()


class QueueMachine(RuleBasedStateMachine):
    """Does the same to a queue and to the model, and compares what can be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.getters: list[asyncio.Task[Work[str]]] = []

    @initialize(debounce=st.sampled_from([0.0, 0.0, 1.5]))
    def make(self, debounce: float) -> None:
        self.queue = Queue[str](Doubling(), debounce=debounce, debounce_limit=4.0 if debounce else None)
        self.model = Model(debounce, 4.0)

    def run(self, coroutine: Coroutine[None, None, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    @rule(key=KEYS, priority=PRIORITIES, after=SECONDS)
    def add(self, key: str, priority: int, after: float) -> None:
        async def act() -> None:
            self.queue.add(key, priority=priority, after=after)

        self.run(act())
        self.model.add(key, priority, after)
        self.serve_getters()

    @rule(key=KEYS, priority=PRIORITIES)
    def add_now(self, key: str, priority: int) -> None:
        self.add(key, priority, 0.0)

    @rule(key=KEYS, priority=st.none() | PRIORITIES)
    def add_failed(self, key: str, priority: int | None) -> None:
        async def act() -> None:
            self.queue.add_failed(key, priority=priority)

        self.run(act())
        self.model.add_failed(key, priority)
        self.serve_getters()

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        async def act() -> None:
            self.queue.forget(key)

        self.run(act())
        self.model.forget(key)
        self.serve_getters()

    @precondition(lambda self: any(key.running for key in self.model.keys.values()))
    @rule(data=st.data(), failed=st.booleans(), pause=st.just(0.0) | SECONDS)
    def done(self, data: st.DataObject, failed: bool, pause: float) -> None:
        key = data.draw(st.sampled_from([name for name, key in self.model.keys.items() if key.running]))
        if failed:
            self.add_failed(key, None)

        async def act() -> None:
            self.queue.done(key, pause=pause)

        self.run(act())
        self.model.done(key, pause)
        self.serve_getters()

    @precondition(lambda self: any(key.position is not None for key in self.model.keys.values()))
    @rule(count=st.integers(1, 3))
    def get_ready(self, count: int) -> None:
        for _ in range(min(count, len(self.queue))):
            self.model.hand_out(self.run(self.queue.get()))

    @precondition(lambda self: not len(self.queue))
    @rule(count=st.integers(1, 4))
    def get_and_wait(self, count: int) -> None:
        if self.model.closed:
            with pytest.raises(QueueClosed):
                self.run(self.queue.get())
        else:
            self.getters += [self.loop.create_task(self.queue.get()) for _ in range(count)]
            self.run(asyncio.sleep(0))

    @precondition(lambda self: self.getters)
    @rule(data=st.data())
    def cancel_a_getter(self, data: st.DataObject) -> None:
        getter = self.getters.pop(data.draw(st.integers(0, len(self.getters) - 1)))
        getter.cancel()
        self.run(asyncio.wait((getter,)))
        assert getter.cancelled()

    @rule(steps=st.integers(1, 12))
    def advance_time(self, steps: int) -> None:
        # In small steps while there are getters: they take a key at the moment it is due, not at the end.
        while steps:
            step = 1 if self.getters else steps
            self.run(asyncio.sleep(0.5 * step))
            self.model.advance(0.5 * step)
            self.serve_getters()
            steps -= step

    @precondition(lambda self: self.model.now > 10)
    @rule(getters=st.integers(0, 4), burst=st.lists(st.tuples(KEYS, PRIORITIES), max_size=4))
    def close(self, getters: int, burst: list[tuple[str, int]]) -> None:
        """Right after a burst, that is, before any getter has taken what it was woken for."""
        if getters and not len(self.queue) and not self.model.closed:
            self.get_and_wait(getters)

        async def act() -> None:
            for key, priority in burst:
                self.queue.add(key, priority=priority)
            self.queue.close()

        self.run(act())
        for key, priority in burst:
            self.model.add(key, priority, 0.0)
        self.model.close()
        self.serve_getters()

    def serve_getters(self) -> None:
        """Those that wait get what is ready, in the order in which they began to wait."""
        if not self.getters:
            return
        self.run(asyncio.sleep(0))
        served = [getter for getter in self.getters if getter.done()]
        assert self.getters[: len(served)] == served
        del self.getters[: len(served)]
        for getter in served:
            if isinstance(getter.exception(), QueueClosed):
                assert self.model.closed
                assert not any(key.position for key in self.model.keys.values())
            else:
                self.model.hand_out(getter.result())
        if self.getters:
            assert not self.model.closed
            assert not any(key.position for key in self.model.keys.values()), "a getter waits although a key is ready"

    @invariant()
    def what_can_be_seen_is_as_expected(self) -> None:
        if not hasattr(self, "model"):
            return
        keys = self.model.keys
        depth = dict[int, int]()
        for key in keys.values():
            if key.position is not None:
                depth[key.level] = depth.get(key.level, 0) + 1
        assert {level: count for level, count in self.queue.depth().items() if count} == depth
        assert len(self.queue) == sum(depth.values())
        assert self.queue.running().keys() == {name for name, key in keys.items() if key.running}
        assert self.queue.delayed() == {
            name: max(when, key.held) if when < NEVER else key.held
            for name, key in keys.items()
            for when in [key.added_for() if key.running else min(key.added_for(), key.retry)]
            if key.held > self.model.now or (key.due_since == NEVER and when < NEVER)
        }
        assert self.queue.statistics.adds == self.model.adds
        assert self.queue.statistics.retries == self.model.retries

    def teardown(self) -> None:
        for getter in self.getters:
            getter.cancel()
        if self.getters:
            self.run(asyncio.wait(self.getters))
        if hasattr(self, "model"):
            self.run_down()
        self.loop.close()

    def run_down(self) -> None:
        """When everything is finished and forgotten, nothing is left in memory."""

        async def act() -> None:
            for key in NAMES:
                self.queue.forget(key)
            for key in self.queue.running():
                self.queue.done(key)
            while self.queue.delayed() or len(self.queue):
                if not len(self.queue):
                    await asyncio.sleep(10)
                    continue
                self.queue.done((await self.queue.get()).key)

        self.run(act())
        inside = vars(self.queue)
        assert (inside["_items"], inside["_heap"], inside["_timer"]) == ({}, [], None)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(
    max_examples=50, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
