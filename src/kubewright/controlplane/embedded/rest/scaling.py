"""The scale subresource: the number of replicas of anything that scales, as `autoscaling/v1 Scale`.

A Scale is not stored. It is made from its object, changed like any object, and its replicas are written back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.decoding import decode_body
from kubewright.controlplane.embedded.apimachinery.document import at, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.status import (
    StatusError,
    bad_request,
    invalid,
    invalid_value,
    method_not_allowed,
)
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.http.negotiation import negotiate
from kubewright.controlplane.embedded.managedfields import apply as apply_configuration
from kubewright.controlplane.embedded.managedfields import (
    empty_object,
    entries_after_scale,
    scale_entries,
    track_update,
)
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import check_name, check_uid
from kubewright.controlplane.embedded.rest.patching import (
    APPLY,
    JSON,
    applied_configuration,
    check_patch_type,
    decode_patch,
)
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.rest.unknown import in_order, undecodable_patch
from kubewright.controlplane.embedded.rest.writing import begin_from, modified, replace
from kubewright.controlplane.embedded.storage.store import StoredObject
from kubewright.controlplane.embedded.tables import table_of

_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Answer a request for the scale of an object."""
    entry = get(call)
    match call.target.verb:
        case "get":
            _check_replicas(call, entry)
            scaled = entry.value
        case "update":
            scaled = _updated(call, entry, _body(call, request))
        case "patch":
            scaled = _patched(call, entry, request)
        case _:
            raise method_not_allowed(call.resource.plural, call.resource.gvk.group, request.method)
    shown = scale_of(call, scaled)
    wanted = negotiate(request.header("accept"))
    if wanted.form != "table" or call.resource.custom:
        return json_response(shown)
    resource = dataclasses.replace(call.resource, gvk=_SCALE, plural="scales")
    scales = dataclasses.replace(call, resource=resource)
    entry = StoredObject(entry.key, shown, entry.revision, entry.created)
    return HTTPResponse(200, b"".join(table_of(scales, [entry], None, wanted.version)))


def _check_replicas(call: Call, entry: StoredObject) -> None:
    """An object without replicas, which only custom resources can be, has no scale."""
    path = _paths(call)[0]
    if call.resource.custom and at(entry.value, *path) is None:
        why = f'the spec replicas field ".{".".join(path)}" does not exist'
        details: JSONObject = {"causes": [{"message": why}]}
        raise StatusError(500, "InternalError", f"Internal error occurred: {why}", details=details)


def _body(call: Call, request: HTTPRequest) -> JSONObject:
    body = decode_body(request.header("content-type"), request.body, protobuf=decode_protobuf)
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    api_version, kind = text(body, "apiVersion") or _SCALE.api_version, text(body, "kind") or _SCALE.kind
    group, _, version = api_version.rpartition("/")
    why = _wrong_type(body)
    if (api_version, kind) != (_SCALE.api_version, _SCALE.kind):
        known = call.services.catalog.find_kind(group, version, kind) is not None
        why = (
            f"converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"
            if known
            else f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if why:
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a Scale: {why}')
    check_name(call, body)
    return body


def _wrong_type(wanted: JSONObject) -> str:
    """Why something is no Scale; empty when it may be one."""
    replicas = at(wanted, "spec", "replicas")
    if replicas is None or (isinstance(replicas, int) and not isinstance(replicas, bool)):
        return ""
    return f"json: cannot unmarshal {json_kind(replicas)} into Go struct field ScaleSpec.spec.replicas of type int32"


def _patched(call: Call, entry: StoredObject, request: HTTPRequest) -> JSONObject:
    content_type = request.header("content-type").partition(";")[0].strip()
    check_patch_type(call, content_type)
    complaints: list[str] = []
    patch = decode_patch(content_type, request.body, complaints)
    if content_type == APPLY:
        return _applied(call, entry, applied_configuration(patch, _SCALE, "", complaints))
    current = scale_of(call, entry.value)
    wanted = apply_json_patch(current, patch) if content_type == JSON else apply_merge_patch(current, patch)
    if why := _wrong_type(wanted):
        raise undecodable_patch(in_order(wanted), why)
    return _updated(call, entry, wanted)


def _updated(call: Call, entry: StoredObject, wanted: JSONObject) -> JSONObject:
    before = _managed(call, entry)
    if at(wanted, "spec", "replicas") == 0:
        # Go leaves it out, so a zero has no manager.
        mapping(wanted, "spec").pop("replicas")
    track_update(
        before,
        wanted,
        manager=call.manager,
        api_version=_SCALE.api_version,
        subresource="scale",
        time=call.services.now(),
        structure=structure_of(Scale),
        empty=empty_object(Scale),
    )
    return _written(call, entry, wanted)


def _applied(call: Call, entry: StoredObject, configuration: JSONObject) -> JSONObject:
    wanted = apply_configuration(
        _managed(call, entry),
        configuration,
        manager=call.query.text("fieldManager"),
        force=call.query.flag("force"),
        api_version=_SCALE.api_version,
        subresource="scale",
        time=call.services.now(),
        structure=structure_of(Scale),
        empty=empty_object(Scale),
    )
    if call.resource.custom:
        # The real server refuses it, after it has checked for conflicts.
        raise StatusError(
            500,
            "",
            f"failed to convert new object (/{call.target.name}; autoscaling/v1, Kind=Scale) to proper version: "
            "request to convert CR to an invalid group/version: autoscaling/v1",
        )
    return _written(call, entry, wanted)


def _managed(call: Call, entry: StoredObject) -> JSONObject:
    """The Scale of an object, with who manages it."""
    current = scale_of(call, entry.value)
    entries = scale_entries(at(entry.value, "metadata", "managedFields"), replicas=_replicas_by_version(call))
    if entries:
        inside(current, "metadata")["managedFields"] = entries
    return current


def _written(call: Call, entry: StoredObject, wanted: JSONObject) -> JSONObject:
    """The object after its Scale was changed."""
    replicas = at(wanted, "spec", "replicas")
    if not isinstance(replicas, int):
        replicas = 0
    if replicas < 0 and not call.resource.custom:
        why = "must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", call.target.name, [invalid_value("spec.replicas", replicas, why)])
    check_uid(call, text(wanted, "metadata", "uid"), entry.value)
    revision = text(wanted, "metadata", "resourceVersion")
    if revision and revision != text(entry.value, "metadata", "resourceVersion"):
        raise modified(call)
    new = begin_from(entry)
    set_replicas(call, new, replicas)
    entries = entries_after_scale(
        at(entry.value, "metadata", "managedFields"),
        at(wanted, "metadata", "managedFields"),
        api_version=call.resource.gvk.api_version,
        replicas=_replicas_by_version(call),
    )
    if entries:
        inside(new, "metadata")["managedFields"] = entries
    return replace(call, new, entry, tracked=False).value


