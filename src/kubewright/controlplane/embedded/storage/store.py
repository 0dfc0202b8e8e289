"""The store behind the API server: keys and JSON objects under one revision that grows by one with every write.

It is what etcd is to kube-apiserver: compare-and-swap, reads at any retained revision, watches from any of them. It
lives in memory and belongs to one event loop; no call waits, so a write and all that follows from it is one step.
It knows nothing of kinds: a key is `/group/resource/…`, a value anything that has `metadata`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from heapq import merge
from operator import attrgetter

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import inside, mapping
from kubewright.controlplane.embedded.storage.collection import Collection
from kubewright.controlplane.embedded.storage.lifetime import Lifetime
from kubewright.controlplane.embedded.storage.retention import Retention
from kubewright.controlplane.embedded.storage.stored_object import ChangeKind
from kubewright.controlplane.embedded.storage.stored_object import StoreChange as StoreChange
from kubewright.controlplane.embedded.storage.stored_object import StoredObject as StoredObject
from kubewright.controlplane.embedded.storage.watchers import Subscription as Subscription
from kubewright.controlplane.embedded.storage.watchers import Watchers

MAX_OBJECT_SIZE = 3 << 19
"""Bytes of the JSON of an object whose form is JSON: 1.5 MiB, as in etcd."""
_revision = attrgetter("revision")


class StoreError(Exception):
    """The operation is not possible in the current state of the store."""


class KeyExists(StoreError):
    """A creation found the key taken."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} exists already")
        self.key = key


class RevisionConflict(StoreError):
    """A write did not find the key at the revision it expected; `found` is None when there is no such key."""

    def __init__(self, key: str, expected: int | None, found: int | None) -> None:
        wanted = "there" if expected is None else f"at revision {expected}"
        actual = "absent" if found is None else f"at revision {found}"
        super().__init__(f"{key} was expected {wanted} and is {actual}")
        self.key = key
        self.expected = expected
        self.found = found


class TooLarge(StoreError):
    """A value of `size` bytes, which is more than is stored in one."""

    def __init__(self, key: str, size: int) -> None:
        super().__init__(f"{key} would have {size} bytes (the most are {MAX_OBJECT_SIZE})")
        self.size = size


class Compacted(StoreError):
    """That revision was compacted; `compacted` is the oldest that is left."""

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__(f"revision {requested} is no longer there (the oldest is {compacted})")
        self.requested = requested
        self.compacted = compacted


class FutureRevision(StoreError):
    """There has been no such revision yet; `current` is the newest."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is not there yet (the newest is {current})")
        self.requested = requested
        self.current = current


@dataclass(frozen=True, slots=True)
class Range:
    """Entries in the order of their keys, all as of `revision`."""

    entries: list[StoredObject]
    remaining: int
    """How many more there are after the last of `entries`."""
    revision: int

    @property
    def more(self) -> bool:
        """Whether the limit left any out."""
        return self.remaining > 0


class Snapshot:
    """The content of a store at one moment, for `MemoryStore.restore`. It shares the objects with the store."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[str, StoredObject]) -> None:
        self.entries = entries


