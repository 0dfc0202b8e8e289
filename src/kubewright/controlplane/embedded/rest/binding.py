"""Binding: assigns a pod to a node, once."""

from __future__ import annotations

from dataclasses import replace

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    bad_request,
    conflict,
    no_such_resource,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.bodies import read_object
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import check_precondition
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.rest.writing import modified
from kubewright.controlplane.embedded.storage.store import RevisionConflict


def bind(call: Call, request: HTTPRequest) -> HTTPResponse:
    """A binding sent to the pod that it is about."""
    binding = read_object(replace(call, resource=_resource(call, "bindings")), request)
    if text(binding, "metadata", "name") != call.target.name:
        raise bad_request("name in URL does not match name in Binding object")
    return _bound(call, binding)


def bind_named(call: Call, request: HTTPRequest) -> HTTPResponse:
    """The older way: a binding that is created in a namespace, and names the pod."""
    binding = read_object(call, request)
    target = replace(call.target, resource="pods", subresource="binding", name=text(binding, "metadata", "name"))
    return _bound(replace(call, resource=_resource(call, "pods"), target=target), binding)


def _bound(call: Call, binding: JSONObject) -> HTTPResponse:
    if errors := _wrong_with(binding):
        messages = [str(error) for error in errors]
        raise StatusError(500, "", messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
    call.services.admission.check(call, binding, None, "CREATE")
    entry = get(call)
    check_precondition(call, "UID", text(binding, "metadata", "uid"), entry.value)
    check_precondition(call, "ResourceVersion", text(binding, "metadata", "resourceVersion"), entry.value)
    if why := _unassignable(call.target.name, entry.value):
        raise conflict("pods/binding", "", call.target.name, why)
    try:
        if not call.query.dry_run:
            call.services.store.update(entry.key, _assigned(call, entry.value, binding), expected=entry.revision)
    except RevisionConflict:
        raise modified(call) from None
    return json_response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _resource(call: Call, plural: str) -> ResourceType:
    found = call.services.catalog.find("", "v1", plural)
    if found is None:
        raise no_such_resource()
    return found


def _wrong_with(binding: JSONObject) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = text(binding, "target", "kind")
    if kind not in ("", "Node"):
        errors.append(not_supported("target.kind", kind, ["Node", "<empty>"]))
    if not text(binding, "target", "name"):
        errors.append(required("target.name"))
    return errors


def _unassignable(name: str, pod: JSONObject) -> str:
    if text(pod, "metadata", "deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := text(pod, "spec", "nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if items(pod, "spec", "schedulingGates") else ""


def _assigned(call: Call, pod: JSONObject, binding: JSONObject) -> JSONObject:
    new = copied_object(pod)
    inside(new, "spec")["nodeName"] = text(binding, "target", "name")
    for name in ("annotations", "labels"):
        if given := mapping(binding, "metadata", name):
            inside(new, "metadata", name).update(given)
    status = inside(new, "status")
    status.pop("nominatedNodeName", None)
    others = [condition for condition in items(status, "conditions") if text(condition, "type") != "PodScheduled"]
    scheduled: JSONObject = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": call.services.now(),
    }
    status["conditions"] = [*others, scheduled]
    return new