def set_replicas(call: Call, obj: JSONObject, replicas: int) -> None:
    """Set the desired replicas of an object that scales."""
    *path, last = _paths(call)[0]
    inside(obj, *path)[last] = replicas


def _replicas_by_version(call: Call) -> Mapping[str, Sequence[str] | None]:
    """Where each version of a kind keeps its replicas."""
    resource = call.resource
    if resource.definition is None:
        return {resource.gvk.api_version: ("spec", "replicas")}
    return {
        f"{resource.gvk.group}/{text(version, 'name')}": _steps(
            text(version, "subresources", "scale", "specReplicasPath")
        )
        for version in items(resource.definition, "spec", "versions")
    }


def _paths(call: Call) -> tuple[list[str], list[str], list[str]]:
    """The paths of the desired replicas, the observed ones, and their selector."""
    definition = call.resource.definition
    if definition is None:
        return ["spec", "replicas"], ["status", "replicas"], ["spec", "selector"]
    version = next(
        (version for version in items(definition, "spec", "versions") if text(version, "name") == call.target.version),
        None,
    )
    found = mapping(version, "subresources", "scale")
    return (
        _steps(text(found, "specReplicasPath")),
        _steps(text(found, "statusReplicasPath")),
        _steps(text(found, "labelSelectorPath")),
    )


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def scale_of(call: Call, obj: JSONObject) -> JSONObject:
    """The Scale of an object."""
    wanted, actual, selector = _paths(call)
    metadata = mapping(obj, "metadata")
    replicas, running = at(obj, *wanted), at(obj, *actual)
    status: JSONObject = {"replicas": running if isinstance(running, int) else 0}
    selector_text = _selector_text(at(obj, *selector)) if selector else ""
    if selector_text:
        status["selector"] = selector_text
    return {
        "kind": _SCALE.kind,
        "apiVersion": _SCALE.api_version,
        "metadata": {name: metadata[name] for name in _COPIED if name in metadata},
        "spec": {"replicas": replicas} if isinstance(replicas, int) and replicas else {},
        "status": status,
    }


def _selector_text(selector: JSONValue) -> str:
    if isinstance(selector, str):
        return selector
    labels = mapping(selector, "matchLabels")
    parts = [f"{name}={value}" for name, value in sorted(labels.items())]
    for expression in items(selector, "matchExpressions"):
        key, operator = text(expression, "key"), text(expression, "operator")
        values = ",".join(sorted(str(value) for value in items(expression, "values")))
        parts.append(
            {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}.get(operator, f"!{key}")
        )
    return ",".join(parts)
