"""Rows of what a cluster consists of: nodes, namespaces, configuration, leases, events and devices."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.tables.durations import UNKNOWN, since
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    aged,
    name_of,
    number,
    wide,
)

_NONE = "<none>"
_ROLE_PREFIX = "node-role.kubernetes.io/"


def _node(obj: JSONObject, now: float) -> Cells:
    kernel, architecture = _node_info(obj, "kernelVersion"), text(obj, "status", "nodeInfo", "architecture")
    return [
        name_of(obj),
        _node_status(obj),
        _node_roles(obj) or _NONE,
        age_of(obj, now),
        text(obj, "status", "nodeInfo", "kubeletVersion"),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        _node_info(obj, "osImage"),
        f"{kernel} ({architecture})" if architecture else kernel,
        _node_info(obj, "containerRuntimeVersion"),
    ]


def _node_status(obj: JSONObject) -> str:
    # Of conditions of the same type, which should not be, the last counts.
    ready = {text(condition, "type"): text(condition, "status") for condition in items(obj, "status", "conditions")}
    status = "Unknown"
    if "Ready" in ready:
        status = "Ready" if ready["Ready"] == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(obj, "spec", "unschedulable") is True else status


def _node_roles(obj: JSONObject) -> str:
    roles = set()
    for name, value in mapping(obj, "metadata", "labels").items():
        if name.startswith(_ROLE_PREFIX):
            roles.add(name.removeprefix(_ROLE_PREFIX))
        elif name == "kubernetes.io/role":
            roles.add(str(value))
    return ",".join(sorted(roles - {""}))


def _node_info(obj: JSONObject, name: str) -> str:
    return text(obj, "status", "nodeInfo", name) or UNKNOWN


def _node_address(obj: JSONObject, kind: str) -> str:
    addresses = items(obj, "status", "addresses")
    found = next((address for address in addresses if text(address, "type") == kind), None)
    return _NONE if found is None else text(found, "address")


def _namespace(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), text(obj, "status", "phase"), age_of(obj, now)]


def _config_map(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), len(mapping(obj, "data")) + len(mapping(obj, "binaryData")), age_of(obj, now)]


def _secret(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), text(obj, "type"), len(mapping(obj, "data")), age_of(obj, now)]


def _lease(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), text(obj, "spec", "holderIdentity"), age_of(obj, now)]


def _runtime_class(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), text(obj, "handler"), age_of(obj, now)]


def _event(obj: JSONObject, now: float) -> Cells:
    """Events are the same objects in two groups, with other names for some fields."""
    first = since(_either(obj, "firstTimestamp", "deprecatedFirstTimestamp"), now)
    if first == UNKNOWN:
        first = since(at(obj, "eventTime"), now)
    last = since(_either(obj, "lastTimestamp", "deprecatedLastTimestamp"), now)
    if last == UNKNOWN:
        last = first
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    series = at(obj, "series")
    if series is not None:
        last, count = since(at(series, "lastObservedTime"), now), number(series, "count")
    about = _either(obj, "involvedObject", "regarding")
    kind, name = text(about, "kind").lower(), text(about, "name")
    source = _either(obj, "source", "deprecatedSource")
    component = text(source, "component") or str(_either(obj, "reportingComponent", "reportingController") or "")
    host = text(source, "host") or text(obj, "reportingInstance")
    return [
        last,
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        f"{component}, {host}" if host else component,
        str(_either(obj, "message", "note") or "").strip(),
        first,
        count,
        name_of(obj),
    ]


def _either(obj: JSONObject, name: str, other: str) -> JSONValue:
    return obj.get(name) or obj.get(other)


def _component_status(obj: JSONObject, now: float) -> Cells:
    conditions = items(obj, "conditions")
    healthy = next((condition for condition in conditions if text(condition, "type") == "Healthy"), None)
    status = "Unknown"
    if healthy is not None:
        status = "Healthy" if text(healthy, "status") == "True" else "Unhealthy"
    return [name_of(obj), status, text(healthy, "message"), text(healthy, "error")]


def _api_service(obj: JSONObject, now: float) -> Cells:
    service = at(obj, "spec", "service")
    conditions = items(obj, "status", "conditions")
    available = next((condition for condition in conditions if text(condition, "type") == "Available"), None)
    status, reason = text(available, "status") or "Unknown", text(available, "reason")
    return [
        name_of(obj),
        "Local" if service is None else f"{text(service, 'namespace')}/{text(service, 'name')}",
        status if status == "True" or not reason else f"{status} ({reason})",
        age_of(obj, now),
    ]


def _resource_claim(obj: JSONObject, now: float) -> Cells:
    is_deleted, allocation = bool(text(obj, "metadata", "deletionTimestamp")), at(obj, "status", "allocation")
    states = ["deleted"] if is_deleted else []
    if allocation is not None:
        states.append("allocated")
        if items(obj, "status", "reservedFor"):
            states.append("reserved")
    elif not is_deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age_of(obj, now)]


def _resource_slice(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        text(obj, "spec", "nodeName"),
        text(obj, "spec", "driver"),
        text(obj, "spec", "pool", "name"),
        age_of(obj, now),
    ]


_AGED = Printer((NAME, AGE), aged)
_EVENT = Printer(
    (
        PrinterColumn("Last Seen"),
        PrinterColumn("Type"),
        PrinterColumn("Reason"),
        PrinterColumn("Object"),
        wide("Subobject"),
        wide("Source"),
        PrinterColumn("Message"),
        wide("First Seen"),
        wide("Count"),
        PrinterColumn("Name", format="name", priority=1),
    ),
    _event,
)

PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "componentstatuses"): Printer(
        (NAME, PrinterColumn("Status"), PrinterColumn("Message"), PrinterColumn("Error")), _component_status
    ),
    ("", "configmaps"): Printer((NAME, PrinterColumn("Data"), AGE), _config_map),
    ("", "events"): _EVENT,
    ("", "namespaces"): Printer((NAME, PrinterColumn("Status"), AGE), _namespace),
    ("", "nodes"): Printer(
        (
            NAME,
            PrinterColumn("Status"),
            PrinterColumn("Roles"),
            AGE,
            PrinterColumn("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        _node,
    ),
    ("", "secrets"): Printer((NAME, PrinterColumn("Type"), PrinterColumn("Data"), AGE), _secret),
    ("", "serviceaccounts"): _AGED,
    ("apiregistration.k8s.io", "apiservices"): Printer(
        (NAME, PrinterColumn("Service"), PrinterColumn("Available"), AGE), _api_service
    ),
    ("coordination.k8s.io", "leases"): Printer((NAME, PrinterColumn("Holder"), AGE), _lease),
    ("events.k8s.io", "events"): _EVENT,
    ("node.k8s.io", "runtimeclasses"): Printer((NAME, PrinterColumn("Handler"), AGE), _runtime_class),
    ("resource.k8s.io", "deviceclasses"): _AGED,
    ("resource.k8s.io", "resourceclaims"): Printer((NAME, PrinterColumn("State"), AGE), _resource_claim),
    ("resource.k8s.io", "resourceclaimtemplates"): _AGED,
    ("resource.k8s.io", "resourceslices"): Printer(
        (NAME, PrinterColumn("Node"), PrinterColumn("Driver"), PrinterColumn("Pool"), AGE), _resource_slice
    ),
}
