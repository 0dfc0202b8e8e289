"""Putting a changed object in the place of the one that a request writes."""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.admission.request import AdmissionRequest, in_version
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.scaling import set_replicas
from kubewright.controlplane.embedded.rest.unknown import drop_unknown

# Set after mutation on a server: what changes a new object does not see them yet, and cannot change them.
_LATER = ("uid", "creationTimestamp")


def unborn(request: AdmissionRequest, resource: ResourceType) -> JSONObject | None:
    """The object after the write as it is before mutation: a new one has no identity yet."""
    new = request.object_in(resource)
    if request.operation != "CREATE" or new is None:
        return new
    metadata = {name: value for name, value in mapping(new, "metadata").items() if name not in _LATER}
    return {**new, "metadata": metadata}


def put_back(request: AdmissionRequest, changed: JSONObject, matched: ResourceType, *, strict: bool = False) -> None:
    """Put a changed object, which is in the version that was matched, in the place of the new one.

    Fields that mean nothing are dropped, or refused when `strict`. Raises StatusError.
    """
    requested = request.call.resource
    new = copied_object({name: value for name, value in changed.items() if name not in ("apiVersion", "kind")})
    if request.kind != requested.gvk:
        # What was sent to a subresource is no object of the kind.
        if request.subresource != "scale":
            _put(request, new)
        elif request.new is not None:
            replicas = at(new, "spec", "replicas")
            set_replicas(request.call, request.new, replicas if isinstance(replicas, int) else 0)
            request.replace(request.new)
        return
    unknown: list[str] = []
    if matched.strategy.prune is not None:
        new |= {"apiVersion": matched.gvk.api_version, "kind": matched.gvk.kind}
        matched.strategy.prune(new)
        del new["apiVersion"], new["kind"]
    else:
        drop_unknown(new, matched.structure, "", unknown)
    if unknown and strict:
        raise internal_error(f"strict decoding error: {', '.join(f'unknown field {quoted(path)}' for path in unknown)}")
    if matched.gvk != requested.gvk:
        new = in_version(new, matched, requested, request.settled)
    if request.operation == "CREATE" and request.new is not None:
        before = mapping(request.new, "metadata")
        inside(new, "metadata").update({name: before[name] for name in _LATER if name in before})
    try:
        requested.strategy.default(new)
    except StatusError as error:
        raise internal_error(error.message.partition(": ")[2] or error.message) from None
    _put(request, new)


def _put(request: AdmissionRequest, new: JSONObject) -> None:
    if request.new is not None:
        # In place: the object belongs to the caller.
        request.new.clear()
        request.new.update(new)
        request.replace(request.new)


def why_not(operation: JSONObject) -> str:
    """Why a step of a patch does not apply, as far as that can be said without knowing the object."""
    op, path = text(operation, "op"), text(operation, "path")
    match op:
        case "add" | "remove":
            return f"{op} operation does not apply: doc is missing path: {quoted(path)}: missing value"
        case "replace":
            return f"{op} operation does not apply: doc is missing path: {path}: missing value"
        case "move" | "copy":
            source = text(operation, "from")
            return f"{op} operation does not apply: doc is missing from path: {source}: missing value"
        case "test":
            return f"{op} operation does not apply: is missing path: {path}: missing value"
    return f"Unexpected kind: {op}"


def internal_error(why: str) -> StatusError:
    """500 for what the client is not to blame for."""
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
