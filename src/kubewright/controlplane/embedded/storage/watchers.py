"""Publishes each committed change to the watchers of its key, without a task, a lock or a copy for any of them.

Publishing never waits: it appends to the watcher's buffer and wakes its reader, at most once per turn of the event
loop. A reader that lets its buffer overflow is closed, so it can neither hold others up nor memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from kubewright.controlplane.embedded.storage.stored_object import StoreChange


class Subscription:
    """The changes below a prefix, each exactly once and in the order of their revisions. It has one reader.

    It ends when it is closed; `lagged` is set when it was closed for falling behind. Undelivered changes are dropped:
    its reader continues from the last revision it has seen.
    """

    __slots__ = ("_leave", "_limit", "_pending", "_room", "_waiter", "closed", "lagged", "prefix")

    def __init__(
        self, prefix: str, replayed: Sequence[StoreChange], limit: int, leave: Callable[[Subscription], None]
    ) -> None:
        self.prefix = prefix
        self.closed = False
        self.lagged = False
        self._pending = list(replayed)
        self._limit = limit
        # History that was replayed is no sign of a slow reader.
        self._room = limit + len(self._pending)
        self._waiter: asyncio.Future[None] | None = None
        self._leave = leave

    async def changes(self) -> list[StoreChange]:
        """All changes since the last call, as soon as there is one; an empty list when the subscription is closed.

        A cancelled call loses nothing.
        """
        while not self._pending and not self.closed:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        taken, self._pending = self._pending, []
        self._room = self._limit
        return taken

    async def __aiter__(self) -> AsyncIterator[StoreChange]:
        while changes := await self.changes():
            for change in changes:
                yield change

    def end(self) -> None:
        """End it in order: the reader gets what is buffered, then an empty list."""
        if not self.closed:
            self.closed = True
            self._leave(self)
            self._wake()

    def close(self) -> None:
        """End it: the reader gets an empty list. May be called twice."""
        if not self.closed:
            self.closed = True
            self._pending = []
            self._leave(self)
            self._wake()

    def offer(self, change: StoreChange) -> bool:
        """Buffer a change for the reader. False, and nothing is buffered, when there is no room."""
        if len(self._pending) >= self._room:
            return False
        self._pending.append(change)
        self._wake()
        return True

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watchers:
    """All subscriptions, by prefix."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # Dictionaries for their order: of those who watch the same, the first to come is the first to be served.
        self._by_prefix: dict[str, dict[Subscription, None]] = {}

    def add(self, prefix: str, replayed: Sequence[StoreChange]) -> Subscription:
        """Add a subscription that gets `replayed` first, then what is published from now on."""
        subscription = Subscription(prefix, replayed, self._limit, self._remove)
        self._by_prefix.setdefault(prefix, {})[subscription] = None
        return subscription

    def publish(self, change: StoreChange) -> None:
        """Deliver a change to the watchers of its key and of the directories above it."""
        if not self._by_prefix:
            return
        key = change.key
        lagging: list[Subscription] = []
        cut = 0
        while True:
            for subscription in self._by_prefix.get(key[:cut], ()):
                if not subscription.offer(change):
                    lagging.append(subscription)
            if cut == len(key):
                break
            cut = key.find("/", cut) + 1 or len(key)
        for subscription in lagging:
            subscription.lagged = True
            subscription.close()

    def end(self, directory: str) -> None:
        """End every subscription below a directory."""
        for prefix in [prefix for prefix in self._by_prefix if prefix.startswith(directory)]:
            for subscription in list(self._by_prefix.get(prefix, ())):
                subscription.end()

    def _remove(self, subscription: Subscription) -> None:
        watching = self._by_prefix[subscription.prefix]
        del watching[subscription]
        if not watching:
            del self._by_prefix[subscription.prefix]
