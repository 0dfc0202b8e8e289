"""Endpoints below an object that are not just a part of it: scale, binding, eviction, tokens, finalize, logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_options
from typing import TypeAlias

from kubewright.api.markers import JSONValue
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
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.deleting import delete, options_of
from kubewright.controlplane.embedded.rest.patching import JSON
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.rest.writing import begin_from, modified, replace
from kubewright.controlplane.embedded.status import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
    method_not_allowed,
    not_found,
    required,
)
from kubewright.controlplane.embedded.storage import Conflict

Handler: TypeAlias = Callable[[Call, Request], Response]


def _body(request: Request) -> JSONObject:
    body = decode_body(request.header("content-type"), request.body, protobuf=decode_protobuf)
    if not isinstance(body, dict):
        raise bad_request("the body of the request must be an object")
    return body


# Scale


def scale(call: Call, request: Request) -> Response:
    """The number of replicas of anything that scales, as `autoscaling/v1 Scale`."""
    if call.target.subresource not in call.resource.subresources:
        raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
    entry = get(call)
    current = _scale_of(call, entry.value)
    if call.target.verb == "get":
        return json_response(current)
    if call.target.verb == "update":
        wanted = _body(request)
    elif call.target.verb == "patch":
        content_type = request.header("content-type").partition(";")[0].strip()
        patch = decode_body(content_type, request.body, protobuf=decode_protobuf)
        if content_type == JSON:
            wanted = apply_json_patch(current, patch)
        elif isinstance(patch, dict):
            wanted = apply_merge_patch(current, patch)
        else:
            raise bad_request("a merge patch must be an object")
    else:
        raise method_not_allowed(call.resource.plural, call.resource.gvk.group, request.method)
    replicas = at(wanted, "spec", "replicas")
    if replicas is None:
        replicas = 0
    if not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 0:
        raise invalid(
            "Scale",
            "autoscaling",
            call.target.name,
            [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")],
        )
    revision = text(wanted, "metadata", "resourceVersion")
    if revision and revision != text(entry.value, "metadata", "resourceVersion"):
        raise modified(call)
    new = begin_from(entry)
    *path, last = _scale_paths(call)[0]
    inside(new, *path)[last] = replicas
    return json_response(_scale_of(call, replace(call, new, entry).value))


def _scale_paths(call: Call) -> tuple[list[str], list[str], list[str]]:
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


def _scale_of(call: Call, obj: JSONObject) -> JSONObject:
    wanted, actual, selector = _scale_paths(call)
    metadata = mapping(obj, "metadata")
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas, running = at(obj, *wanted), at(obj, *actual)
    status: JSONObject = {"replicas": running if isinstance(running, int) else 0}
    told = _selector_text(at(obj, *selector)) if selector else ""
    if told:
        status["selector"] = told
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
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
    entry = get(call)
    names = [text(container, "name") for container in items(entry.value, "spec", "containers")]
    asked = call.query.text("container")
    if asked and asked not in names:
        raise bad_request(f"container {asked} is not valid for pod {call.target.name}")
    if not asked and len(names) > 1:
        raise bad_request(
            f"a container name must be specified for pod {call.target.name}, choose one of: [{' '.join(names)}]"
        )
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
    store = call.services.store
    marked = bool(text(new, "metadata", "deletionTimestamp"))
    if marked and not finalizers and not items(new, "metadata", "finalizers"):
        entry = store.delete(entry.key, expected=entry.revision, final=new)
    elif new != entry.value:
        entry = store.update(entry.key, new, expected=entry.revision)
    return json_response({"kind": "Namespace", "apiVersion": "v1", **entry.value})


def token(call: Call, request: Request) -> Response:
    """A token of a service account."""
    return json_response(call.services.token_issuer.issue(call.target.namespace, call.target.name, _body(request)), 201)


HANDLERS: dict[tuple[str, str, str], Handler] = {
    ("*", "*", "scale"): scale,
    ("", "pods", "binding"): bind,
    ("", "pods", "eviction"): evict,
    ("", "pods", "log"): log,
    ("", "pods", "ephemeralcontainers"): ephemeral_containers,
    ("", "pods", "resize"): resize,
    ("", "namespaces", "finalize"): finalize,
    ("", "serviceaccounts", "token"): token,
}
"""By group, plural and subresource. Status, and what is not here, is an ordinary read or update of the object."""
