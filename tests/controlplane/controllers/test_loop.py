from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Protocol, Self, cast

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ListMeta, ObjectMeta
from kubewright.client import Client, WatchEvent
from kubewright.client.errors import Expired, Invalid, ServerTimeout, Status
from kubewright.client.listing import Page
from kubewright.client.watch import parse_event
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue, run


class AdvancingClock(Clock, Protocol):
    def advance(self, seconds: float) -> None: ...


def line(type_: str, name: str, revision: int, value: str = "") -> str:
    return (
        f'{{"type":"{type_}","object":{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}",'
        f'"namespace":"a","resourceVersion":"{revision}"}},"data":{{"value":"{value}"}}}}}}'
    )


def end_of_list(revision: int) -> str:
    return (
        '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"'
        f'{revision}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}'
    )


class Script:
    """A server that answers each watch with the next part of a script, then falls silent."""

    def __init__(self, *watches: Sequence[str | Exception], listed: Sequence[str] = (), at: int = 0) -> None:
        self.watches = list(watches)
        self.listed = listed
        self.at = at
        self.asked: list[tuple[str | None, bool]] = []
        self.read_to_its_end = asyncio.Event()

    def watch(self, kind: type[ConfigMap], *, resource_version: str | None, initial_events: bool, **_: object) -> Watch:
        self.asked.append((resource_version, initial_events))
        if not self.watches:
            self.read_to_its_end.set()
        return Watch(self.watches.pop(0) if self.watches else None)

    def list(self, kind: type[ConfigMap], **_: object) -> Script:
        return self

    async def pages(self) -> AsyncIterator[Page[ConfigMap]]:
        items = [parse_event(ConfigMap, text.encode()).object for text in self.listed]
        yield Page(ListMeta(resource_version=str(self.at)), items)


class Watch:
    def __init__(self, script: Sequence[str | Exception] | None) -> None:
        self._script = script

    async def __aenter__(self) -> Self:
        if self._script and isinstance(self._script[0], Invalid):
            raise self._script[0]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    async def __aiter__(self) -> AsyncIterator[WatchEvent[ConfigMap]]:
        if self._script is None:
            await asyncio.Event().wait()
        for item in self._script or ():
            if isinstance(item, Exception):
                raise item
            yield parse_event(ConfigMap, item.encode())


class Followed:
    """A mirror of a script that has been read to its end, and what it told on the way."""

    def __init__(self, script: Script) -> None:
        self.told: list[str] = []
        self.mirror = Mirror(cast(Client, script), ConfigMap, changed=self._changed, index=lambda it: it.data.values())
        self._script = script

    def _changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        name = (new or old or ConfigMap()).metadata.name
        self.told.append(f"{'-' if new is None else '+' if old is None else '~'}{name}")

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.mirror.run())
        await asyncio.wait_for(self._script.read_to_its_end.wait(), 5)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def content(self) -> dict[str, str]:
        return {it.metadata.name: it.data["value"] for it in self.mirror}


async def test_a_mirror_holds_what_the_initial_list_and_the_changes_after_it_say() -> None:
    script = Script(
        [line("ADDED", "a", 1, "x"), line("ADDED", "b", 2), end_of_list(3), line("MODIFIED", "a", 4, "y")],
        [line("DELETED", "b", 6), line("ADDED", "c", 7)],
    )

    async with Followed(script) as followed:
        assert followed.content == {"a": "y", "c": ""}
        assert followed.told == ["+a", "+b", "~a", "-b", "+c"]
        assert followed.mirror.synced.is_set()
        assert [it.metadata.name for it in followed.mirror.indexed("y")] == ["a"]
        assert followed.mirror.indexed("x") == []
    assert script.asked[:2] == [(None, True), ("4", False)]


async def test_what_was_deleted_while_the_watch_had_expired_is_told_after_the_new_list() -> None:
    script = Script(
        [line("ADDED", "a", 1), line("ADDED", "b", 2, "old"), line("ADDED", "c", 3), end_of_list(3)],
        [Expired(Status(code=410))],
        [line("ADDED", "b", 9, "new"), line("ADDED", "c", 3), end_of_list(9)],
    )

    async with Followed(script) as followed:
        assert followed.content == {"b": "new", "c": ""}
        assert followed.told[3:] == ["-a", "~b"]
    assert script.asked[2] == (None, True)


