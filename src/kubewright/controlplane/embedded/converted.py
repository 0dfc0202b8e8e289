"""The store as one version of a kind sees it: objects are converted on their way in and out.

Kinds with a second version (autoscaling/v1) or a second home (events.k8s.io) are stored in one form only. Their
handlers know nothing of that: they are given this in place of the store.
"""

from __future__ import annotations

from collections.abc import Callable

from kubewright.controlplane.embedded.document import JSONObject, copied_object
from kubewright.controlplane.embedded.entry import Change, Entry
from kubewright.controlplane.embedded.storage import Range, Store, Subscription

Conversion = Callable[[JSONObject], JSONObject]


class ConvertedStore:
    """A `Store` whose values are of another version. Both conversions get a value of their own to change."""

    def __init__(self, store: Store, to_storage: Conversion, from_storage: Conversion) -> None:
        self._store = store
        self._to = to_storage
        self._from = from_storage

    @property
    def revision(self) -> int:
        """See `Store`."""
        return self._store.revision

    @property
    def compacted(self) -> int:
        """See `Store`."""
        return self._store.compacted

    def get(self, key: str) -> Entry | None:
        """See `Store`."""
        entry = self._store.get(key)
        return None if entry is None else self._seen(entry)

    def range(self, prefix: str, *, start: str = "", limit: int = 0, revision: int | None = None) -> Range:
        """See `Store`."""
        found = self._store.range(prefix, start=start, limit=limit, revision=revision)
        return Range([self._seen(entry) for entry in found.entries], found.remaining, found.revision)

    def create(self, key: str, value: JSONObject) -> Entry:
        """See `Store`."""
        return self._seen(self._store.create(key, self._to(value)))

    def update(self, key: str, value: JSONObject, *, expected: int) -> Entry:
        """See `Store`."""
        return self._seen(self._store.update(key, self._to(value), expected=expected))

    def delete(self, key: str, *, expected: int | None = None, final: JSONObject | None = None) -> Entry:
        """See `Store`."""
        last = None if final is None else self._to(final)
        return self._seen(self._store.delete(key, expected=expected, final=last))

    def watch(self, prefix: str, after: int) -> ConvertedSubscription:
        """See `Store`."""
        return ConvertedSubscription(self._store.watch(prefix, after), self._seen)

    def _seen(self, entry: Entry) -> Entry:
        return Entry(entry.key, self._from(copied_object(entry.value)), entry.revision, entry.created)


class ConvertedSubscription:
    """A `Subscription` to such a store."""

    def __init__(self, subscription: Subscription, seen: Callable[[Entry], Entry]) -> None:
        self._subscription = subscription
        self._seen = seen

    async def changes(self) -> list[Change]:
        """See `Subscription`."""
        return [
            Change(
                change.kind,
                change.key,
                self._seen(change.entry),
                None if change.previous is None else self._seen(change.previous),
            )
            for change in await self._subscription.changes()
        ]

    def close(self) -> None:
        """See `Subscription`."""
        self._subscription.close()
