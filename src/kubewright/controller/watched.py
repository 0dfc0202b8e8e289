"""`Watched`: a source that follows the objects of a kind by the cache's watch.

Events go through its predicate and its handler to the queue. Errors there are logged, and the next event
is handled as usual.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar, cast

from kubewright.api.codec import decode
from kubewright.api.dynamic import metadata_only
from kubewright.api.errors import DecodeError, explain_misuse
from kubewright.api.header import OwnerHeader
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels
from kubewright.cache import Cache, CacheEntry, WatchHandle, WriteOrigin
from kubewright.cache.informer import Transform
from kubewright.cache.reflector_state import Blocked
from kubewright.client.arguments import check_kind
from kubewright.controller.arguments import check_number
from kubewright.controller.cancelled import outcome
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, Keys, LaterKeys, OwnerHandler, WrongKeys, for_object
from kubewright.controller.predicates import Predicate, checked_predicate
from kubewright.controller.queue import Queue, Reason
from kubewright.controller.source import INITIAL_PRIORITY

Key = TypeVar("Key", bound=Hashable)

FAILURE_LOG_INTERVAL = 60.0
"""Seconds between two errors in the log about the same predicate or handler: it may fail for every object."""

MAX_UNMAPPED = 10_000
"""Events that wait for an async map function; with more, everything is reconciled instead."""

BROKEN_WATCH = 60.0
"""Seconds after which a watch that cannot be resumed makes its controller unready: what it knows is out of date."""

_log = logging.getLogger(__name__)


def _lasts(blocked: Blocked) -> bool:
    return asyncio.get_running_loop().time() - blocked.since > BROKEN_WATCH


class Watched(Generic[Key]):
    """The objects of a kind, as the cache watches them."""

    def __init__(
        self,
        cache: Cache,
        kind: type[Object],
        handler: Handler[Key],
        *,
        where: Predicate | None = None,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        transform: Transform | None = None,
        optional: bool = False,
        resync: float | None = None,
    ) -> None:
        """With `optional` a kind that does not exist (yet) counts as one without objects. When it gets installed, all
        objects of the controller's own kind are reconciled: some may have waited for it.

        With `resync` all watched objects are reconciled again about every so many seconds, whatever `where` says: in
        case a change was overlooked.
        """
        check_kind(kind, "watches(kind, handler)")
        resource_info(kind)
        if not isinstance(handler, Handler):
            raise TypeError(
                f"{handler!r} is not a handler of {kind.__name__}: mark a function of the object with @mapped, or one "
                "of the event with @Handler, or give one such as for_object"
            )
        if resync is not None:
            check_number(resync, f"{kind.__name__}: resync")
            if not resync > 0:
                raise ValueError(f"{kind.__name__}: resync={resync:g}, expected seconds above 0, or None for never")
        self._cache = cache
        self._kind = kind
        self._handler = handler
        self._where = checked_predicate(where)
        self._namespace = namespace
        self._watch: Callable[[], WatchHandle[Object]] = lambda: cache.watch(
            kind, namespace=namespace, labels=labels, fields=fields, transform=transform
        )
        self._handled_by: Callable[[Handler[Key]], Watched[Key]] = lambda handler: Watched(
            cache,
            kind,
            handler,
            namespace=namespace,
            labels=labels,
            fields=fields,
            transform=transform,
            optional=optional,
        )
        self._optional = optional
        self._resync = resync
        self._handle: WatchHandle[Object] | None = None
        self._watching = asyncio.Event()
        self._started = asyncio.Event()
        self._unmapped: asyncio.Queue[Event[Object]] = asyncio.Queue()  # for async handlers
        self._undecodable: set[ObjectKey] = set()
        name = kind.__name__
        filter_ = "" if self._where is None else self._where.description.replace("%", "%%")
        self._handler_failures = _FailureLog(f"the handler of {name} failed for %s%s, so that nothing was enqueued: %s")
        self._predicate_failures = _FailureLog(f"the predicate {filter_} failed for {name} %s%s; reconciling it: %s")
        self._begin: asyncio.Event | None = None
        self._enqueue_own: Callable[[Reason], bool] = lambda reason: False

    @property
    def kind(self) -> type[Object]:
        """The watched kind."""
        return self._kind

    @property
    def cache(self) -> Cache:
        """The cache that watches it."""
        return self._cache

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that are watched; empty for all."""
        if resource_info(self._kind).namespaced is False:
            return ()
        return (self._namespace,) if self._namespace else self._cache.namespaces

    @property
    def is_own(self) -> bool:
        """Whether the objects of this kind are themselves reconciled."""
        return cast(object, self._handler) is for_object

    @property
    def owner(self) -> type[Object] | None:
        """The kind that owns these objects, where events of them enqueue their owners."""
        return self._handler.owner if isinstance(self._handler, OwnerHandler) else None

    def handled_by(self, handler: Handler[Key]) -> Watched[Key]:
        """A source of all events of the same objects, by the same watch, which `handler` maps to keys."""
        return self._handled_by(handler)

    def attach(self, begin: asyncio.Event, enqueue_own: Callable[[Reason], bool]) -> None:
        """For a controller: feed its queue not before `begin`; `enqueue_own` enqueues all objects of its own kind, and
        returns False when it watches none.
        """
        self._begin = begin
        self._enqueue_own = enqueue_own

    async def run(self, queue: Queue[Key]) -> None:
        """See `Source`."""
        with self._watch() as handle:
            self._handle = handle
            self._watching.set()
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._follow_installation(handle))
                    if self._begin is not None:
                        await self._begin.wait()
                    if (later_keys := self._handler.later_keys) is not None:
                        self._unmapped = asyncio.Queue()
                        group.create_task(self._map_later(queue, later_keys))
                        self._subscribe(handle, self._leave_unmapped)
                        await self._replay(handle, self._leave_unmapped)
                    elif (keys := self._handler.keys) is not None:
                        self._subscribe(handle, lambda event: self._add_mapped(queue, event, keys))
                        await self._replay(handle, lambda event: self._add_mapped(queue, event, keys))
            finally:
                self._handle = None
                self._watching.clear()
                self._started.clear()

    async def synced(self) -> None:
        """See `Source`. As long as it must not feed the queue, it is enough that everything is in the cache."""
        await self._watching.wait()
        if self._handle is not None:
            await (self._handle.settled() if self._optional else self._handle.synced())
        if self._begin is None or self._begin.is_set():
            await self._started.wait()
            await self._unmapped.join()

    async def caught_up(self, revision: int) -> None:
        """Wait until the cache shows all that had been written to the objects when this was called."""
        if self._handle is not None:
            await self._handle.caught_up(revision)

    def enqueue_all(self, queue: Queue[Key], reason: Reason) -> None:
        """Enqueue the keys of all objects, for that reason, with lower priority than changes."""
        if self._handle is None or self._handler.keys is None:
            return
        for informer in self._handle.informers:
            for entry in list(informer.select()):
                for key in self._handler.keys(Event(self._kind, entry, entry, False, None)):
                    queue.add(key, priority=INITIAL_PRIORITY, reason=reason)

    def namespace_elsewhere(self, owner: OwnerHeader, namespace: str) -> str | None:
        """The namespace of an owner that is in another one than `namespace`; None when it is not."""
        informers = self._handle.informers if self._handle is not None else ()
        if any(informer.find(ObjectKey(namespace, owner.name)) is not None for informer in informers):
            return None
        named = (entry for informer in informers for entry in informer.select() if entry.name == owner.name)
        return next((entry.namespace for entry in named if entry.header.uid == owner.uid), None)

    def undecodable(self, key: Key, error: DecodeError) -> Object | None:
        """The object of that key, with no more than its identity, when `error` says that it does not fit its type.

        Its next event is enqueued, whatever `where` says.
        """
        for informer in self._handle.informers if self._handle is not None else ():
            entry = informer.find(key) if isinstance(key, ObjectKey) else None
            if entry is None:
                continue
            try:
                decode(self._kind, entry.body)
            except DecodeError as own:
                if str(own) == str(error):
                    self._undecodable.add(entry.key)
                    # Not decoded: it may be nested so deeply that nothing of it can be.
                    names = ObjectMeta(namespace=entry.namespace, name=entry.name, uid=entry.header.uid)
                    return metadata_only(self._kind)(metadata=names)
        return None

    @property
    def not_ready_reason(self) -> str | None:
        """See `Source`."""
        if self._handle is None:
            return f"{self._kind.__name__} is not watched yet"
        for informer in self._handle.informers:
            blocked = informer.blocked
            if blocked is not None and blocked.reason == "absent":
                if not self._optional:
                    return f"{informer.kind_name} is not installed: the server knows no such kind (yet)"
            elif blocked is not None and (
                blocked.reason == "forbidden" or not informer.synced.is_set() or _lasts(blocked)
            ):
                # A server that is away for a moment is no reason to be unready: its objects are still cached.
                return str(blocked)
            if not informer.synced.is_set() and blocked is None:
                return f"the objects of {informer.kind_name} are being listed"
        return None

    def _subscribe(self, handle: WatchHandle[Object], take: Callable[[Event[Object]], None]) -> None:
        kind, where = self._kind, self._where

        def changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            event = Event(kind, old, new, initial, own)
            is_awaited = self._undecodable and self._was_undecodable(event)
            if is_awaited or where is None or self._matches(event, where):
                take(event)

        handle.subscribe(changed)
        self._started.set()

    def _was_undecodable(self, event: Event[Object]) -> bool:
        """Whether the object was undecodable before this event, so that its reconcile was waiting for it."""
        if event.key not in self._undecodable:
            return False
        self._undecodable.discard(event.key)
        return True

    def _matches(self, event: Event[Object], where: Predicate) -> bool:
        try:
            return where(event)
        except Exception as error:
            # A reconcile too many does no harm; a change that is never reconciled may.
            self._predicate_failures.log(event.key, error)
            return True

    def _add(self, queue: Queue[Key], event: Event[Object], keys: Iterable[Key]) -> None:
        is_resync = event.old is event.new
        # The echo of a write keeps the priority of the reconcile that made it. After a start that is after all initial
        # reconciles, so that one more is enough for everything that a reconcile has written.
        origin = event.write_origin
        what = "resync" if is_resync else event.verb if origin is None else "own write"
        reason = Reason(self._kind.__name__, what, event.key)
        priority = INITIAL_PRIORITY if event.initial or is_resync else origin.priority if origin is not None else 0
        for key in keys:
            queue.add(key, priority=priority, reason=reason)

    def _add_mapped(self, queue: Queue[Key], event: Event[Object], keys: Keys[Key]) -> None:
        try:
            self._add(queue, event, keys(event))
        except Exception as error:
            self._handler_failures.log(event.key, error)

    async def _replay(self, handle: WatchHandle[Object], take: Callable[[Event[Object]], None]) -> None:
        """Handle every object periodically, as if it had been updated."""
        if self._resync is None:
            await asyncio.Event().wait()
            return
        while True:
            await asyncio.sleep(self._resync * random.uniform(0.9, 1.1))  # noqa: S311  # not a secret
            for informer in handle.informers:
                for entry in list(informer.select()):
                    take(Event(self._kind, entry, entry, False, None))

    async def _follow_installation(self, handle: WatchHandle[Object]) -> None:
        """When the kind gets installed, reconcile the objects that may have waited for it."""
        name = self._kind.__name__
        while True:
            await handle.absent()
            if not self._optional:
                _log.warning("%s is not installed: the server knows no such kind (yet); waiting for it", name)
            await handle.synced()
            # Before it begins, no reconcile can have waited for it.
            if self._optional and (self._begin is None or self._begin.is_set()):
                self._enqueue_own(Reason(name, "installed", None))

    def _leave_unmapped(self, event: Event[Object]) -> None:
        """Leave an event to the async map function.

        When too many wait, all objects of the controller's own kind are enqueued instead: the keys that the events map
        to are among these. A controller that watches no kind of its own has nothing to fall back on.
        """
        unmapped = self._unmapped
        name = self._kind.__name__
        if unmapped.qsize() >= MAX_UNMAPPED and self._enqueue_own(Reason(name, "too many to map", None)):
            _log.warning("the map function of %s does not keep up: everything is reconciled instead", name)
            while not unmapped.empty():
                unmapped.get_nowait()
                unmapped.task_done()
        else:
            unmapped.put_nowait(event)

    async def _map_later(self, queue: Queue[Key], later_keys: LaterKeys[Key]) -> None:
        """Map events one after the other, in their order, without blocking the watch."""
        while True:
            event = await self._unmapped.get()
            try:
                self._add(queue, event, await outcome(later_keys(event)))
            except Exception as error:
                self._handler_failures.log(event.key, error)
            self._unmapped.task_done()

    def __repr__(self) -> str:
        return f"Watched({self._kind.__name__})"


class _FailureLog:
    """Logs for which objects a function of the user's failed: one an interval as an error, the others at DEBUG."""

    def __init__(self, message: str) -> None:
        self._message = message  # with the object, how many others there were, and the error
        self._next = float("-inf")
        self._others = 0

    def log(self, key: ObjectKey, error: Exception) -> None:
        explain_misuse(error)
        now = asyncio.get_running_loop().time()
        level, others = logging.DEBUG, ""
        if now < self._next:
            self._others += 1
        else:
            level = logging.ERROR
            if self._others:
                others = f" (and {self._others} times since the last such line)"
            self._next, self._others = now + FAILURE_LOG_INTERVAL, 0
        is_explained = isinstance(error, WrongKeys)
        text = str(error) if is_explained else f"{type(error).__name__}: {error}"
        _log.log(level, self._message, key, others, text, exc_info=None if is_explained else error)