class MemoryStore:
    """Everything that the API server stores.

    The last `history` changes can be read and watched (up to a quarter more are kept); none of them longer than twice
    `interval` seconds, and none that is younger than `interval` is dropped before there are that many, or their JSON
    has more than `history_size` bytes. `buffer` is how many changes a watcher may fall behind, and `buffer_size` how
    many bytes of JSON. In the directories that `lifetimes` names, expired objects are deleted: when they are read, or
    at the next `sweep`.
    """

    def __init__(
        self,
        *,
        revision: int = 1,
        history: int = 20_000,
        history_size: int = 64 << 20,
        interval: float = 300.0,
        buffer: int = 10_000,
        buffer_size: int = 32 << 20,
        lifetimes: Mapping[str, Lifetime] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._revision = revision
        self._compacted = revision
        self._history = history
        self._interval = interval
        self._clock = clock
        # As kube-apiserver does: every `interval`, forget what was there an `interval` ago.
        self._mark = revision
        self._due = clock() + interval
        self._collections: dict[str, Collection] = {}
        self._retention = Retention(history_size)
        self._watchers = Watchers(buffer, buffer_size)
        self._lifetimes = dict(lifetimes or {})
        self._observers: list[Callable[[StoreChange], None]] = []

    @property
    def revision(self) -> int:
        """The revision of the last write."""
        return self._revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be read, and after which can be watched."""
        return self._compacted

    # Reading

    def get(self, key: str) -> StoredObject | None:
        """What a key holds now."""
        directory = _directory(key)
        if directory in self._lifetimes:
            self.sweep()
        collection = self._collections.get(directory)
        return None if collection is None else collection.entries.get(key)

    def get_at(self, key: str, revision: int) -> StoredObject | None:
        """What a key held at a revision. Raises Compacted or FutureRevision when that is not known."""
        self._must_retain(revision)
        collection = self._collections.get(_directory(key))
        return None if collection is None else collection.at(key, revision)

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """The entries below a directory (`prefix` ends in a slash) whose keys are not before `start`, at most `limit`.

        As of now or of a `revision`; raises Compacted or FutureRevision when that is not known. A limit of 0 is none.
        """
        if prefix and not prefix.endswith("/"):
            raise ValueError(f"a range is read below a directory, which ends in a slash, not {prefix!r}")
        if _directory(prefix) in self._lifetimes:
            self.sweep()
        if revision is not None:
            self._must_retain(revision)
        at = self._revision if revision is None else revision
        entries: list[StoredObject] = []
        total = 0
        for collection in self._below(prefix):
            room = limit - len(entries) if limit > 0 else None
            found, count = collection.select(prefix, start, room, at)
            entries += found
            total += count
        return Range(entries, total - len(entries), at)

    # Writing

    def prepare(self, value: JSONObject) -> None:
        """Nothing is to be prepared: values are stored as they are."""

    def create(self, key: str, value: JSONObject) -> StoredObject:
        """Store a new key. Raises KeyExists or TooLarge.

        `value` is the store's from now on; it is given its resourceVersion.
        """
        collection = self._collection(key)
        if key in collection.entries:
            raise KeyExists(key)
        return self._commit("put", key, value, collection, None)

    def update(self, key: str, value: JSONObject, *, expected: int) -> StoredObject:
        """Store a new value. Raises RevisionConflict unless the key is at revision `expected`, or TooLarge.

        `value` is the store's from now on; it is given its resourceVersion.
        """
        collection = self._collection(key)
        previous = _expect(collection, key, expected)
        return self._commit("put", key, value, collection, previous)

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> StoredObject:
        """Remove a key, if it is there and at revision `expected`: otherwise raises RevisionConflict.

        Watchers see, and this returns, the last state (or `final` instead) with the deletion's resourceVersion.
        """
        collection = self._collection(key)
        previous = _expect(collection, key, expected)
        return self._commit("delete", key, final or _restamped(previous), collection, previous)

    def store_as(self, directory: str, form: str) -> None:
        """From now on, what is written below a `/group/resource/` is in this form. What is there stays as it is."""
        self._collection(f"{directory}any").form = form

    # Watching

    def watch(self, prefix: str, after: int) -> Subscription:
        """Every change below a directory (`prefix` ends in a slash, or is empty) or of one key, after a revision.

        First those that have happened since, then those to come. Raises Compacted or FutureRevision.
        """
        self._must_retain(after)
        happened = (collection.after(after) for collection in self._below(prefix))
        replayed: Iterable[StoreChange] = merge(*happened, key=_revision)
        if prefix.endswith("/"):
            replayed = (change for change in replayed if change.key.startswith(prefix))
        elif prefix:
            replayed = (change for change in replayed if change.key == prefix)
        return self._watchers.add(prefix, list(replayed))

    def observe(self, observer: Callable[[StoreChange], None]) -> Callable[[], None]:
        """Call `observer` with each change, within the step that makes it. Returns an unsubscribe function."""
        self._observers.append(observer)
        return partial(self._observers.remove, observer)

    def end_watches(self, directory: str) -> None:
        """End all watches below a directory, once they have delivered what happened so far."""
        self._watchers.end(directory)

    # Compaction

    def sweep(self) -> None:
        """Delete expired objects. Watchers see the deletions."""
        for lifetime in self._lifetimes.values():
            for key in lifetime.ended():
                self.delete(key)

    def compact(self, revision: int) -> None:
        """Drop the history before a revision. Open watches are not affected."""
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision > self._compacted:
            self._compacted = revision
            self._retention.forget(revision)
            for collection in self._collections.values():
                collection.forget(revision)

    def snapshot(self) -> Snapshot:
        """The present content, for `restore`. Copies no object."""
        return Snapshot(
            {key: entry for collection in self._collections.values() for key, entry in collection.entries.items()}
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot, in one step that no request can see half done.

        It is made of ordinary writes of what differs: the revision grows, watchers stay and see each of them, and an
        object that has changed since has a new resourceVersion, so that no client takes it for what it knows already.
        """
        for directory in sorted(self._collections):
            collection = self._collections[directory]
            for key in sorted(collection.entries.keys() - snapshot.entries.keys()):
                self.delete(key)
        for key in sorted(snapshot.entries):
            collection = self._collection(key)
            present, wanted = collection.entries.get(key), snapshot.entries[key]
            if present is not wanted:
                # The snapshot is updated, so that the next restore does not take this for a difference.
                snapshot.entries[key] = self._commit("put", key, _restamped(wanted), collection, present, wanted.form)

    def take_over(self, entries: Iterable[StoredObject], revision: int) -> None:
        """Begin with the content of another store, as it was at a revision; before anything is written here."""
        for entry in entries:
            self._collection(entry.key).take_over(entry)
            if lifetime := self._lifetimes.get(_directory(entry.key)):
                lifetime.renew(entry.key)
        self._revision = self._compacted = self._mark = revision

    def _commit(
        self,
        kind: ChangeKind,
        key: str,
        value: JSONObject,
        collection: Collection,
        previous: StoredObject | None,
        form: str | None = None,
    ) -> StoredObject:
        self._expire()
        revision = self._revision + 1
        inside(value, "metadata")["resourceVersion"] = str(revision)
        entry = StoredObject(
            key,
            value,
            revision,
            revision if previous is None else previous.created,
            form=collection.form if form is None else form,
        )
        # Every reader and watcher gets this JSON: it is not encoded for the check alone.
        if kind == "put" and entry.form and len(entry.raw) > MAX_OBJECT_SIZE:
            raise TooLarge(key, len(entry.raw))
        change = StoreChange(kind, key, entry, previous)
        self._revision = revision
        collection.apply(change)
        self._retention.add(change)
        if lifetime := self._lifetimes.get(_directory(key)):
            if kind == "put":
                lifetime.renew(key)
            else:
                lifetime.forget(key)
        self._watchers.publish(change)
        for observer in self._observers:
            observer(change)
        return entry

    def _expire(self) -> None:
        if self._revision - self._compacted > self._history + self._history // 4:
            self.compact(self._revision - self._history)
        if excess := self._retention.excess:
            self.compact(excess)
        now = self._clock()
        if now >= self._due:
            # Every write checks the clock, so one that is a whole interval late follows a pause of at least that long,
            # and everything stored is old.
            silent = now >= self._due + self._interval
            self.compact(self._revision if silent else self._mark)
            self._mark = self._revision
            self._due = (now if silent else self._due) + self._interval

    def _must_retain(self, revision: int) -> None:
        self._expire()
        if revision > self._revision:
            raise FutureRevision(revision, self._revision)
        if revision < self._compacted:
            raise Compacted(revision, self._compacted)

    def _collection(self, key: str) -> Collection:
        directory = _directory(key)
        if not directory or directory == key:
            raise ValueError(f"a key looks like /group/resource/name, not {key!r}")
        collection = self._collections.get(directory)
        if collection is None:
            collection = self._collections[directory] = Collection()
        return collection

    def _below(self, prefix: str) -> Iterable[Collection]:
        directory = _directory(prefix)
        if directory:
            collection = self._collections.get(directory)
            return () if collection is None else (collection,)
        return [self._collections[name] for name in sorted(self._collections) if name.startswith(prefix)]


def _directory(key: str) -> str:
    """The `/group/resource/` a key or prefix lies in; empty when it is shorter than that."""
    second = key.find("/", 1)
    return key[: key.find("/", second + 1) + 1] if second > 0 else ""


def _expect(collection: Collection, key: str, expected: int | None) -> StoredObject:
    entry = collection.entries.get(key)
    if entry is None or (expected is not None and entry.revision != expected):
        raise RevisionConflict(key, expected, None if entry is None else entry.revision)
    return entry


def _restamped(entry: StoredObject) -> JSONObject:
    """The value with a `metadata` of its own, which can be given another resourceVersion."""
    return {**entry.value, "metadata": {**mapping(entry.value, "metadata")}}
