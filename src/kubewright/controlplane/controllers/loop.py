"""What every controller here runs on: a live local copy of some kinds, and a queue of keys to look at.

    pods = Mirror(client, Pod, changed=lambda old, new: queue.add((new or old).key))
    queue = Queue[ObjectKey](clock)
    await run(pods, queue=queue, reconcile=self.reconcile)

`reconcile` is level-triggered: it is told which key, never what happened, and compares what is wanted with what is.
Nothing here knows of a particular kind, and nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resource import Object, resource_info
from kubewright.client import Client, WatchEvent
from kubewright.client.errors import BadRequest, Expired, Invalid
from kubewright.client.selectors import Fields, Labels
from kubewright.controlplane.controllers.clock import Clock, Timer

T = TypeVar("T", bound=Object)
Key = TypeVar("Key", bound=Hashable)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_FIRST_RETRY, _LONGEST_RETRY = 0.005, 30.0

_log = logging.getLogger(__name__)


class Controller(Protocol):
    """A loop that keeps something true. `run` ends only by being cancelled, and leaves nothing behind."""

    name: str

    async def run(self) -> None:
        """Watch and act until cancelled."""


class Mirror(Generic[T]):
    """A live local copy of the objects of one kind, kept by list and watch through every disturbance.

    What it hands out is shared: copy an object before changing it. `changed(old, new)` is called after each change,
    with None for an object that was not there before or is not there any more.
    """

    def __init__(
        self,
        client: Client,
        kind: type[T],
        *,
        changed: Callable[[T | None, T | None], None] | None = None,
        index: Callable[[T], Iterable[Hashable]] | None = None,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
    ) -> None:
        self._client = client
        self._kind = kind
        self._changed = changed
        self._index = index
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._objects: dict[ObjectKey, T] = {}
        self._indexed: dict[Hashable, dict[ObjectKey, T]] = {}
        self._revision = ""
        self._streams_lists = True
        self._pause = _FIRST_PAUSE
        self._synced = asyncio.Event()

    @property
    def synced(self) -> asyncio.Event:
        """Set once the first list is complete, and from then on."""
        return self._synced

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: ObjectKey) -> T | None:
        """The object of that key, as it was seen last."""
        return self._objects.get(key)

    def indexed(self, value: Hashable) -> list[T]:
        """The objects for which `index` gave that value."""
        return list(self._indexed.get(value, {}).values())

    def record(self, obj: T) -> T:
        """Take in the answer to a write of our own at once, so that the next look already shows it.

        An answer that the watch has overtaken, be it by a newer version or by the deletion, is left alone.
        """
        if _revision(obj) > int(self._revision or 0):
            self._store(obj)
        return obj

    async def run(self) -> None:
        """Follow the server until cancelled. No error ends it; after each it pauses, longer every time in a row."""
        while True:
            try:
                await self._follow()
            except Expired:
                self._revision = ""
            except KubernetesError as error:
                _log.debug("watching %s: %s", resource_info(self._kind).plural, error)
            await asyncio.sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311  # not a secret
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    async def _follow(self) -> None:
        streams = self._streams_lists and not self._revision
        if not streams and not self._revision:
            await self._list()
        watch = self._client.watch(
            self._kind,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=self._revision or None,
            initial_events=streams,
        )
        try:
            async with watch as events:
                await self._take(aiter(events), streams)
        except (BadRequest, Invalid):
            # A server that cannot stream its initial list refuses the option. Anything else comes again.
            self._streams_lists = False
            self._revision = ""

    async def _take(self, events: AsyncIterator[WatchEvent[T]], initial: bool) -> None:
        listed: dict[ObjectKey, T] = {}
        async for event in events:
            self._pause = _FIRST_PAUSE
            if not initial:
                self._apply(event)
            elif event.ends_initial_list:
                initial = False
                self._replace(listed, event.header.resource_version)
            elif event.type != "BOOKMARK" and (obj := _decoded(event)) is not None:
                listed[obj.key] = obj

    async def _list(self) -> None:
        listed: dict[ObjectKey, T] = {}
        listing = self._client.list(self._kind, namespace=self._namespace, labels=self._labels, fields=self._fields)
        revision = ""
        async with aclosing(listing.pages()) as pages:
            async for page in pages:
                listed.update((obj.key, obj) for obj in page.items)
                revision = page.metadata.resource_version
        self._replace(listed, revision)

    def _replace(self, listed: dict[ObjectKey, T], revision: str) -> None:
        before = self._objects
        self._revision = revision
        # What was recorded after the list was made is newer than the list.
        kept = {key: obj for key, obj in before.items() if _revision(obj) > int(revision)}
        self._objects, self._indexed = {}, {}
        for obj in {**listed, **kept}.values():
            self._store(obj)
        self._synced.set()
        for key in {**before, **listed}:
            old, new = before.get(key), self._objects.get(key)
            if old is None or new is None or old.metadata.resource_version != new.metadata.resource_version:
                self._tell(old, new)

    def _apply(self, event: WatchEvent[T]) -> None:
        self._revision = event.header.resource_version
        if event.type == "BOOKMARK":
            return
        old = self._objects.get(event.header.key)
        if old is not None and _revision(old) > int(event.header.resource_version):
            return
        if event.type == "DELETED":
            if old is not None:
                self._remove(old)
                self._tell(old, None)
        elif (new := _decoded(event)) is not None:
            self._store(new)
            self._tell(old, new)

    def _tell(self, old: T | None, new: T | None) -> None:
        if self._changed is not None:
            self._changed(old, new)

    def _store(self, obj: T) -> None:
        if (old := self._objects.get(obj.key)) is not None:
            self._remove(old)
        self._objects[obj.key] = obj
        for value in self._index(obj) if self._index else ():
            self._indexed.setdefault(value, {})[obj.key] = obj

    def _remove(self, obj: T) -> None:
        del self._objects[obj.key]
        for value in self._index(obj) if self._index else ():
            of_value = self._indexed[value]
            del of_value[obj.key]
            if not of_value:
                del self._indexed[value]


class Queue(Generic[Key]):
    """Keys to look at: each is in it once, and none is handed to two workers at a time.

    A key whose reconcile fails comes again after 5 ms, 10 ms … 30 s, by the event loop's time: a clock that stands
    still must not hold up a retry.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[Key, None] = {}
        self._running: set[Key] = set()
        self._again: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, tuple[float, Timer]] = {}
        self._retries: dict[Key, Timer] = {}
        self._filled = asyncio.Event()

    def add(self, key: Key) -> None:
        """Look at `key` as soon as a worker is free; once more afterwards when one is looking right now."""
        if key in self._running:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._filled.set()

    def add_after(self, key: Key, seconds: float) -> None:
        """Look at `key` when that time has passed. Of several times the earliest counts."""
        due = self._clock.now().timestamp() + seconds
        if key in self._timers:
            earlier, timer = self._timers[key]
            if earlier <= due:
                return
            timer.cancel()
        self._timers[key] = due, self._clock.call_later(seconds, lambda: self._ring(key))

    async def run(self, reconcile: Callable[[Key], Awaitable[None]], workers: int) -> None:
        """Hand the keys to `reconcile`, as many at a time as there are workers, until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(workers):
                    tasks.create_task(self._work(reconcile))
        finally:
            for _, timer in self._timers.values():
                timer.cancel()
            for timer in self._retries.values():
                timer.cancel()
            self._timers.clear()
            self._retries.clear()

    async def _work(self, reconcile: Callable[[Key], Awaitable[None]]) -> None:
        while True:
            while not self._waiting:
                self._filled.clear()
                await self._filled.wait()
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._running.add(key)
            try:
                await reconcile(key)
            except KubernetesError as error:
                _log.debug("%s: %s", key, error)
                self._retry(key)
            except Exception:
                # One object that cannot be dealt with must not keep all others waiting.
                _log.exception("%s", key)
                self._retry(key)
            else:
                self._failures.pop(key, None)
            finally:
                self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _ring(self, key: Key) -> None:
        del self._timers[key]
        self.add(key)

    def _retry(self, key: Key) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        pause = min(_FIRST_RETRY * 2 ** min(failures, 20), _LONGEST_RETRY)
        if (pending := self._retries.get(key)) is not None:
            pending.cancel()
        self._retries[key] = asyncio.get_running_loop().call_later(pause, self._add_retried, key)

    def _add_retried(self, key: Key) -> None:
        del self._retries[key]
        self.add(key)


class Source(Protocol):
    """Something that is followed, and that is complete from some moment on. Mirrors are."""

    @property
    def synced(self) -> asyncio.Event:
        """Set once everything that was there at the start has been seen."""

    async def run(self) -> None:
        """Follow until cancelled."""


async def run(
    *sources: Source, queue: Queue[Key], reconcile: Callable[[Key], Awaitable[None]], workers: int = 4
) -> None:
    """Follow the sources and, once all of them are complete, reconcile the keys that come. Ends when cancelled."""
    async with asyncio.TaskGroup() as tasks:
        for source in sources:
            tasks.create_task(source.run())
        for source in sources:
            await source.synced.wait()
        await queue.run(reconcile, workers)


def _decoded(event: WatchEvent[T]) -> T | None:
    try:
        return event.object
    except DecodeError as error:
        _log.warning("left out: %s", error)
        return None


def _revision(obj: Object) -> int:
    return int(obj.metadata.resource_version or 0)
