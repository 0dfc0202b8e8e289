"""The objects of one kind in key order, now and at every retained revision.

The present is a dictionary and a sorted list of its keys. The past is the log of changes: what a key held at a revision
is what its first later change found there, so that history costs nothing but the log which watches need anyway.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from operator import attrgetter

from kubewright.controlplane.embedded.storage.stored_object import StoreChange, StoredObject

_revision = attrgetter("revision")


class Collection:
    """The keys that share a directory such as `/apps/deployments/`."""

    __slots__ = ("_keys", "_log", "entries", "form")

    def __init__(self) -> None:
        self.entries: dict[str, StoredObject] = {}
        self.form = ""
        """See `StoredObject`: that of what is written from now on."""
        self._keys: list[str] = []
        self._log: list[StoreChange] = []

    def apply(self, change: StoreChange) -> None:
        """Make a change that has just been committed."""
        key = change.key
        if change.kind == "delete":
            del self.entries[key]
            del self._keys[bisect_left(self._keys, key)]
        else:
            if change.previous is None:
                insort(self._keys, key)
            self.entries[key] = change.entry
        self._log.append(change)

    def take_over(self, entry: StoredObject) -> None:
        """Begin with an object, without a change that made it."""
        insort(self._keys, entry.key)
        self.entries[entry.key] = entry

    def at(self, key: str, revision: int) -> StoredObject | None:
        """What a key held at a retained revision."""
        for change in self.after(revision):
            if change.key == key:
                return change.previous
        return self.entries.get(key)

    def after(self, revision: int) -> list[StoreChange]:
        """The changes since a retained revision, oldest first."""
        if not self._log or self._log[-1].revision <= revision:
            return []
        return self._log[bisect_right(self._log, revision, key=_revision) :]

    def select(self, prefix: str, start: str, limit: int | None, revision: int) -> tuple[list[StoredObject], int]:
        """The first `limit` entries (None: all) below `prefix` whose keys are not before `start`; how many there are.

        In the order of the keys, as of a retained revision.
        """
        first, end = max(prefix, start), _end(prefix)
        low = bisect_left(self._keys, first)
        high = max(low, bisect_left(self._keys, end))
        past: dict[str, StoredObject | None] = {}
        for change in self.after(revision):
            if first <= change.key < end:
                past.setdefault(change.key, change.previous)
        if not past:
            keys = self._keys[low : high if limit is None else min(low + limit, high)]
            return [self.entries[key] for key in keys], high - low
        gone = sorted(key for key in past if key not in self.entries)
        # Two sorted runs: sorting only merges them.
        keys = sorted(self._keys[low:high] + gone)
        found = [entry for key in keys if (entry := past[key] if key in past else self.entries[key]) is not None]
        return found[:limit], len(found)

    def forget(self, revision: int) -> None:
        """Drop the changes up to a revision; earlier ones can no longer be read."""
        del self._log[: bisect_right(self._log, revision, key=_revision)]


def _end(prefix: str) -> str:
    """The first string after all that start with `prefix`, which ends in a slash or is empty."""
    return prefix[:-1] + "0" if prefix else "\U0010ffff"
