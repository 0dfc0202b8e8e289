"""The store as one version of a kind sees it: objects are converted on their way in and out.

Kinds with a second version (autoscaling/v1) or a second home (events.k8s.io) are stored in one form only, and custom
resources stay in the form they were written in. The handlers do not know of that: they get this instead of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.rest.call import ChangeSubscription, ObjectStore
from kubewright.controlplane.embedded.storage.store import Range
from kubewright.controlplane.embedded.storage.stored_object import StoreChange, StoredObject

Conversion: TypeAlias = Callable[[JSONObject], JSONObject]

_MAX_REMEMBERED = 8 << 20
"""Bytes of the JSON of what is remembered of a version."""


class SeenStore:
    """An `ObjectStore` whose objects are shown by `seen`; what is written goes in as it is."""

    def __init__(self, store: ObjectStore, seen: Callable[[StoredObject], StoredObject]) -> None:
        self._store = store
        self._seen = seen

    @property
    def revision(self) -> int:
        """See `Store`."""
        return self._store.revision

    @property
    def compacted(self) -> int:
        """See `Store`."""
        return self._store.compacted

    def get(self, key: str) -> StoredObject | None:
        """See `Store`."""
        entry = self._store.get(key)
        return None if entry is None else self._seen(entry)

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """See `Store`."""
        found = self._store.range(prefix, start=start, limit=limit, revision=revision)
        return Range([self._seen(entry) for entry in found.entries], found.remaining, found.revision)

    def prepare(self, value: JSONObject) -> None:
        """See `Store`."""
        self._store.prepare(value)

    def create(self, key: str, value: JSONObject) -> StoredObject:
        """See `Store`."""
        return self._seen(self._store.create(key, value))

    def update(self, key: str, value: JSONObject, *, expected: int) -> StoredObject:
        """See `Store`."""
        return self._seen(self._store.update(key, value, expected=expected))

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> StoredObject:
        """See `Store`."""
        return self._seen(self._store.delete(key, expected=expected, final=final))

    def watch(self, prefix: str, after: int) -> ChangeSubscription:
        """See `Store`."""
        return ConvertedSubscription(self._store.watch(prefix, after), self._seen)


class ConvertedStore(SeenStore):
    """A `Store` whose values are of another version. Both conversions get a value of their own to change.

    What is not below `prefix` is of other kinds, such as quotas, and stays as it is.
    """

    def __init__(self, store: ObjectStore, to_storage: Conversion, from_storage: Conversion, prefix: str = "") -> None:
        super().__init__(
            store, lambda entry: _converted(entry, from_storage) if entry.key.startswith(prefix) else entry
        )
        self._to = to_storage
        self._prefix = prefix

    def create(self, key: str, value: JSONObject) -> StoredObject:
        """See `Store`."""
        return super().create(key, self._stored(key, value))

    def update(self, key: str, value: JSONObject, *, expected: int) -> StoredObject:
        """See `Store`."""
        return super().update(key, self._stored(key, value), expected=expected)

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> StoredObject:
        """See `Store`."""
        return super().delete(key, expected=expected, final=None if final is None else self._stored(key, final))

    def _stored(self, key: str, value: JSONObject) -> JSONObject:
        return self._to(value) if key.startswith(self._prefix) else value


def _converted(entry: StoredObject, conversion: Conversion) -> StoredObject:
    value = conversion(copied_object(entry.value))
    return StoredObject(entry.key, value, entry.revision, entry.created, form=entry.form)


class VersionView:
    """How one version of a custom kind sees what is stored: defaulted and pruned by the current schemas.

    What was written since `since` by this very version is that already, except that a new object is stored without its
    status, which `defaults_status` says is filled in. The latest forms of objects are remembered, up to a number of
    bytes.
    What is not stored in the form `form` is a change when it is stored again; of the forms in `unreadable`, nothing is
    shown but why. What is not below `prefix` is of other kinds, and is shown as it is.
    """

    def __init__(
        self,
        conform: Callable[[JSONObject], None],
        since: float,
        form: str = "",
        unreadable: Mapping[str, str] | None = None,
        *,
        prefix: str = "",
        defaults_status: bool = False,
    ) -> None:
        self._prefix = prefix
        self._conform = conform
        self._since = since
        self._form = form
        self._unreadable = unreadable or {}
        self._defaults_status = defaults_status
        self._latest: dict[str, tuple[int, StoredObject]] = {}
        self._size = 0

    def __call__(self, entry: StoredObject) -> StoredObject:
        """The entry as this version shows it; itself when there is no difference."""
        if not entry.key.startswith(self._prefix):
            return entry
        is_whole = not self._defaults_status or "status" in entry.value
        if is_whole and entry.revision > self._since and entry.form == self._form:
            return entry
        if why := self._unreadable.get(entry.form):
            raise StatusError(500, "", why)
        known, seen = self._latest.get(entry.key, (-1, entry))
        if known == entry.revision:
            return seen
        value = copied_object(entry.value)
        self._conform(value)
        same = value == entry.value and entry.form == self._form
        seen = (
            entry
            if same
            else StoredObject(entry.key, value, entry.revision, entry.created, adapted=True, form=entry.form)
        )
        if entry.revision > known:
            self._size += len(entry.raw)
            if self._size > _MAX_REMEMBERED:
                self._latest.clear()
                self._size = len(entry.raw)
            self._latest[entry.key] = entry.revision, seen
        return seen


class ConvertedSubscription:
    """A `Subscription` to such a store."""

    def __init__(self, subscription: ChangeSubscription, seen: Callable[[StoredObject], StoredObject]) -> None:
        self._subscription = subscription
        self._seen = seen

    async def changes(self) -> list[StoreChange]:
        """See `Subscription`."""
        return [
            StoreChange(
                change.kind,
                change.key,
                self._seen(change.entry),
                None if change.previous is None else self._seen(change.previous),
            )
            for change in await self._subscription.changes()
        ]

    @property
    def closed(self) -> bool:
        """See `Subscription`."""
        return self._subscription.closed

    def interrupt(self) -> None:
        """See `Subscription`."""
        self._subscription.interrupt()

    def close(self) -> None:
        """See `Subscription`."""
        self._subscription.close()
