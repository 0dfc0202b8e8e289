"""The patches a server takes, and how one is computed from two objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeAlias

from msgspec import Struct

from kubewright.api.markers import JSONValue
from kubewright.api.origin import JSONObject, as_read, merged, patch_between
from kubewright.api.resource import Object
from kubewright.client.writing import SERVER_METADATA


class MergePatch(Struct, frozen=True):
    """RFC 7386: objects merge, null deletes, lists are replaced whole."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    body: Mapping[str, JSONValue]


class JSONPatch(Struct, frozen=True):
    """RFC 6902: a list of operations, applied all or none. A failing `test` operation is the error Invalid."""

    content_type: ClassVar[str] = "application/json-patch+json"
    body: Sequence[Mapping[str, JSONValue]]


class StrategicMergePatch(Struct, frozen=True):
    """A merge patch that merges lists by their key. Built-in kinds only; custom resources answer 415."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    body: Mapping[str, JSONValue]


class PatchFrom(Struct, frozen=True):
    """The merge patch from `base` to the object that is patched. Made by `patch_from`."""

    base: Object
    optimistic_lock: bool = False


Patch: TypeAlias = MergePatch | JSONPatch | StrategicMergePatch | PatchFrom


def patch_from(base: Object, *, optimistic_lock: bool = False) -> PatchFrom:
    """The minimal merge patch from `base`, usually a copy made before the changes.

    With `optimistic_lock` it carries base's resourceVersion: the server answers Conflict when the object has changed.
    """
    return PatchFrom(base, optimistic_lock)


def difference(
    obj: Object, base: Object | None = None, *, optimistic_lock: bool = False, names: tuple[str, ...] = ()
) -> JSONObject:
    """The merge patch that turns `base`, or else what `obj` was read as, into `obj`; empty when they are equal.

    With the `names` of fields, changes in others need not be in it.
    """
    before = as_read(obj) if base is None else merged(base, names)
    if before is None:
        raise ValueError(
            f"{obj.kind} {obj.key} was not read from a server, so there is nothing to compare it with: "
            "use patch_from(base), or apply"
        )
    patch = patch_between(before, merged(obj, names))
    # What only the server sets is never part of a change.
    metadata = patch.get("metadata")
    if isinstance(metadata, dict):
        for name in SERVER_METADATA:
            metadata.pop(name, None)
        if not metadata:
            del patch["metadata"]
    if patch and optimistic_lock:
        nested = patch.setdefault("metadata", {})
        if isinstance(nested, dict):
            nested["resourceVersion"] = (base or obj).metadata.resource_version
    return patch
