"""One watch, shared by all its users: the objects it keeps, and its subscribers.

Readers see the store with the program's own writes over it. During a relist they see it as it was before, until the
new list is complete; then the differences, deletions included, are emitted as events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeAlias

import msgspec

from kubewright.api.header import Header
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.resources import Object, resource_info
from kubewright.cache.entry import CacheEntry, applied_marker, entry_of, parse_entry, parse_header
from kubewright.cache.index import Values
from kubewright.cache.overlay import Overlay, Removal
from kubewright.cache.reflector import Reflector
from kubewright.cache.reflector_state import Blocked
from kubewright.cache.selection import matcher
from kubewright.cache.store import Store
from kubewright.cache.write_origin import WriteOrigin
from kubewright.client import Client

Transform: TypeAlias = Callable[[bytes], bytes]
"""From the JSON of an object to the JSON that the cache keeps. Name, namespace, uid and revision must stay:
an object that loses one of them is kept whole."""

Subscriber: TypeAlias = Callable[[CacheEntry | None, CacheEntry | None, bool, WriteOrigin | None], None]
"""Notified of each change: the entry before, the entry after, whether it is part of the initial list, and its write
origin if it is the echo of a write of this program."""

_Change: TypeAlias = tuple[CacheEntry | None, CacheEntry | None]

_log = logging.getLogger(__name__)


class Scope(msgspec.Struct, frozen=True):
    """The objects that a watch covers. Watches of equal scope are one watch."""

    gvk: GroupVersionKind
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    transform: Transform | None = None

    @property
    def is_whole(self) -> bool:
        """True when every object of the namespace is in the store, with all its fields."""
        return not (self.labels or self.fields or self.metadata_only or self.transform)

    def __str__(self) -> str:
        parts = [self.namespace and f"namespace {self.namespace}", self.labels, self.fields]
        return ", ".join(part for part in parts if part)


class WatchStatistics(msgspec.Struct, frozen=True):
    """Figures of a watch."""

    objects: int
    bytes: int
    relists: int
    restarts: int
    lag: float


class Informer:
    """Keeps the objects in its scope and notifies its subscribers of changes."""

    def __init__(
        self,
        client: Client,
        kind: type[Object],
        scope: Scope,
        *,
        stream: bool = True,
        quiet: bool = False,
        field_manager: str = "",
    ) -> None:
        """What `field_manager` owns by apply is kept with whole objects."""
        self.scope = scope
        self.kind_name = ".".join(part for part in (resource_info(kind).plural, scope.gvk.group) if part)
        self.references = 0
        self.synced = asyncio.Event()
        self.released = asyncio.Event()
        """Set when it has no user any more."""
        self._client = client
        self._kind = kind
        self._catching_up = asyncio.Lock()
        is_unchanged = not scope.metadata_only and scope.transform is None
        self._in_scope = matcher(scope.labels, scope.fields, scope.gvk)
        self._store = Store()
        self._applied_marker = applied_marker(field_manager) if field_manager and is_unchanged else b""
        self._overlay = Overlay(partial(parse_entry, marker=self._applied_marker))
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._revision = 0
        self._listed: dict[ObjectKey, CacheEntry] | None = None  # during a relist
        self._has_complained = False  # of its transform
        self._reflector = Reflector(
            client,
            kind,
            self,
            namespace=scope.namespace,
            labels=scope.labels,
            fields=scope.fields,
            stream=stream,
            quiet=quiet,
            applied=self._applied_marker,
        )

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._reflector.run()

    # What is known

    @property
    def state(self) -> str:
        """empty, listing or watching; or why it is blocked: absent, forbidden, unreachable, failed."""
        blocked = self._reflector.blocked
        return blocked.reason if blocked is not None else type(self._reflector.state).__name__.lower()

    @property
    def blocked(self) -> Blocked | None:
        """Why the watch makes no progress; None while it does."""
        return self._reflector.blocked

    @property
    def revision(self) -> int:
        """The store shows the cluster at this revision."""
        return self._revision

    @property
    def statistics(self) -> WatchStatistics:
        """Figures of the watch."""
        return WatchStatistics(
            len(self._store),
            self._store.size,
            max(0, self._reflector.lists - 1),
            self._reflector.restarts,
            self._overlay.lag,
        )

    @property
    def is_settled(self) -> bool:
        """True when the initial list is complete, or it is known that the kind does not exist."""
        return self.synced.is_set() or self.is_absent

    @property
    def is_absent(self) -> bool:
        """True when it is known that the kind does not exist (yet)."""
        return self.blocked is not None and self.blocked.reason == "absent"

    async def absent(self) -> None:
        """Wait until `is_absent`."""
        while not self.is_absent:
            await self._reflector.changed()

    async def settled(self) -> None:
        """Wait until `is_settled`."""
        while not self.is_settled:
            await self._reflector.changed()

    async def caught_up(self, revision: int) -> None:
        """Wait until it shows all that had been written to its objects when this was called, or `revision`."""
        from kubewright.cache.catching_up import caught_up  # for leaders, at the beginning of a term

        async with self._catching_up:  # several sources may have the same watch
            await caught_up(self._client, self._kind, self, revision)

    # Reading

    def find(self, key: ObjectKey, *, own_writes: bool = True) -> CacheEntry | None:
        """The entry of a key, with the program's own writes over it by default."""
        stored = self._store.get(key)
        return self._overlay.over(key, stored) if own_writes and len(self._overlay) else stored

    def select(
        self, namespace: str = "", index: tuple[str, str] | None = None, *, own_writes: bool = True
    ) -> Iterator[CacheEntry]:
        """The entries of a namespace (or of all), as far as they are found under a value of an index."""
        entries = self._candidates(namespace, index)
        if not own_writes or not len(self._overlay):
            return iter(entries)
        pending = set(self._overlay)
        return iter([*(entry for entry in entries if entry.key not in pending), *self._written(namespace, index)])

    def add_index(self, name: str, values: Values) -> None:
        """Let `select` find entries by another value."""
        self._store.add_index(name, values)

    def has_index(self, name: str) -> bool:
        """Whether `select` can find entries by that index."""
        return self._store.index(name) is not None

    def _candidates(self, namespace: str, index: tuple[str, str] | None) -> Iterable[CacheEntry]:
        if index is not None:
            name, value = index
            found = self._store.index(name)
            if found is None:
                raise KeyError(f'{self.kind_name} has no index "{name}"')
            entries = found.find(value).values()
            return [entry for entry in entries if not namespace or entry.namespace == namespace]
        return self._store.in_namespace(namespace) if namespace else self._store

    def _written(self, namespace: str, index: tuple[str, str] | None) -> Iterator[CacheEntry]:
        for key in self._overlay:
            entry = self._overlay.over(key, self._store.get(key))
            if entry is None or (namespace and key.namespace != namespace):
                continue
            if index is None or index[1] in self._values(index[0], entry):
                yield entry

    def _values(self, name: str, entry: CacheEntry) -> tuple[str, ...]:
        index = self._store.index(name)
        return index.values(entry) if index is not None else ()

    # Own writes

    def written(self, key: ObjectKey, revision: int, raw: bytes, origin: WriteOrigin | None = None) -> None:
        """A write of this program was answered with the JSON `raw`; without an origin it may have changed nothing."""
        # A kind whose scope was not known may be watched "in" a namespace and yet have none.
        if self.scope.namespace and key.namespace not in ("", self.scope.namespace):
            return
        # Answers may overtake each other: what the watch has brought, or a later deletion, is newer than this one.
        if revision <= self._revision:
            return
        if self._overlay.is_removed(key, raw):
            self._overlay.removed_after(key, revision)
            return
        if self._in_scope is None and self.scope.transform is None:
            self._overlay.written(key, revision, raw, origin)
        else:
            entry = parse_entry(raw, self._applied_marker)
            is_ours = self._in_scope is None or self._in_scope(entry)
            self._overlay.written(key, revision, self._transformed(entry) if is_ours else None, origin)

    def removal_begins(self, key: ObjectKey) -> Removal:
        """A deletion by this program is about to be sent. `removal_ends` must follow, whatever its outcome."""
        return self._overlay.removal_begins(key, self.uid(key))

    def removal_ends(self, removal: Removal) -> None:
        """The deletion was answered, or never will be."""
        self._overlay.removal_ends(removal)

    def removed(self, key: ObjectKey, uid: str, *, is_new: bool = False) -> None:
        """A deletion of this program removed the object for good; if `is_new`, before the watch had brought it."""
        shown = self.find(key)
        if shown is not None and shown.header.uid == uid:
            self._overlay.removed(key, uid, shown.revision)
        elif is_new and uid and self._in_scope is None and self.scope.namespace in ("", key.namespace):
            self._overlay.removed_unseen(key, uid)

    def uid(self, key: ObjectKey) -> str:
        """The uid of the object that the watch has brought under a key; empty for none."""
        stored = self._store.get(key)
        return stored.header.uid if stored is not None else ""

    # Notifying

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Notify `subscriber` of the existing objects and of every change. Returns an unsubscribe function."""
        subscription = _Subscription(subscriber)
        for entry in list(self._store):
            subscription.notify(None, entry, True, None)
        # Subscribers may come and go while they are notified: those that are notified are a tuple of that moment.
        self._subscriptions = (*self._subscriptions, subscription)

        def unsubscribe() -> None:
            subscription.is_over = True
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

        return unsubscribe

    def _emit(self, changes: Iterable[_Change], *, initial: bool = False, own: WriteOrigin | None = None) -> None:
        subscriptions = self._subscriptions
        for old, new in changes:
            for subscription in subscriptions:
                subscription.notify(old, new, initial, own)

    # The reflector's events

    def init(self) -> None:
        """See `Sink`."""
        # The first list goes straight into the store; a later one beside it, so that readers never see half of one.
        self._listed = {} if len(self._store) or self.synced.is_set() else None
        self._overlay.list_begins()

    def init_apply(self, entry: CacheEntry) -> None:
        """See `Sink`."""
        entry = self._transformed(entry)
        key = entry.key
        stored = self._store.get(key)
        if self._listed is not None:
            self._listed[key] = stored if stored is not None and _are_same(stored, entry) else entry
        elif stored is None or stored.revision < entry.revision:  # it may change while the list is streamed
            self._store.put(entry)
            self._emit([(stored, entry)], initial=True)

    def init_done(self, revision: int) -> None:
        """See `Sink`."""
        listed, self._listed = self._listed, None
        changes = self._replace(listed) if listed is not None else []
        if revision < self._revision:
            # The server was restored from a backup, or is another one.
            self._overlay.clear()
        else:
            self._overlay.replaced(revision, self.uid)
        self._revision = revision
        is_first = not self.synced.is_set()
        self.synced.set()
        self._emit(changes, initial=is_first)

    def apply(self, entry: CacheEntry) -> None:
        """See `Sink`."""
        key = entry.key
        old = self._store.get(key)
        self._revision = max(self._revision, entry.revision)
        if old is not None and old.revision >= entry.revision:
            return
        entry = self._transformed(entry)
        self._store.put(entry)
        own = None
        if len(self._overlay):
            own = self._overlay.origin(key, entry.revision)
            self._overlay.seen(key, entry, entry.revision)
        self._emit([(old, entry)], own=own)

    def delete(self, entry: CacheEntry) -> None:
        """See `Sink`."""
        self._overlay.ended(entry)
        if self._listed is not None:
            # Deleted while the list is streamed. The store follows with the rest of the list.
            self._listed.pop(entry.key, None)
            return
        old = self._store.get(entry.key)
        if old is not None and old.revision > entry.revision:
            return
        self._store.remove(entry.key)
        self._revision = max(self._revision, entry.revision)
        if len(self._overlay):
            self._overlay.seen(entry.key, None, entry.revision)
        if old is not None:
            self._emit([(self._transformed(entry), None)])

    def progress(self, revision: int) -> None:
        """See `Sink`."""
        self._revision = max(self._revision, revision)
        if len(self._overlay):
            self._overlay.reached(revision)

    def gone(self) -> None:
        """See `Sink`."""
        self._listed = None
        changes = self._replace({})
        self._overlay.clear()
        self._revision = 0
        self.synced.clear()
        self._emit(changes)

    def _replace(self, listed: dict[ObjectKey, CacheEntry]) -> list[_Change]:
        """Make the store what was listed. The changes are emitted afterwards: a subscriber may read the store."""
        changes: list[_Change] = [(entry, None) for entry in self._store if entry.key not in listed]
        for entry in listed.values():
            old = self._store.get(entry.key)
            if old is not entry:
                changes.append((old, entry))
        for old, new in changes:
            if new is not None:
                self._store.put(new)
            elif old is not None:
                self._store.remove(old.key)
        return changes

    def _transformed(self, entry: CacheEntry) -> CacheEntry:
        if self.scope.transform is None:
            return entry
        try:
            body = self.scope.transform(entry.body)
            header = parse_header(body)
        except Exception:
            # One object that the function fails for must not stop the watch.
            if not self._has_complained:
                self._has_complained = True
                _log.exception(
                    "the transform of %s failed, first for %s; such objects are kept whole. It is a function that "
                    "takes the JSON of an object and returns the JSON to keep, both as bytes",
                    self.kind_name,
                    entry.key,
                )
            return entry
        if _identity(header) == _identity(entry.header):
            return entry_of(header, body)
        if not self._has_complained:
            self._has_complained = True
            _log.error(
                "the transform of %s changes or drops name, namespace, uid or resourceVersion, first of %s; such "
                "objects are kept whole",
                self.kind_name,
                entry.key,
            )
        return entry


class _Subscription:
    """A subscriber, until it unsubscribes."""

    __slots__ = ("_subscriber", "is_over")

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self.is_over = False

    def notify(self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if self.is_over:
            return
        try:
            self._subscriber(old, new, initial, own)
        except Exception:
            # A predicate or map function of the user's; the others are still notified.
            entry = new or old
            _log.exception("an event handler failed for %s", entry.key if entry is not None else "nothing")


def _identity(header: Header) -> tuple[str, str, str, str]:
    return header.namespace, header.name, header.uid, header.resource_version


def _are_same(one: CacheEntry, other: CacheEntry) -> bool:
    """Whether two entries show one object in one state.

    A server that was restored from a backup gives the same revisions again, so the revision alone does not decide.
    """
    if one.revision != other.revision:
        return False
    try:
        return one.body == other.body or _content(one) == _content(other)
    except RecursionError:  # nested too deeply to be compared
        return False


def _content(entry: CacheEntry) -> dict[str, object]:
    """Everything but apiVersion and kind, which objects of watches have and items of lists do not."""
    content: dict[str, object] = msgspec.json.decode(entry.body)
    return {name: value for name, value in content.items() if name not in ("apiVersion", "kind")}
