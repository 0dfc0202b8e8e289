"""Endpoints below an object that are not just a part of it: binding, eviction, tokens, finalize, logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_options
from typing import TypeAlias

from kubewright.controlplane.embedded.decoding import decode_body
from kubewright.controlplane.embedded.document import (
    JSONObject,
    at,
    copied_object,
    inside,
    items,
    mapping,
    text,
)
from kubewright.controlplane.embedded.exchange import Request, Response, json_response
from kubewright.controlplane.embedded.managedfields import same_but_for_times, track_update
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.rest import streams
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.deleting import delete, options_of
from kubewright.controlplane.embedded.rest.patching import JSON
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.rest.scaling import scale
from kubewright.controlplane.embedded.rest.token_requests import token
from kubewright.controlplane.embedded.rest.tracking import tracking
from kubewright.controlplane.embedded.rest.writing import begin_from, modified
from kubewright.controlplane.embedded.status import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.storage import Conflict

Handler: TypeAlias = Callable[[Call, Request], Response]


def _body(request: Request) -> JSONObject:
    body = decode_body(request.header("content-type"), request.body, protobuf=decode_protobuf)
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    return body


# Pods


def bind(call: Call, request: Request) -> Response:
    """Place a pod on a node, once."""
    body = _body(request)
    node, kind = text(body, "target", "name"), text(body, "target", "kind")
    if kind not in ("", "Node"):
        raise invalid("Binding", "", call.target.name, [invalid_value("target.kind", kind, 'must be empty or "Node"')])
    if not node:
        raise invalid("Binding", "", call.target.name, [required("target.name")])
    entry = get(call)
    bound = text(entry.value, "spec", "nodeName")
    if text(entry.value, "metadata", "deletionTimestamp"):
        why = f"pod {call.target.name} is being deleted, cannot be assigned to a host"
        raise conflict("pods/binding", "", call.target.name, why)
    if bound:
        why = f'pod {call.target.name} is already assigned to node "{bound}"'
        raise conflict("pods/binding", "", call.target.name, why)
    new = copied_object(entry.value)
    inside(new, "spec")["nodeName"] = node
    status = inside(new, "status")
    others = [entry for entry in items(status, "conditions") if text(entry, "type") != "PodScheduled"]
    scheduled: JSONObject = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": call.services.now(),
        "observedGeneration": at(new, "metadata", "generation"),
    }
    status["conditions"] = [*others, scheduled]
    annotations = mapping(body, "metadata", "annotations")
    if annotations:
        inside(new, "metadata", "annotations").update(annotations)
    try:
        if not call.query.dry_run:
            call.services.store.update(entry.key, new, expected=entry.revision)
    except Conflict:
        raise modified(call) from None
    return json_response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def evict(call: Call, request: Request) -> Response:
    """Delete a pod, unless a disruption budget says not now."""
    body = _body(request)
    entry = get(call)
    blocking = _blocking_budget(call, entry.value)
    if blocking:
        raise StatusError(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
            details={
                "causes": [
                    {
                        "reason": "DisruptionBudget",
                        "message": f"The disruption budget {blocking} needs more healthy pods",
                    }
                ]
            },
        )
    options = options_of(call, mapping(body, "deleteOptions") or None)
    # A dry run may be asked for in either place.
    delete(call, replace_options(options, dry_run=options.dry_run or call.query.dry_run))
    return json_response({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)


def _blocking_budget(call: Call, pod: JSONObject) -> str:
    budgets = call.services.catalog.find("policy", "v1", "poddisruptionbudgets")
    if budgets is None or text(pod, "status", "phase") in ("Succeeded", "Failed", "Pending", ""):
        return ""
    labels = mapping(pod, "metadata", "labels")
    for entry in call.services.store.range(f"{budgets.prefix}{call.target.namespace}/").entries:
        wanted = mapping(entry.value, "spec", "selector", "matchLabels")
        allowed = at(entry.value, "status", "disruptionsAllowed")
        if wanted.items() <= labels.items() and not (isinstance(allowed, int) and allowed > 0):
            return text(entry.value, "metadata", "name")
    return ""


def log(call: Call, request: Request) -> Response:
    """Nothing runs here, so there is nothing to read; what is asked for must exist all the same."""
    streams.check_container(call, get(call).value)
    return Response(200, b"", content_type="text/plain")


def ephemeral_containers(call: Call, request: Request) -> Response:
    """Debug containers can be added to a running pod, and by this endpoint only."""
    return _part_of_pod(call, request, "ephemeralContainers")


def resize(call: Call, request: Request) -> Response:
    """Resources of containers can be changed in place, and by this endpoint only."""
    return _part_of_pod(call, request, "containers")


def _part_of_pod(call: Call, request: Request, name: str) -> Response:
    entry = get(call)
    if call.target.verb == "get":
        return json_response({"kind": "Pod", "apiVersion": "v1", **entry.value})
    new = begin_from(entry)
    if call.target.verb == "patch":
        content_type = request.header("content-type").partition(";")[0].strip()
        patch = decode_body(content_type, request.body, protobuf=decode_protobuf)
        sent: JSONObject = apply_json_patch(new, patch) if content_type == JSON else apply_merge_patch(new, patch)
    else:
        sent = _body(request)
        revision = text(sent, "metadata", "resourceVersion")
        if revision and revision != text(entry.value, "metadata", "resourceVersion"):
            raise modified(call)
    inside(new, "spec")[name] = at(sent, "spec", name) or []
    generation = at(new, "metadata", "generation")
    if new != entry.value:
        inside(new, "metadata")["generation"] = (generation if isinstance(generation, int) else 0) + 1
        call.resource.strategy.default(new)
        if not call.query.dry_run:
            entry = call.services.store.update(entry.key, new, expected=entry.revision)
    return json_response({"kind": "Pod", "apiVersion": "v1", **entry.value})


# Namespaces


def finalize(call: Call, request: Request) -> Response:
    """The finalizers in a namespace's spec are changed by this endpoint only; without any, it goes."""
    body = _body(request)
    entry = get(call)
    revision = text(body, "metadata", "resourceVersion")
    if revision and revision != text(entry.value, "metadata", "resourceVersion"):
        raise modified(call)
    new = copied_object(entry.value)
    finalizers = items(body, "spec", "finalizers")
    spec = inside(new, "spec")
    if finalizers:
        spec["finalizers"] = list(finalizers)
    else:
        spec.pop("finalizers", None)
    track_update(entry.value, new, manager=call.manager, **tracking(call))
    store = call.services.store
    marked = bool(text(new, "metadata", "deletionTimestamp"))
    if marked and not finalizers and not items(new, "metadata", "finalizers"):
        entry = store.delete(entry.key, expected=entry.revision, final=new)
    elif not same_but_for_times(new, entry.value):
        entry = store.update(entry.key, new, expected=entry.revision)
    return json_response({"kind": "Namespace", "apiVersion": "v1", **entry.value})


HANDLERS: dict[tuple[str, str, str], Handler] = {
    ("*", "*", "scale"): scale,
    ("", "pods", "binding"): bind,
    ("", "pods", "eviction"): evict,
    ("", "pods", "log"): log,
    ("", "pods", "exec"): streams.attach,
    ("", "pods", "attach"): streams.attach,
    ("", "pods", "portforward"): streams.forward,
    ("", "pods", "proxy"): streams.proxy,
    ("", "services", "proxy"): streams.proxy,
    ("", "nodes", "proxy"): streams.proxy,
    ("", "pods", "ephemeralcontainers"): ephemeral_containers,
    ("", "pods", "resize"): resize,
    ("", "namespaces", "finalize"): finalize,
    ("", "serviceaccounts", "token"): token,
}
"""By group, plural and subresource. Status, and what is not here, is an ordinary read or update of the object."""
