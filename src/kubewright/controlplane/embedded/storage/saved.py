"""The content of a store as bytes, from which another one begins with the same objects under the same revisions.

There is no history in it: of earlier revisions the new store answers as after a compaction.
"""

from __future__ import annotations

from typing import Self

import msgspec

from kubewright.controlplane.embedded.storage.store import MemoryStore
from kubewright.controlplane.embedded.storage.stored_object import StoredObject


class _SavedObject(msgspec.Struct, array_like=True):
    key: str
    revision: int
    created: int
    form: str
    value: bytes
    """As JSON; in bytes and not part of the whole, as it may nest deeper than can be decoded."""


class SavedStore(msgspec.Struct):
    """All objects of a store at its last revision."""

    revision: int
    objects: list[_SavedObject]

    @classmethod
    def of(cls, store: MemoryStore) -> Self:
        """What a store holds now."""
        entries = store.snapshot().entries.values()
        return cls(
            store.revision,
            [_SavedObject(entry.key, entry.revision, entry.created, entry.form, entry.raw) for entry in entries],
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """What `encode` has returned."""
        return msgspec.json.decode(data, type=cls)

    def encode(self) -> bytes:
        """All of it as JSON."""
        return msgspec.json.encode(self)

    def fill(self, store: MemoryStore) -> None:
        """Put everything into a new store."""
        store.take_over([_entry(saved) for saved in self.objects], self.revision)


def _entry(saved: _SavedObject) -> StoredObject:
    value = StoredObject(saved.key, None, saved.revision, saved.created, saved.value).value
    return StoredObject(saved.key, value, saved.revision, saved.created, saved.value, form=saved.form)
