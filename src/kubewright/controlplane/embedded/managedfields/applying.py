"""Server-side apply: sets what a manager applies, and removes what that manager no longer applies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.managedfields.checking import complaint
from kubewright.controlplane.embedded.managedfields.conflicts import Disagreement, disagreements, refusal
from kubewright.controlplane.embedded.managedfields.entries import FieldManager, Managers, stored_managers, written
from kubewright.controlplane.embedded.managedfields.fieldset import (
    LEAF,
    FieldSet,
    difference,
    intersection,
    union,
    without,
)
from kubewright.controlplane.embedded.managedfields.last_applied import agreed, allowed_conflicts
from kubewright.controlplane.embedded.managedfields.merging import merged, removed, with_named_fields
from kubewright.controlplane.embedded.managedfields.ownership import (
    VersionConverter,
    WriteScope,
    disowned,
    tracked,
    write_scope,
)
from kubewright.controlplane.embedded.managedfields.shape import MergeShape, Untrackable
from kubewright.controlplane.embedded.managedfields.updating import updated
from kubewright.controlplane.embedded.managedfields.walks import fields_of, identical

_BEFORE_FIRST_APPLY = "before-first-apply"


def apply(
    live: JSONObject | None,
    patch: JSONObject,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    time: str,
    structure: Structure,
    reset: Sequence[Sequence[str]] = (),
    versions: Mapping[str, Structure] | None = None,
    empty: JSONObject | None = None,
    convert: VersionConverter | None = None,
) -> JSONObject:
    """The object after `manager` applied `patch` to `live` (None: there is none), with its managed fields set.

    It shares nothing with `live`, and has no defaults filled in yet. The keywords are those of `track_update`.
    Raises StatusError: 409 for fields that others manage, unless `force`; 400 or 500 for what cannot be merged.
    """
    if at(patch, "metadata", "managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    scope = write_scope(
        api_version=api_version,
        subresource=subresource,
        structure=structure,
        versions=versions,
        reset=reset,
        convert=convert,
    )
    wrong = complaint(patch, scope.shape)
    if wrong:
        raise StatusError(500, "", f"failed to create typed patch object ({_named(patch)}): {wrong}")
    kind: JSONObject = {name: patch[name] for name in ("apiVersion", "kind") if name in patch}
    start: JSONObject = {**kind, **(empty or {})}
    before: JSONObject = start if live is None else {**kind, **_without_managers(live)}
    managers = stored_managers(at(live, "metadata", "managedFields"))
    try:
        if not managers:
            managers = updated({}, start, before, _BEFORE_FIRST_APPLY, scope, time)
        result, managers = _applied(managers, before, patch, manager, scope, time, force=force)
    except Untrackable as error:
        raise StatusError(500, "", f"failed to create typed live object ({_named(patch)}): {error}") from None
    changed = copied_object(result)
    if manager == "kubectl":
        agreed(changed, patch)
    if managers:
        inside(changed, "metadata")["managedFields"] = written(managers.values())
    return changed


def _without_managers(obj: JSONObject) -> JSONObject:
    metadata = {name: value for name, value in mapping(obj, "metadata").items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def unconvertible(patch: JSONObject, why: str) -> StatusError:
    """500: what applying `patch` made of an object is no object of its kind."""
    kind = _named(patch).partition("; ")[2]
    return StatusError(
        500,
        "",
        f"failed to convert new object ({_named(patch)}) to proper version: "
        f"unable to convert unstructured object to {kind}: error decoding from json: {why}",
    )


def _named(patch: JSONObject) -> str:
    group, _, version = text(patch, "apiVersion").rpartition("/")
    where = f"{text(patch, 'metadata', 'namespace')}/{text(patch, 'metadata', 'name')}"
    return f"{where}; {group}/{version}, Kind={text(patch, 'kind')}"


def _applied(
    managers: Managers,
    live: JSONObject,
    patch: JSONObject,
    name: str,
    scope: WriteScope,
    time: str,
    *,
    force: bool,
) -> tuple[JSONObject, Managers]:
    managers = scope.reconciled(managers)
    fields = without(fields_of(patch, scope.shape), scope.ignored)
    applier = FieldManager(name or "unknown", "Apply", scope.api_version, scope.subresource, "", fields)
    last = managers.get(applier.identity)
    if last is not None:
        applier = replace(applier, time=last.time)
    managers[applier.identity] = applier
    result = merged(live, patch, scope.shape)
    # What was applied last time and is still applied needs no second check.
    if last is not None and (last.api_version != scope.api_version or difference(last.fields, fields)):
        result = _pruned(result, managers, last, scope)
    kept, lost = disowned(managers, scope.differ(live, result), but=applier.identity)
    if lost and not force:
        _refuse(disagreements(managers, lost), live, name, scope)
    mine = tracked(applier.fields)
    if mine:
        # An apply that changes nothing is not an event in the life of the object.
        when = applier.time if identical(result, live) else time
        kept[applier.identity] = replace(applier, time=when, fields=mine)
    else:
        kept.pop(applier.identity, None)
    return result, kept


def _refuse(found: list[Disagreement], live: JSONObject, name: str, scope: WriteScope) -> None:
    """Raise, unless kubectl conflicts only with its own client-side apply."""
    if name == "kubectl":
        allowed = allowed_conflicts(live, scope.api_version, scope.shape)
        found = [one for one in found if allowed is None or not allowed(one.path)]
    if found:
        raise refusal(found)


def _pruned(result: JSONObject, managers: Managers, last: FieldManager, scope: WriteScope) -> JSONObject:
    """The object without what the manager applied last time but not now, and no other manages."""
    shape = scope.shape_in(last.api_version)
    if shape is None:
        return result
    once = with_named_fields(last.fields, shape)
    whole = remaining = scope.converted(result, scope.api_version, last.api_version)
    pruned = removed(whole, once, shape)
    current = last.api_version
    by_version: dict[str, FieldSet] = {}
    for manager in managers.values():
        by_version[manager.api_version] = union(by_version.get(manager.api_version, LEAF), manager.fields)
    for version in sorted(by_version, key=lambda version: version != last.api_version):
        seen = scope.shape_in(version)
        if seen is None:
            continue
        remaining, pruned = scope.converted(remaining, current, version), scope.converted(pruned, current, version)
        current = version
        present, left = _fields(remaining, seen), _fields(pruned, seen)
        managed = with_named_fields(by_version[version], seen)
        pruned = removed(remaining, difference(present, union(left, managed)), seen)
    left = _fields(scope.converted(pruned, current, last.api_version), shape)
    final = removed(whole, intersection(difference(_fields(whole, shape), left), once), shape)
    return scope.converted(final, last.api_version, scope.api_version)


def _fields(obj: JSONObject, shape: MergeShape) -> FieldSet:
    return with_named_fields(fields_of(obj, shape), shape)
