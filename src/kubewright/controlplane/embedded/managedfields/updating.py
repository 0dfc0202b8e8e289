"""Create, update and patch: the sender of a new value becomes the manager of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.managedfields.checking import fits
from kubewright.controlplane.embedded.managedfields.entries import (
    FieldManager,
    Managers,
    capped,
    given_managers,
    is_reset,
    stored_managers,
    written,
)
from kubewright.controlplane.embedded.managedfields.fieldset import LEAF, MalformedFields, union
from kubewright.controlplane.embedded.managedfields.ownership import (
    VersionConverter,
    WriteScope,
    disowned,
    tracked,
    write_scope,
)
from kubewright.controlplane.embedded.managedfields.shape import Untrackable
from kubewright.controlplane.embedded.managedfields.walks import identical


def track_update(
    old: JSONObject | None,
    new: JSONObject,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    time: str,
    structure: Structure,
    reset: Sequence[Sequence[str]] = (),
    versions: Mapping[str, Structure] | None = None,
    empty: JSONObject | None = None,
    convert: VersionConverter | None = None,
) -> list[JSONValue]:
    """Set and return the managed fields of `new`, which is about to replace `old` (None: to be created).

    `reset` are the fields, as paths of names, that this endpoint does not change whatever `new` says. `versions` are
    the structures of the kind's other versions, by apiVersion; entries in versions that no longer exist are dropped.
    `empty` is what a created object is compared with: `empty_object` of a built-in kind, nothing for a custom one.
    `convert` is given where the versions of the kind differ by more than their name.
    The entries share parts with those of `old`, which must not be changed.
    """
    metadata = inside(new, "metadata")
    given = metadata.pop("managedFields", None)
    before = at(old, "metadata", "managedFields")
    managers = _starting(before, None if subresource else given)
    # Objects that were stored untracked stay so; the first apply changes that.
    if not managers and old is not None and text(old, "metadata", "uid"):
        return []
    scope = write_scope(
        api_version=api_version,
        subresource=subresource,
        structure=structure,
        versions=versions,
        reset=reset,
        convert=convert,
    )
    # What is wrong with the rest of a custom resource is no matter to its status, but who manages what is forgotten.
    if subresource and versions is not None and not fits(new, scope.shape):
        return []
    try:
        managers = updated(managers, old if old is not None else empty or {}, new, manager, scope, time)
    except Untrackable:
        return []
    entries = written(managers.values())
    if entries:
        metadata["managedFields"] = entries
    return entries


def _starting(before: JSONValue, given: JSONValue) -> Managers:
    """The managers before the write. A client may edit or remove them; omitting the field does not remove them."""
    if given is not None and given is not before and given != before:
        if is_reset(given):
            return {}
        try:
            managers = given_managers(given)
        except MalformedFields:
            managers = {}
        if managers:
            return managers
    return stored_managers(before)


def updated(managers: Managers, old: JSONObject, new: JSONObject, name: str, scope: WriteScope, time: str) -> Managers:
    """The managers after an update by `name`."""
    differences = scope.differ(old, new)
    own = differences(scope.api_version)
    fields = tracked(own.written) if own is not None else LEAF
    managers, _ = disowned(scope.reconciled(managers), differences)
    if fields:
        manager = FieldManager(name or "unknown", "Update", scope.api_version, scope.subresource, time, fields)
        previous = managers.get(manager.identity)
        if previous is not None:
            manager = replace(manager, fields=union(fields, previous.fields))
        managers[manager.identity] = manager
    return capped(managers)


def same_but_for_times(new: JSONObject, old: JSONObject) -> bool:
    """Whether two objects differ at most in the times of their managed fields: a write of nothing."""
    if new.keys() != old.keys():
        return False
    fresh, stale = mapping(new, "metadata"), mapping(old, "metadata")
    if fresh.keys() != stale.keys():
        return False
    if not _timeless_same(fresh.get("managedFields"), stale.get("managedFields")):
        return False
    return all(identical(value, stale[name]) for name, value in fresh.items() if name != "managedFields") and all(
        identical(value, old[name]) for name, value in new.items() if name != "metadata"
    )


def _timeless_same(new: JSONValue, old: JSONValue) -> bool:
    if not isinstance(new, list) or not isinstance(old, list):
        return new == old
    return len(new) == len(old) and all(map(_same_entry, new, old))


def _same_entry(new: JSONValue, old: JSONValue) -> bool:
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new == old
    return all(new.get(name) == old.get(name) for name in new.keys() | old.keys() if name != "time")
