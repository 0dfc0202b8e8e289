"""What the store keeps: an object at one revision, and the change that stored it.

Both are shared between the store, its history and every watcher, and are never modified.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from kubewright.api.markers import JSONObject

ChangeKind: TypeAlias = Literal["put", "delete"]

_encode = msgspec.json.Encoder().encode


# Without `gc`: entries and changes hold JSON and each other, never a cycle, and there are many of them.
class StoredObject(msgspec.Struct, eq=False, gc=False):
    """An object as it was stored at `revision`; `created` is the revision at which its key came into being."""

    key: str
    value: JSONObject
    revision: int
    created: int
    _encoded: bytes | None = None
    adapted: bool = False
    """Not what is stored but what is shown of it: to store this is a change."""
    form: str = ""
    """The version it is stored in, where a kind has several."""

    @property
    def raw(self) -> bytes:
        """The value as JSON, encoded once for all readers."""
        if self._encoded is None:
            self._encoded = _encode(self.value)
        return self._encoded


class StoreChange(msgspec.Struct, eq=False, gc=False, frozen=True):
    """One committed write. For a deletion, `entry` is the last state, at the revision of the deletion."""

    kind: ChangeKind
    key: str
    entry: StoredObject
    previous: StoredObject | None
    """What was there before; None when the key was created."""

    @property
    def revision(self) -> int:
        """The revision this write made."""
        return self.entry.revision
