"""The patches a server takes, and how one is computed from two objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, TypeAlias

import msgspec
from msgspec import Struct

from kubewright.api.codec import decode_json, decode_model, encode
from kubewright.api.header import Header
from kubewright.api.markers import JSONObject
from kubewright.api.origin import Parts, as_read, merged, parts_of, patch_between
from kubewright.api.resources import Object
from kubewright.api.shape import Shape
from kubewright.client.request_body import SERVER_METADATA


class MergePatch(Struct, frozen=True):
    """RFC 7386: objects merge, null deletes, lists are replaced whole."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    body: Mapping[str, object]


class JSONPatch(Struct, frozen=True):
    """RFC 6902: a list of operations, applied all or none. A failing `test` operation is the error Invalid."""

    content_type: ClassVar[str] = "application/json-patch+json"
    body: Sequence[Mapping[str, object]]


class StrategicMergePatch(Struct, frozen=True):
    """A merge patch that merges lists by their key. Built-in kinds only; custom resources answer 415."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    body: Mapping[str, object]


class PatchFrom(Struct, frozen=True):
    """The merge patch from `base` to the object that is patched. Made by `patch_from`."""

    base: Object


Patch: TypeAlias = MergePatch | JSONPatch | StrategicMergePatch | PatchFrom


def patch_from(base: Object) -> PatchFrom:
    """The minimal merge patch from `base`, usually a copy made before the changes."""
    return PatchFrom(base)


class Change(Struct, frozen=True):
    """What a program did to an object: its JSON before and after."""

    before: Parts
    after: Parts

    @classmethod
    def of(cls, obj: Object, base: Object | None = None, names: tuple[str, ...] = ()) -> Change:
        """From `base`, or else from what a server sent `obj` as. With `names`, only changes in those fields count."""
        before = as_read(obj) if base is None else merged(base, names)
        if before is None:
            raise ValueError(
                f"{obj.kind} {obj.key} was not read from a server, so there is nothing to compare it with: "
                "use patch_from(base), or apply"
            )
        return cls(before, merged(obj, names))

    def patch(self) -> JSONObject:
        """The smallest merge patch that makes it; empty without a change. What only the server sets is none."""
        patch = patch_between(self.before, self.after)
        metadata = patch.get("metadata")
        if isinstance(metadata, dict):
            for name in SERVER_METADATA:
                metadata.pop(name, None)
            if not metadata:
                del patch["metadata"]
        return patch

    @property
    def header(self) -> Header:
        """Which object it was made on, and in which revision."""
        return decode_model(Header, self.before["metadata"])

    def replaces_whole(self, patch: JSONObject, kind: type[Object]) -> bool:
        """Whether `patch`, a part of this one's, replaces a list or removes a map that others may have added to."""
        from kubewright.api.rebase import replaces_whole  # many programs never patch

        before = {name: decode_json(self.before[name]) for name in patch if name in self.before}
        return replaces_whole(patch, before, Shape("model", model=kind))

    def strategic(self, patch: JSONObject, kind: type[Object]) -> tuple[JSONObject, bool]:
        """`patch`, a part of this one's, as a strategic merge patch, and whether that replaces a list whole."""
        from kubewright.client.strategic_merge import strategic_merge  # few programs ask for it

        before = {name: decode_json(self.before[name]) for name in patch if name in self.before}
        return strategic_merge(patch, before, Shape("model", model=kind))

    def on(self, live: bytes, kind: type[Object], names: Collection[str]) -> Change:
        """The same change of the fields `names`, made on what is there now. Raises `MergeClash` as `rebased` does."""
        from kubewright.api.rebase import rebased

        there = parts_of(live)
        before, after, now = (
            {name: decode_json(parts[name]) for name in names if name in parts}
            for parts in (self.before, self.after, there)
        )
        result = rebased(before, after, now, Shape("model", model=kind))
        others = {name: value for name, value in there.items() if name not in names}
        return Change(there, others | {name: msgspec.Raw(encode(value)) for name, value in result.items()})


def locked(patch: JSONObject, revision: str) -> JSONObject:
    """The same patch, which the server refuses with Conflict unless it finds the object in that revision."""
    metadata = patch.get("metadata")
    return {**patch, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "resourceVersion": revision}}
