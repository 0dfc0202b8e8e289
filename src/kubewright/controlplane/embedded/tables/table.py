"""`meta.k8s.io Table`: columns, and one row of cells per object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, text
from kubewright.controlplane.embedded.apimachinery.status import bad_request, invalid_value
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.presentation import WatchPresentation
from kubewright.controlplane.embedded.rest.reading import Listed, json_list
from kubewright.controlplane.embedded.storage.stored_object import StoredObject
from kubewright.controlplane.embedded.tables import cluster, network, policy, storage, workloads
from kubewright.controlplane.embedded.tables.custom import custom_printer
from kubewright.controlplane.embedded.tables.pods import POD
from kubewright.controlplane.embedded.tables.printer import CREATED, Printer

Include: TypeAlias = Literal["None", "Metadata", "Object"]

_PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "pods"): POD,
    **cluster.PRINTERS,
    **network.PRINTERS,
    **policy.PRINTERS,
    **storage.PRINTERS,
    **workloads.PRINTERS,
}
_encode = msgspec.json.Encoder().encode
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def printer_for(resource: ResourceType) -> Printer:
    """How the objects of a resource are shown: in the same columns in each version, unless it is a custom one."""
    if resource.custom:
        return custom_printer(resource)
    return _PRINTERS.get((resource.gvk.group, resource.plural), CREATED)


def table_of(call: Call, entries: Sequence[StoredObject], listed: Listed | None, version: str) -> Iterator[bytes]:
    """Objects as a table, in pieces: of a list with its position, or of a single object without.

    Raises for a bad query, before the first piece.
    """
    include, printer, now = _include(call), printer_for(call.resource), call.services.clock()
    metadata: JSONObject = {}
    if listed is not None:
        if listed.revision:
            metadata["resourceVersion"] = str(listed.revision)
        if listed.continue_:
            metadata["continue"] = listed.continue_
            if listed.remaining:
                metadata["remainingItemCount"] = listed.remaining
    elif entries and (revision := text(entries[0].value, "metadata", "resourceVersion")):
        metadata["resourceVersion"] = revision
    opening = msgspec.json.encode(_table(metadata, _definitions(printer), [], version)).removesuffix(b"[]}")
    rows = (_encode(_row(call.resource, printer, entry.value, include, now, version)) for entry in entries)
    return json_list(opening, rows, b"}\n")


def watch_presentation(call: Call, version: str) -> WatchPresentation:
    """How the events of a watch are rendered: each is a table of one row, the columns are in the first event only."""
    include, printer, clock = _include(call), printer_for(call.resource), call.services.clock
    resource = call.resource

    def rendered(entry: StoredObject, columns: list[JSONValue] | None) -> bytes:
        metadata: JSONObject = {"resourceVersion": text(entry.value, "metadata", "resourceVersion")}
        row = _row(resource, printer, entry.value, include, clock(), version)
        return msgspec.json.encode(_table(metadata, columns, [row], version))

    return WatchPresentation(
        lambda entry: rendered(entry, None),
        # A row says how old its object is, by the second.
        lambda: (resource, include, version, int(clock())),
        first=lambda entry: rendered(entry, _definitions(printer)),
    )


def _include(call: Call) -> Include:
    value = call.query.text("includeObject")
    match value:
        case "":
            return "Metadata"
        case "None" | "Metadata" | "Object":
            return value
    wrong = invalid_value("includeObject", value, "must be 'Metadata', 'Object', 'None', or empty")
    raise bad_request(f"Unable to convert to Table as requested: {wrong}")


def _definitions(printer: Printer) -> list[JSONValue]:
    return [column.definition() for column in printer.columns]


def _table(metadata: JSONObject, columns: list[JSONValue] | None, rows: list[JSONValue], version: str) -> JSONObject:
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _row(
    resource: ResourceType, printer: Printer, obj: JSONObject, include: Include, now: float, version: str
) -> JSONObject:
    row: JSONObject = {"cells": printer.cells(obj, now)}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        row["conditions"] = conditions
    # The mark of the end of the initial events has to arrive whatever is included.
    is_mark = at(obj, "metadata", "annotations", _INITIAL_EVENTS_END) is not None
    if include == "Object":
        row["object"] = {**_kind(resource), **obj}
    elif include == "Metadata" or is_mark:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{version}",
            "metadata": obj.get("metadata"),
        }
    else:
        row["object"] = None
    return row


def _kind(resource: ResourceType) -> JSONObject:
    if resource.custom:
        return {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
    return {"kind": resource.gvk.kind, "apiVersion": resource.gvk.api_version}
