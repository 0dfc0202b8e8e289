"""The objects of one kind, as entries: by key, by namespace, and by any index.

A store knows nothing of watches: it has what was put into it. `objects` and `size` are always exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry
from kubewright.cache.index import Index, Values


class Store:
    """Entries by namespace and name. Reads never copy; entries are immutable."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, CacheEntry]] = {}
        self._indexes: dict[str, Index] = {}
        self.objects = 0
        self.size = 0  # bytes of JSON

    def get(self, key: ObjectKey) -> CacheEntry | None:
        """The entry of a key."""
        namespace, name = key
        entries = self._namespaces.get(namespace)
        return entries.get(name) if entries else None

    def __iter__(self) -> Iterator[CacheEntry]:
        for entries in self._namespaces.values():
            yield from entries.values()

    def __len__(self) -> int:
        return self.objects

    def in_namespace(self, namespace: str) -> Iterator[CacheEntry]:
        """The entries of one namespace."""
        return iter(self._namespaces.get(namespace, {}).values())

    def put(self, entry: CacheEntry) -> CacheEntry | None:
        """Keep an entry. Returns the one it replaces."""
        name = entry.name
        entries = self._namespaces.get(entry.namespace)
        if entries is None:
            entries = self._namespaces[entry.namespace] = {}
        old = entries.get(name)
        entries[name] = entry
        self.size += len(entry.body)
        if old is None:
            self.objects += 1
        else:
            self.size -= len(old.body)
        for index in self._indexes.values():
            index.put(entry)
        return old

    def remove(self, key: ObjectKey) -> CacheEntry | None:
        """Forget an entry. Returns it, None when there was none."""
        namespace, name = key
        entries = self._namespaces.get(namespace)
        old = entries.pop(name, None) if entries else None
        if old is None or entries is None:
            return None
        if not entries:
            del self._namespaces[namespace]
        self.objects -= 1
        self.size -= len(old.body)
        for index in self._indexes.values():
            index.remove(key)
        return old

    def add_index(self, name: str, values: Values) -> None:
        """Find entries by another value, including those already stored."""
        if name in self._indexes:
            return
        index = Index(values)
        for entry in self:
            index.put(entry)
        self._indexes[name] = index

    def index(self, name: str) -> Index | None:
        """The index of that name."""
        return self._indexes.get(name)