async def test_a_server_that_cannot_stream_its_list_is_listed() -> None:
    script = Script(
        [Invalid(Status(code=422))],
        [line("MODIFIED", "a", 8, "y")],
        listed=[line("ADDED", "a", 5, "x"), line("ADDED", "b", 6)],
        at=7,
    )

    async with Followed(script) as followed:
        assert followed.content == {"a": "y", "b": ""}
    assert script.asked[1] == ("7", False)


async def test_an_error_and_an_object_that_cannot_be_read_stop_nothing(caplog: pytest.LogCaptureFixture) -> None:
    broken = line("ADDED", "b", 2).replace('{"value":""}', "[1]")
    script = Script(
        [line("ADDED", "a", 1), broken, end_of_list(3), ServerTimeout(Status(code=504))], [line("ADDED", "c", 4)]
    )

    async with Followed(script) as followed:
        assert set(followed.content) == {"a", "c"}
    assert 'ConfigMap "a/b"' in caplog.text


async def test_an_own_write_is_seen_at_once_and_an_older_event_does_not_undo_it() -> None:
    script = Script([line("ADDED", "a", 1, "x"), end_of_list(1)], [line("MODIFIED", "a", 2, "late")])
    own = ConfigMap(metadata=ObjectMeta(name="a", namespace="a", resource_version="3"), data={"value": "own"})
    mirror = Mirror(cast(Client, script), ConfigMap)

    mirror.record(own)
    task = asyncio.create_task(mirror.run())
    await asyncio.wait_for(script.read_to_its_end.wait(), 5)

    found = mirror.get(ObjectKey("a", "a"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert found is own


async def test_an_own_write_that_was_overtaken_by_the_deletion_does_not_come_back() -> None:
    script = Script([end_of_list(1), line("ADDED", "a", 2), line("DELETED", "a", 3)])
    async with Followed(script) as followed:
        followed.mirror.record(ConfigMap(metadata=ObjectMeta(name="a", namespace="a", resource_version="2")))

        assert followed.content == {}


async def run_queue(queue: Queue[str], reconcile: Callable[[str], object], until: Callable[[], bool]) -> None:
    async def call(key: str) -> None:
        result = reconcile(key)
        if asyncio.iscoroutine(result):
            await result

    task = asyncio.create_task(queue.run(call, workers=4))
    async with asyncio.timeout(5):
        while not until():
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_key_added_twice_is_handled_once() -> None:
    queue, handled = Queue[str](SystemClock()), list[str]()
    for key in ("a", "b", "a"):
        queue.add(key)

    await run_queue(queue, handled.append, lambda: len(handled) >= 2)

    assert handled == ["a", "b"]


async def test_a_key_never_runs_twice_at_a_time_but_once_more_when_added_meanwhile() -> None:
    queue, events = Queue[str](SystemClock()), list[str]()

    async def reconcile(key: str) -> None:
        events.append("begin")
        if len(events) == 1:
            queue.add(key)
            queue.add(key)
            await asyncio.sleep(0)
        events.append("end")

    queue.add("a")
    await run_queue(queue, reconcile, lambda: len(events) >= 4)

    assert events == ["begin", "end", "begin", "end"]


async def test_what_fails_comes_again_even_when_the_clock_stands_still(
    clock: AdvancingClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue, attempts = Queue[str](clock), list[str]()

    def reconcile(key: str) -> None:
        attempts.append(key)
        if len(attempts) < 3:
            raise RuntimeError("not yet")

    queue.add("a")
    await run_queue(queue, reconcile, lambda: len(attempts) >= 3)

    assert "not yet" in caplog.text


async def test_of_several_delays_the_earliest_counts(clock: AdvancingClock) -> None:
    queue, handled = Queue[str](clock), list[str]()
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 7)

    clock.advance(4.9)
    queue.add("b")
    await run_queue(queue, handled.append, lambda: bool(handled))
    assert handled == ["b"]

    queue.add_after("a", 5)
    clock.advance(5)
    await run_queue(queue, handled.append, lambda: len(handled) >= 2)
    assert handled == ["b", "a"]


async def test_nothing_is_reconciled_before_all_sources_are_complete(clock: AdvancingClock) -> None:
    slow = Mirror(cast(Client, Script()), ConfigMap)
    queue, handled = Queue[str](clock), asyncio.Event()
    queue.add("a")

    async def reconcile(key: str) -> None:
        handled.set()

    task = asyncio.create_task(run(slow, queue=queue, reconcile=reconcile))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not handled.is_set()
    slow.synced.set()
    await asyncio.wait_for(handled.wait(), 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
