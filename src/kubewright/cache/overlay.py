"""Read your own writes: the responses to them, laid over the store until the watch has caught up.

Revisions are numbers that grow with every write to the cluster, and a watch brings them in order. So once the watch has
reached the revision of a write, the store has that write or something newer, and the overlay of it is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

import msgspec

from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry, parse_entry, parse_header
from kubewright.cache.write_origin import WriteOrigin


class _Pending(msgspec.Struct, gc=False):
    """A write of ours that the watch has not brought yet."""

    entry: CacheEntry | bytes | None  # None: gone from this watch; JSON until it is read
    revision: int  # of the write; of a removed object the last that is known, as the answer names none
    uid: str  # of the removed object; empty: written
    since: float
    origin: WriteOrigin | None
    lists: int = -1  # of a removed object that the store has not had: how many lists had begun by then


class Removal(msgspec.Struct, gc=False, eq=False):
    """A deletion of ours that was sent and is not answered yet."""

    key: ObjectKey
    brought: str
    """The uid of the object that the watch had brought under that key by then; empty for none."""
    ended: set[str]
    """The uids of those whose deletion it has brought since."""

    def is_unseen(self, uid: str) -> bool:
        """Whether the watch had not brought that object when its deletion was sent, nor its deletion since."""
        return uid != self.brought and uid not in self.ended


class Overlay:
    """Own writes that the store does not show yet, by key. Empty most of the time."""

    def __init__(
        self, parse: Callable[[bytes], CacheEntry] = parse_entry, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._parse = parse
        self._now = now
        self._pending: dict[ObjectKey, _Pending] = {}
        self._awaited: list[tuple[int, ObjectKey]] = []  # a heap of the revisions of what was written
        self._lists = 0
        self._removals: dict[ObjectKey, list[Removal]] = {}
        self.lag = 0.0
        """Seconds the watch was behind the newest own write that it has brought."""

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._pending)

    def written(
        self, key: ObjectKey, revision: int, entry: CacheEntry | bytes | None, origin: WriteOrigin | None = None
    ) -> None:
        """A write of ours was answered: the object is now `entry`, or is no longer part of this watch.

        Its JSON is enough: the watch has mostly brought it before it is read. Without an origin the revision
        may be another program's: our write changed nothing.
        """
        before = self._pending.get(key)
        if before is None or before.revision < revision:
            self._pending[key] = _Pending(entry, revision, "", self._now(), origin)
            heappush(self._awaited, (revision, key))

    def removal_begins(self, key: ObjectKey, brought: str) -> Removal:
        """A deletion of ours is about to be sent. `removal_ends` must follow, whatever its outcome."""
        removal = Removal(key, brought, set())
        self._removals.setdefault(key, []).append(removal)
        return removal

    def removal_ends(self, removal: Removal) -> None:
        """The deletion was answered, or never will be."""
        under_way = self._removals[removal.key]
        under_way.remove(removal)
        if not under_way:
            del self._removals[removal.key]

    def removed(self, key: ObjectKey, uid: str, revision: int) -> None:
        """A deletion of ours was answered, and that object is gone; `revision` is the last one known of it."""
        self._pending[key] = _Pending(None, revision, uid, self._now(), None)

    def removed_unseen(self, key: ObjectKey, uid: str) -> None:
        """A deletion of ours was answered before the watch brought the object, which it still will.

        Objects before and after it under the same name are as the store has them: where in between it belongs is not
        known. It is forgotten when the watch brings its deletion, or with the next list. What we wrote under that name
        goes before.
        """
        if key not in self._pending:
            self._pending[key] = _Pending(None, 0, uid, self._now(), None, self._lists)

    def removed_after(self, key: ObjectKey, revision: int) -> None:
        """The object that we removed existed at `revision`, so its place among others of its name is known now."""
        pending = self._pending[key]
        if pending.lists >= 0:
            pending.lists, pending.revision = -1, revision

    def list_begins(self) -> None:
        """A relist begins, which shows the present state or a later one."""
        self._lists += 1

    def is_removed(self, key: ObjectKey, raw: bytes) -> bool:
        """Whether this is a state, in JSON, of an object that we removed."""
        pending = self._pending.get(key)
        return pending is not None and pending.uid != "" and parse_header(raw).uid == pending.uid

    def over(self, key: ObjectKey, stored: CacheEntry | None) -> CacheEntry | None:
        """The entry under a key, given that of the store."""
        pending = self._pending.get(key)
        if pending is None:
            return stored
        if pending.lists >= 0:
            return None if stored is None or stored.header.uid == pending.uid else stored
        if pending.uid:
            # Its predecessors under the same name are gone as well; its successors are not.
            is_newer = stored is not None and stored.revision > pending.revision and stored.header.uid != pending.uid
            return stored if is_newer else None
        if isinstance(pending.entry, bytes):
            pending.entry = self._parse(pending.entry)
        return pending.entry

    def origin(self, key: ObjectKey, revision: int) -> WriteOrigin | None:
        """The write of ours that made that revision of the object; None when it is not known to be ours."""
        pending = self._pending.get(key)
        if pending is None or pending.uid or pending.revision != revision:
            return None
        return pending.origin

    def seen(self, key: ObjectKey, entry: CacheEntry | None, revision: int) -> None:
        """The watch has reached `revision`, with an event of `key`."""
        pending = self._pending.get(key)
        settles = pending is not None and pending.uid != "" and pending.revision <= revision and pending.lists < 0
        if pending is not None and settles and (entry is None or entry.header.uid != pending.uid):
            self._drop(key)
        self.reached(revision)

    def ended(self, last: CacheEntry) -> None:
        """The watch has brought the deletion of an object."""
        if not self._pending and not self._removals:
            return
        key = last.key
        for removal in self._removals.get(key, ()):
            removal.ended.add(last.header.uid)
        pending = self._pending.get(key)
        if pending is not None and pending.lists >= 0 and pending.uid == last.header.uid:
            self._drop(key)

    def reached(self, revision: int) -> None:
        """The watch has brought everything up to `revision`."""
        while self._awaited and self._awaited[0][0] <= revision:
            written, key = heappop(self._awaited)
            pending = self._pending.get(key)
            # Unless the object has been written again since, or removed.
            if pending is not None and not pending.uid and pending.revision == written:
                self._drop(key)

    def replaced(self, revision: int, uids: Callable[[ObjectKey], str]) -> None:
        """A relist at `revision` is complete; `uids` gives the uid of the object under a key."""
        self.reached(revision)
        for key, pending in list(self._pending.items()):
            if pending.lists >= 0:
                settles = pending.lists < self._lists
            else:
                settles = pending.uid != "" and pending.revision <= revision
            if settles and uids(key) != pending.uid:
                self._drop(key)

    def clear(self) -> None:
        """Forget everything: the server's revisions started over, so they cannot be compared."""
        self._pending.clear()
        self._awaited.clear()

    def _drop(self, key: ObjectKey) -> None:
        self.lag = self._now() - self._pending.pop(key).since
