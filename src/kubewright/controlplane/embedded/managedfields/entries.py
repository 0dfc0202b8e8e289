"""`metadata.managedFields`: which manager owns which fields, since when.

A manager is identified by its name, the operation, the subresource and, for updates, its apiVersion. A manager that
applies is the same in all versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.managedfields.fieldset import LEAF, FieldSet, MalformedFields, parsed, union

Operation: TypeAlias = Literal["Apply", "Update"]
ManagerIdentity: TypeAlias = tuple[str, str, str, str]

MAX_UPDATERS = 10
_OLD_UPDATES = "ancient-changes"


@dataclass(frozen=True, slots=True)
class FieldManager:
    """One entry."""

    name: str
    operation: Operation
    api_version: str
    subresource: str
    time: str
    fields: FieldSet

    @property
    def identity(self) -> ManagerIdentity:
        """What distinguishes this manager from others."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, version, self.subresource

    @property
    def sort_text(self) -> str:
        """The identity as the real server writes it where it sorts managers."""
        name, operation, version, subresource = self.identity
        parts = {"manager": name, "operation": operation, "apiVersion": version, "subresource": subresource}
        return msgspec.json.encode({key: value for key, value in parts.items() if value}).decode()


Managers: TypeAlias = dict[ManagerIdentity, FieldManager]


def stored_managers(entries: JSONValue) -> Managers:
    """The managers in entries that this module wrote."""
    managers: Managers = {}
    if isinstance(entries, list):
        for entry in entries:
            if isinstance(entry, dict):
                fields = cast(FieldSet, entry.get("fieldsV1") or LEAF)
                manager = _manager(entry, fields, text(entry, "time"))
                managers[manager.identity] = manager
    return managers


def given_managers(entries: JSONValue) -> Managers:
    """The managers in entries that a client wrote; MalformedFields when they are not right in every detail."""
    managers: Managers = {}
    if not isinstance(entries, list):
        raise MalformedFields("a list is expected")
    for entry in entries:
        if not isinstance(entry, dict):
            raise MalformedFields("an object is expected")
        if entry.get("operation") not in ("Apply", "Update"):
            raise MalformedFields("operation must be `Apply` or `Update`")
        if not text(entry, "apiVersion"):
            raise MalformedFields("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise MalformedFields("fieldsType must be FieldsV1")
        fields = parsed(entry["fieldsV1"]) if entry.get("fieldsV1") is not None else LEAF
        manager = _manager(entry, fields, _second(text(entry, "time")))
        managers[manager.identity] = manager
    return managers


def _manager(entry: JSONObject, fields: FieldSet, time: str) -> FieldManager:
    return FieldManager(
        name=text(entry, "manager"),
        operation="Apply" if entry.get("operation") == "Apply" else "Update",
        api_version=text(entry, "apiVersion"),
        subresource=text(entry, "subresource"),
        time=time,
        fields=fields,
    )


def _second(time: str) -> str:
    if not time:
        return ""
    try:
        moment = datetime.fromisoformat(time).astimezone(UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='seconds')}Z"
    except (ValueError, OverflowError) as error:
        raise MalformedFields(f"{time!r} is no time") from error


def is_reset(entries: JSONValue) -> bool:
    """Whether a client resets all managers: an empty list, or one that holds one empty entry."""
    if not isinstance(entries, list):
        return False
    return not entries or (len(entries) == 1 and isinstance(entries[0], dict) and not any(entries[0].values()))


def written(managers: Iterable[FieldManager]) -> list[JSONValue]:
    """The entries, in the real server's order."""
    ordered = sorted(
        managers,
        key=lambda manager: (
            manager.operation,
            manager.time,
            manager.name,
            manager.api_version,
            manager.subresource,
        ),
    )
    return [_entry(manager) for manager in ordered]


def _entry(manager: FieldManager) -> JSONObject:
    entry: JSONObject = {}
    if manager.name:
        entry["manager"] = manager.name
    entry["operation"] = manager.operation
    entry["apiVersion"] = manager.api_version
    if manager.time:
        entry["time"] = manager.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = cast(JSONObject, manager.fields)
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def capped(managers: Managers) -> Managers:
    """At most ten managers that update: the fields of the oldest are put together, one manager per version."""
    updaters = [manager for manager in managers.values() if manager.operation == "Update"]
    if len(updaters) <= MAX_UPDATERS:
        return managers
    updaters.sort(key=lambda manager: (manager.time, manager.sort_text))
    result = dict(managers)
    first_of_version: dict[str, FieldManager] = {}
    excess = len(updaters) - MAX_UPDATERS
    for manager in updaters:
        if excess <= 0:
            break
        first = first_of_version.setdefault(manager.api_version, manager)
        if first is manager:
            continue
        bucket = FieldManager(_OLD_UPDATES, "Update", manager.api_version, "", manager.time, LEAF)
        old = result.get(bucket.identity)
        if old is None:
            old = result.pop(first.identity)
        result[bucket.identity] = replace(bucket, fields=union(manager.fields, old.fields))
        # When it is the bucket itself that is put away, its fields are lost. The real server does that too.
        del result[manager.identity]
        excess -= 1
    return result
