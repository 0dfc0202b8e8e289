"""Events. `v1` and `events.k8s.io/v1` are two views of one store, which holds the former.

`to_core` and `from_core` convert between them; the rules of the newer view are stricter.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, required
from kubewright.controlplane.embedded.builtins.names import dns_subdomain, qualified_name
from kubewright.controlplane.embedded.builtins.values import Errors, StructError, matching, number, unchanged
from kubewright.controlplane.embedded.registry.resources import Strategy

# Fields that are called differently: in events.k8s.io/v1, and in v1.
_RENAMED: Mapping[str, str] = {
    "regarding": "involvedObject",
    "deprecatedSource": "source",
    "note": "message",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_RENAMED_BACK: Mapping[str, str] = {old: new for new, old in _RENAMED.items()}
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_INTERNAL_REFERENCE = ("Kind", "Namespace", "Name", "UID", "APIVersion", "ResourceVersion", "FieldPath")


def to_core(event: JSONObject) -> JSONObject:
    """An event of events.k8s.io/v1 as v1 has it. Nothing nested is copied."""
    core: JSONObject = {_RENAMED.get(name, name): value for name, value in event.items()}
    if "apiVersion" in core:
        core["apiVersion"] = "v1"
    # Go writes these whether they are set or not, and only in v1.
    core.setdefault("involvedObject", {})
    core.setdefault("source", {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        core.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        core.setdefault(name, "")
    return core


def from_core(event: JSONObject) -> JSONObject:
    """An event of v1 as events.k8s.io/v1 has it. Nothing nested is copied."""
    newer: JSONObject = {_RENAMED_BACK.get(name, name): value for name, value in event.items()}
    if "apiVersion" in newer:
        newer["apiVersion"] = "events.k8s.io/v1"
    for name in ("reportingController", "reportingInstance"):
        if not newer.get(name):
            newer.pop(name, None)
    if not newer.get("regarding"):
        newer["regarding"] = {}
    return newer


def _validate_core(event: JSONObject, reporter: str = "reportingComponent") -> Errors:
    errors: Errors = []
    namespace, about = text(event, "metadata", "namespace"), text(event, "involvedObject", "namespace")
    mismatch = invalid_value("involvedObject.namespace", about, "does not match event.namespace")
    if event.get("eventTime") is None:
        if about != namespace and (about or namespace not in ("", "default")):
            errors.append(mismatch)
    else:
        if not about and namespace not in ("default", "kube-system"):
            errors.append(mismatch)
        controller = text(event, "reportingComponent")
        if not controller:
            errors.append(required(reporter))
        errors += matching(reporter, controller, qualified_name)
        for field, max_length in (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)):
            value = text(event, field)
            if not value and field != "message":
                errors.append(required(field))
            elif len(value.encode()) > max_length:
                errors.append(invalid_value(field, "", f"can have at most {max_length} characters"))
    return errors + matching("namespace", namespace, dns_subdomain)


def _series(event: JSONObject) -> Errors:
    series = event.get("series")
    if not isinstance(series, dict):
        return []
    errors: Errors = []
    if number(series.get("count")) < 2:
        errors.append(invalid_value("series.count", "", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(required("series.lastObservedTime"))
    return errors


def _validate_newer(newer: JSONObject) -> Errors:
    event = to_core(newer)
    errors = _validate_core(event, "reportingController") + _series(event)
    if event.get("eventTime") is None:
        errors.append(required("eventTime"))
    kind = text(event, "type")
    if kind not in ("Normal", "Warning"):
        errors.append(invalid_value("type", "", f"has invalid value: {kind}"))
    errors += [
        invalid_value(field, "", "needs to be unset")
        for field in ("firstTimestamp", "lastTimestamp", "count", "source")
        if event.get(field)
    ]
    return errors


def _validate_newer_update(new: JSONObject, old: JSONObject) -> Errors:
    event, before = to_core(new), to_core(old)
    errors = _validate_core(event, "reportingController")
    if event.get("series") != before.get("series"):
        errors += _series(event)
    if mapping(event, "involvedObject") != mapping(before, "involvedObject"):
        internal: JSONObject = {
            shown: text(event, "involvedObject", name)
            for name, shown in zip(_REFERENCE, _INTERNAL_REFERENCE, strict=True)
        }
        errors.append(StructError("FieldValueInvalid", "involvedObject", internal, "field is immutable"))
    for field in ("reason", "message"):
        errors += unchanged(field, event.get(field, ""), before.get(field, ""))
    for field in ("source", "firstTimestamp", "lastTimestamp", "count", "type", "eventTime", "action", "related"):
        errors += unchanged(field, event.get(field), before.get(field))
    errors += unchanged("reportingController", event.get("reportingComponent"), before.get("reportingComponent"))
    return errors + unchanged("reportingInstance", event.get("reportingInstance"), before.get("reportingInstance"))


def _core_fields(event: JSONObject) -> Mapping[str, str]:
    about = mapping(event, "involvedObject")
    controller = text(event, "reportingComponent")
    return {
        **{f"involvedObject.{name}": text(about, name) for name in _REFERENCE},
        "reason": text(event, "reason"),
        "reportingComponent": controller,
        "source": text(event, "source", "component") or controller,
        "type": text(event, "type"),
    }


def _newer_fields(event: JSONObject) -> Mapping[str, str]:
    about = mapping(event, "regarding")
    return {
        **{f"regarding.{name}": text(about, name) for name in _REFERENCE},
        "reason": text(event, "reason"),
        "reportingController": text(event, "reportingController"),
        "type": text(event, "type"),
    }


CORE_EVENT = Strategy(
    validate=_validate_core,
    validate_update=lambda new, old: _validate_core(new),
    selectable_fields=_core_fields,
    selectable=frozenset(_core_fields({})),
    create_on_update=True,
)
NEWER_EVENT = Strategy(
    validate=_validate_newer,
    validate_update=_validate_newer_update,
    selectable_fields=_newer_fields,
    selectable=frozenset(_newer_fields({})),
    create_on_update=True,
)
