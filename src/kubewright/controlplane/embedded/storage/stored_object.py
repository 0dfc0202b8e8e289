"""What the store keeps: an object at one revision, and the change that stored it.

Both are shared between the store, its history and every watcher, and are never modified.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.nesting import decode, decode_deep

ChangeKind: TypeAlias = Literal["put", "delete"]

_encode = msgspec.json.Encoder().encode


# Without `gc`: entries and changes hold JSON and each other, never a cycle, and there are many of them.
class StoredObject(msgspec.Struct, eq=False, gc=False):
    """An object as it was stored at `revision`; `created` is the revision at which its key came into being."""

    key: str
    _value: JSONObject | None
    revision: int
    created: int
    _encoded: bytes | None = None
    adapted: bool = False
    """Not what is stored but what is shown of it: to store this is a change."""
    form: str = ""
    """The version it is stored in, where a kind has several."""

    @property
    def value(self) -> JSONObject:
        """What is stored."""
        if self._value is not None:
            return self._value
        try:
            return cast(JSONObject, decode(self.raw))
        except RecursionError:
            return cast(JSONObject, decode_deep(self.raw.decode()))

    def shrink(self) -> None:
        """Keep the JSON alone, which is a fraction of the value; that is decoded whenever it is read."""
        if self._value is not None:
            self._encoded, self._value = self.raw, None

    @property
    def raw(self) -> bytes:
        """The value as JSON, encoded once for all readers."""
        if self._encoded is None:
            self._encoded = _encode(self._value)
        return self._encoded


class StoreChange(msgspec.Struct, eq=False, gc=False, frozen=True):
    """One committed write. For a deletion, `entry` is the last state, at the revision of the deletion."""

    kind: ChangeKind
    key: str
    entry: StoredObject
    previous: StoredObject | None
    """What was there before; None when the key was created."""

    @property
    def size(self) -> int:
        """Bytes of the JSON that only history and watchers keep."""
        if self.previous is None:
            return 0
        return len(self.previous.raw) * (2 if self.kind == "delete" else 1)

    def shrink(self) -> None:
        """Keep only the JSON of what is no longer stored."""
        if self.previous is not None:
            self.previous.shrink()
        if self.kind == "delete":
            self.entry.shrink()

    @property
    def revision(self) -> int:
        """The revision this write made."""
        return self.entry.revision
