"""Recognising the echoes of a program's own writes.

A write that changes nothing is answered with the object as it is, at a revision that another program may have made. So
whether an answered revision is ours is decided by what was sent (`origin_of`), and if that does not decide it, by what
changed when the watch brings it (`WriteOrigin.made`). In doubt it is not ours: one reconcile too many does no harm.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from kubewright.api.codec import NOT_JSON, decode_json
from kubewright.api.markers import JSONValue
from kubewright.api.origin import merge_patch
from kubewright.cache.entry import CacheEntry
from kubewright.cache.write_context import reconcile_priority

_BY_THE_SERVER = ("resourceVersion", "generation")
"""The metadata that every write changes."""


class WriteOrigin(Struct, frozen=True, gc=False, eq=False):
    """The write of this program that a change comes from."""

    priority: int = 0
    """That of the reconcile that wrote; what the change causes is enqueued with the same."""
    patch: bytes | None = None
    """The patch that was sent, if its answer does not show whether it changed anything."""

    def made(self, old: CacheEntry | None, new: CacheEntry | None) -> bool:
        """Whether a change is known to be that of the write, or is indistinguishable from it."""
        if self.patch is None:
            return True
        if old is None or new is None:
            return False
        try:
            return _covers_all(decode_json(self.patch), merge_patch(decode_json(old.body), decode_json(new.body)))
        except NOT_JSON:  # nested too deeply, for instance
            return False


class _Revision(Struct, rename="camel"):
    resource_version: str = ""


class _Sent(Struct):
    metadata: _Revision = msgspec.field(default_factory=_Revision)


_sent = msgspec.json.Decoder(_Sent)


def base_of(sent: bytes) -> str | None:
    """The revision that a write was sent with, empty without one; None for a JSON patch, which may test anything."""
    try:
        return _sent.decode(sent).metadata.resource_version
    except NOT_JSON:
        return None


def origin_of(
    method: str, sent: bytes, base: str | None, *, revision: str, is_created: bool = False
) -> WriteOrigin | None:
    """The origin of the answered revision; None when it may be the write of another program.

    `base` is the revision that the write was sent with: see `base_of`.
    """
    if is_created:
        return WriteOrigin(reconcile_priority.get())
    if base is None:
        return None
    if base:
        # The server has compared it: either nothing changed, or the write came directly after the base.
        return WriteOrigin(reconcile_priority.get()) if base != revision else None
    return WriteOrigin(reconcile_priority.get(), sent) if method == "PATCH" else None


def _covers(sent: JSONValue, change: JSONValue) -> bool:
    """Whether everything in a change is in what was sent."""
    if isinstance(change, dict) and isinstance(sent, dict):
        return all(name in sent and _covers(sent[name], value) for name, value in change.items())
    return sent == change


def _covers_all(sent: JSONValue, change: dict[str, JSONValue]) -> bool:
    """Whether something changed beyond what each write changes, and all of it is in what was sent."""
    for name in ("apiVersion", "kind"):  # which items of lists come without
        change.pop(name, None)
    metadata = change.pop("metadata", {})
    own = sent.get("metadata", {}) if isinstance(sent, dict) else {}
    if isinstance(metadata, dict):
        metadata = {name: value for name, value in metadata.items() if name not in _BY_THE_SERVER}
    return bool(metadata or change) and _covers(own, metadata) and _covers(sent, change)
