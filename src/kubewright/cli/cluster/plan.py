"""What applying some objects would do to a cluster, by dry runs of the server itself.

Objects of an earlier version that the operator no longer has are deleted: a webhook that is no longer served would
block all writes. Definitions are kept, since their objects would go with them, and so are namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Final, TypeVar, cast

from msgspec import Struct

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import decode_json, encode, origin
from kubewright.api.core.v1 import Namespace
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.cli.cluster.conversion import converts, with_dropped_conversion
from kubewright.cli.cluster.labelled import kinds_of, labelled
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.target import FIELD_MANAGER
from kubewright.client import Client
from kubewright.client.errors import Conflict
from kubewright.deployment.layout import position
from kubewright.deployment.operator import Operator

T = TypeVar("T", bound=Object)

_MAX_FIELDS: Final = 3
# What differs between two reads of an object that was not changed, or is not ours to change.
_SERVERS: Final = frozenset({"managedFields", "resourceVersion", "generation", "status"})


class FieldConflicts(KubernetesError):
    """Others own fields that are to be applied with other values."""


class NotOurs(KubernetesError):
    """Others have made objects of the same names, which would be deleted with the operator."""


class BeingDeleted(KubernetesError):
    """An object is to be applied that is going: whatever is applied to it is lost."""


class Verb(StrEnum):
    """What happens to an object."""

    CREATE = "create"
    CHANGE = "change"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    KEEP = "keep"


class PlannedChange(Struct, frozen=True):
    """One object, and what happens to it."""

    verb: Verb
    obj: Object
    note: str = ""

    def __str__(self) -> str:
        return f"{self.verb:<9}  {described(self.obj)}{f': {self.note}' if self.note else ''}"


def action(step: PlannedChange) -> str:
    """What is done, and to which object."""
    return f"{step.verb} {described(step.obj)}"


def described(obj: Object) -> str:
    """The kind, the namespace and the name."""
    return f"{obj.kind} {obj.key}"


def changes(steps: Iterable[PlannedChange]) -> list[PlannedChange]:
    """Those of the steps that write something."""
    return [step for step in steps if step.verb in (Verb.CREATE, Verb.CHANGE, Verb.DELETE)]


async def plan_to_apply(
    client: Client, operator: Operator, objects: Sequence[Object], *, force: bool, line: StatusLine
) -> list[PlannedChange]:
    """What applying them does, in their order. Nothing is written.

    Raises `FieldConflicts` with all fields that others own, and `NotOurs` for objects that others have made, unless
    `force` takes these over; and `BeingDeleted`. The namespace of the operator may be that of others, too.
    """
    foreign: list[Object] = []
    steps: list[PlannedChange] = []
    conflicts: list[str] = []
    namespaces: set[str] = set()
    kinds: set[tuple[str, str]] = set()
    for obj in objects:
        gvk = GroupVersionKind.parse(obj.api_version, obj.kind)
        # No server tries out what is in a namespace that does not exist, or of a kind that is not defined yet.
        if obj.metadata.namespace in namespaces or (gvk.group, gvk.kind) in kinds:
            steps.append(PlannedChange(Verb.CREATE, obj))
            continue
        line.doing(f"try to apply {described(obj)}")
        live = await client.find(obj)
        if live is not None and live.metadata.deletion_timestamp is not None:
            held = f" (finalizers: {', '.join(live.metadata.finalizers)})" if live.metadata.finalizers else ""
            raise BeingDeleted(f"{described(obj)} is being deleted{held}: run this again when it has gone")
        if live is not None and not operator.owns(live):
            if not isinstance(live, Namespace):
                foreign.append(obj)
            elif live.metadata.name == operator.namespace:
                # "restricted" would keep the pods of others from being created.
                steps.append(PlannedChange(Verb.KEEP, live, "it was there before, and is used as it is"))
                continue
        if live is None and isinstance(obj, Namespace):
            namespaces.add(obj.metadata.name)
        elif live is None and isinstance(obj, CustomResourceDefinition):
            kinds.add((obj.spec.group, obj.spec.names.kind))
        tried = with_dropped_conversion(obj, live)
        try:
            result = await client.apply(tried, force=force, dry_run=True)
        except Conflict as error:
            if not error.status.causes:
                raise
            conflicts += conflict_lines(obj, error)
            continue
        fields = _changed_fields(_value(live), _value(result)) if live is not None else []
        fields += ["spec.conversion"] if tried is not obj else []
        verb = Verb.CREATE if live is None else Verb.CHANGE if fields else Verb.UNCHANGED
        steps.append(PlannedChange(verb, obj, _listed(fields)))
    if foreign and not force:
        is_kind = any(isinstance(obj, CustomResourceDefinition) for obj in foreign)
        raise NotOurs(
            f"not made for {operator.name}, by their labels: {', '.join(map(described, foreign))}; "
            + ("if a definition belongs to another program, write @resource(..., external=True); " if is_kind else "")
            + "rename what this operator has, or take them over with --force-conflicts, to be deleted with it"
        )
    if conflicts:
        raise FieldConflicts(conflict_message(conflicts))
    return steps


def conflict_lines(obj: Object, error: Conflict) -> list[str]:
    """A line for each field that another manager owns."""
    return [f"{described(obj)}: {cause.field}: {cause.message}" for cause in error.status.causes]


def conflict_message(lines: Iterable[str]) -> str:
    """The error for such lines, with what can be done."""
    listed = "\n".join(f"  {line}" for line in lines)
    return (
        f"other managers own fields that would be changed:\n{listed}\n"
        "take them over with --force-conflicts, or let the others give them up"
    )


async def plan_to_prune(
    client: Client, operator: Operator, objects: Sequence[Object], line: StatusLine
) -> list[PlannedChange]:
    """What is deleted because an earlier version had it, and what is kept though this one does not have it."""
    line.doing("look for objects of earlier versions")
    present = {(type(obj), obj.key) for obj in objects}
    steps: list[PlannedChange] = []
    async for found in labelled(client, operator, kinds_of(objects)):
        if (type(found), found.key) in present or not _applied_fields(_value(found)):
            continue
        if isinstance(found, CustomResourceDefinition | Namespace):
            unless = "its objects are not" if isinstance(found, CustomResourceDefinition) else "nothing in it is"
            note = f"this operator no longer has it{_unconverted(found)}; delete it when {unless} needed"
            steps.append(PlannedChange(Verb.KEEP, found, note))
        else:
            steps.append(PlannedChange(Verb.DELETE, found, "this operator no longer has it"))
    return sorted(steps, key=lambda step: position(step.obj), reverse=True)


def _unconverted(kept: Object) -> str:
    """What no longer works of a definition whose webhook is no longer served."""
    if not isinstance(kept, CustomResourceDefinition) or not converts(kept):
        return ""
    stored = next(version.name for version in kept.spec.versions if version.storage)
    return f", and no longer converts it: requests that need another version than {stored} fail"


def former_deployments(operator: Operator, steps: Iterable[PlannedChange]) -> list[PlannedChange]:
    """Those steps that delete the operator itself, from namespaces that it was deployed to before."""
    return [
        step
        for step in steps
        if step.verb is Verb.DELETE
        and isinstance(step.obj, Deployment)
        and step.obj.metadata.name == operator.name
        and step.obj.metadata.namespace != operator.namespace
    ]


def differences(before: JSONValue, after: JSONValue, path: str = "") -> Iterator[str]:
    """The paths of the fields that differ, without those that the server keeps."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            where = f"{path}.{name}" if path else name
            if name not in _SERVERS or path not in ("", "metadata"):
                yield from differences(before.get(name), after.get(name), where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif before != after:
        yield path


def _changed_fields(before: JSONObject, after: JSONObject) -> list[str]:
    """The fields that differ; where only their owners do, that."""
    owners = [] if _applied_fields(before) == _applied_fields(after) else ["metadata.managedFields"]
    return list(differences(before, after)) or owners


def _applied_fields(obj: JSONObject) -> JSONValue:
    """The fields that commands have applied to an object; None if they have not."""
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and (entry.get("manager"), entry.get("operation")) == (FIELD_MANAGER, "Apply"):
            return entry.get("fieldsV1")
    return None


def _value(obj: Object) -> JSONObject:
    return cast(JSONObject, decode_json(origin(obj) or encode(obj)))


def _listed(fields: Sequence[str]) -> str:
    shown = ", ".join(islice(fields, _MAX_FIELDS))
    more = len(fields) - _MAX_FIELDS
    return f"{shown} and {more} more" if more > 0 else shown
