"""How a write changes the ownership of fields.

Pure bookkeeping over sets of fields: the values have been merged and compared by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure, Structure
from kubewright.controlplane.embedded.managedfields.entries import ManagerIdentity, Managers
from kubewright.controlplane.embedded.managedfields.fieldset import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    of_paths,
)
from kubewright.controlplane.embedded.managedfields.shape import MergeShape, shape_of
from kubewright.controlplane.embedded.managedfields.walks import FieldChanges, changes

VersionConverter: TypeAlias = Callable[[JSONObject, str, str], JSONObject]
"""From an object, its apiVersion and another one to the object in that."""

_UNTRACKED = of_paths(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)


def tracked(fields: FieldSet) -> FieldSet:
    """The fields without those that are never managed."""
    return difference(fields, _UNTRACKED)


@lru_cache(maxsize=256)
def ignored(reset: tuple[tuple[str, ...], ...]) -> FieldSet:
    """The set of the fields, given by names, that the endpoint takes from the stored object."""
    return of_paths(tuple(f"f:{name}" for name in path) for path in reset)


@dataclass(frozen=True, slots=True)
class WriteScope:
    """Where a write arrived: the version of the kind it speaks, and the fields it cannot change."""

    api_version: str
    subresource: str
    structure: Structure
    versions: Mapping[str, Structure]
    ignored: FieldSet
    convert: VersionConverter | None = None

    @property
    def shape(self) -> MergeShape:
        """The shape in the endpoint's own version."""
        return shape_of(self.structure)

    def shape_in(self, api_version: str) -> MergeShape | None:
        """The shape in another version; None when the kind has no such version (any more)."""
        if api_version == self.api_version:
            return self.shape
        structure = self.versions.get(api_version)
        return None if structure is None else shape_of(structure)

    def ignored_in(self, api_version: str) -> FieldSet:
        """The fields that the endpoint cannot change, as far as they are compared in another version."""
        # The main endpoints of the real server know only the status of their own version.
        return self.ignored if api_version == self.api_version or self.subresource else LEAF

    def differ(self, old: JSONObject, new: JSONObject) -> Callable[[str], FieldChanges | None]:
        """How two objects differ, by version; each version is compared once, when needed."""
        known: dict[str, FieldChanges | None] = {}

        def in_version(api_version: str) -> FieldChanges | None:
            if api_version not in known:
                shape = self.shape_in(api_version)
                known[api_version] = (
                    None
                    if shape is None
                    else changes(
                        self.converted(old, self.api_version, api_version),
                        self.converted(new, self.api_version, api_version),
                        shape,
                    ).besides(self.ignored_in(api_version))
                )
            return known[api_version]

        return in_version

    def converted(self, value: JSONObject, source: str, target: str) -> JSONObject:
        """An object of one version in another: the same, unless the versions of the kind are converted."""
        return value if self.convert is None or source == target else self.convert(value, source, target)

    def reconciled(self, managers: Managers) -> Managers:
        """The managers after changes of the kind: versions that were removed, values that are atomic now."""
        result: Managers = {}
        for identity, manager in managers.items():
            shape = self.shape_in(manager.api_version)
            if shape is None:
                continue
            if isinstance(self.structure, SchemaStructure):
                fields = _reconciled(manager.fields, shape)
                if fields is not manager.fields:
                    manager = replace(manager, fields=fields)
            result[identity] = manager
        return result


def _reconciled(fields: FieldSet, shape: MergeShape) -> FieldSet:
    changed: FieldSet = {}
    for element, node in fields.items():
        if not node or element == ".":
            continue
        nested = shape.field(element[2:]) if element.startswith("f:") else shape.element
        now = LEAF if nested.is_atomic else _reconciled(node, nested)
        if now is not node:
            changed[element] = now
    return {**fields, **changed} if changed else fields


def disowned(
    managers: Managers, differences: Callable[[str], FieldChanges | None], *, but: ManagerIdentity | None = None
) -> tuple[Managers, dict[ManagerIdentity, FieldSet]]:
    """The managers after a write by another (`but`), and what each lost to it by a new value.

    Removed fields leave every set. A manager without fields is dropped.
    """
    kept: Managers = {}
    lost: dict[ManagerIdentity, FieldSet] = {}
    for identity, manager in managers.items():
        fields = manager.fields
        if identity != but:
            difference_ = differences(manager.api_version)
            if difference_ is None:
                continue
            taken = intersection(fields, difference_.written)
            if taken:
                lost[identity] = taken
                fields = difference(fields, taken)
            fields = difference(fields, difference_.removed)
        if fields:
            kept[identity] = manager if fields == manager.fields else replace(manager, fields=fields)
    return kept, lost


def write_scope(
    *,
    api_version: str,
    subresource: str,
    structure: Structure,
    versions: Mapping[str, Structure] | None,
    reset: Sequence[Sequence[str]],
    convert: VersionConverter | None,
) -> WriteScope:
    """An endpoint from what the handlers know of it."""
    return WriteScope(
        api_version, subresource, structure, versions or {}, ignored(tuple(tuple(path) for path in reset)), convert
    )
