"""Publishes each committed change to the watchers of its key, without a task, a lock or a copy for any of them.

Publishing never waits: it appends to the watcher's buffer and wakes its reader, at most once per turn of the event
loop. A reader that lets its buffer overflow, by number or by bytes, is closed, so it can neither hold others up nor
memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from kubewright.controlplane.embedded.storage.stored_object import StoreChange


class Subscription:
    """The changes below a prefix, each exactly once and in the order of their revisions. It has one reader.

    The reader waits in `changes` without a timer of its own: `interrupt` is for the one that has it.

    It ends when it is closed; `lagged` is set when it was closed for falling behind. Undelivered changes are dropped:
    its reader continues from the last revision it has seen.
    """

    __slots__ = (
        "_interrupted",
        "_leave",
        "_limits",
        "_pending",
        "_room",
        "_space",
        "_waiter",
        "closed",
        "lagged",
        "prefix",
    )

    def __init__(
        self,
        prefix: str,
        replayed: Sequence[StoreChange],
        limits: tuple[int, int],
        leave: Callable[[Subscription], None],
    ) -> None:
        self.prefix = prefix
        self.closed = False
        self.lagged = False
        self._pending = list(replayed)
        self._limits = limits
        # History that was replayed is no sign of a slow reader.
        self._room, self._space = limits[0] + len(self._pending), limits[1]
        self._waiter: asyncio.Future[None] | None = None
        self._interrupted = False
        self._leave = leave

    async def changes(self) -> list[StoreChange]:
        """All changes since the last call, as soon as there is one; an empty list when it was interrupted or closed.

        A cancelled call loses nothing.
        """
        while not self._pending and not self.closed and not self._interrupted:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if not self._pending:
            self._interrupted = False
        taken, self._pending = self._pending, []
        self._room, self._space = self._limits
        return taken

    async def __aiter__(self) -> AsyncIterator[StoreChange]:
        while changes := await self.changes():
            for change in changes:
                yield change

    def interrupt(self) -> None:
        """Let the reader have an empty list, once it has had all changes that there are."""
        self._interrupted = True
        self._wake()

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

    def offer(self, change: StoreChange, size: int) -> bool:
        """Buffer a change of so many bytes for the reader. False, and nothing is buffered, when there is no room."""
        if len(self._pending) >= self._room or self._space <= 0:
            return False
        self._pending.append(change)
        self._space -= size
        self._wake()
        return True

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watchers:
    """All subscriptions, by prefix."""

    def __init__(self, limit: int, size: int) -> None:
        self._limits = limit, size
        # Dictionaries for their order: of those who watch the same, the first to come is the first to be served.
        self._by_prefix: dict[str, dict[Subscription, None]] = {}

    def add(self, prefix: str, replayed: Sequence[StoreChange]) -> Subscription:
        """Add a subscription that gets `replayed` first, then what is published from now on."""
        subscription = Subscription(prefix, replayed, self._limits, self._remove)
        self._by_prefix.setdefault(prefix, {})[subscription] = None
        return subscription

    def publish(self, change: StoreChange) -> None:
        """Deliver a change to the watchers of its key and of the directories above it."""
        if not self._by_prefix:
            return
        key, size = change.key, len(change.entry.raw)
        lagging: list[Subscription] = []
        cut = 0
        while True:
            for subscription in self._by_prefix.get(key[:cut], ()):
                if not subscription.offer(change, size):
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
