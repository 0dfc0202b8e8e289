"""The metadata of objects as the server keeps it: what it sets, what it keeps, what it refuses to change."""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.document import JSONObject, at, inside, items, mapping, text
from kubewright.controlplane.embedded.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.status import (
    FieldError,
    StatusError,
    bad_request,
    conflict,
    invalid,
)

_NAME_LENGTH = 63
_SUFFIX_LENGTH = 5
# Kept from the stored object on every update, whatever was sent.
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


def check_kind(call: Call, obj: JSONObject) -> None:
    """The body must be of the kind of its endpoint; what it leaves out is understood."""
    gvk = call.resource.gvk
    api_version, kind = text(obj, "apiVersion") or gvk.api_version, text(obj, "kind") or gvk.kind
    if api_version != gvk.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"
        )
    if kind != gvk.kind:
        theirs = f"{api_version}.{kind}"
        ours = f"{gvk.group or 'core'}.{gvk.kind}"
        raise bad_request(
            f'{kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: '
            f"converting ({theirs}) to ({ours}): unknown conversion"
        )
    obj.pop("apiVersion", None)
    obj.pop("kind", None)


def place_in_namespace(call: Call, obj: JSONObject) -> None:
    """The object is where its path says, and says so."""
    metadata = inside(obj, "metadata")
    stated = text(metadata, "namespace")
    if not call.resource.namespaced:
        if stated:
            metadata.pop("namespace")
        return
    if stated and stated != call.target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = call.target.namespace


def begin(call: Call, obj: JSONObject) -> None:
    """The metadata of a new object."""
    metadata = inside(obj, "metadata")
    if text(metadata, "resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    for name in (*_KEPT, "resourceVersion"):
        metadata.pop(name, None)
    metadata["uid"] = call.services.new_uid()
    metadata["creationTimestamp"] = call.services.now()
    if has_generation(call.resource):
        metadata["generation"] = 1


def generate_name(call: Call, obj: JSONObject) -> bool:
    """Give an object that has only a `generateName` its name. True when it was generated."""
    metadata = mapping(obj, "metadata")
    base = text(metadata, "generateName")
    if text(metadata, "name") or not base:
        return False
    metadata["name"] = base[: _NAME_LENGTH - _SUFFIX_LENGTH] + call.services.suffix()
    return True


def has_generation(resource: ResourceType) -> bool:
    """Whether the server counts generations of this kind."""
    return resource.custom or resource.strategy.has_generation


def check_identity(call: Call, new: JSONObject, old: JSONObject) -> None:
    """An update must be of the object it is sent to."""
    metadata = inside(new, "metadata")
    resource, target = call.resource, call.target
    name = text(metadata, "name")
    if not name:
        metadata["name"] = target.name
    elif name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    uid, stored = text(metadata, "uid"), text(old, "metadata", "uid")
    if uid and uid != stored:
        raise conflict(
            resource.plural,
            resource.gvk.group,
            target.name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}",
        )


def keep(new: JSONObject, old: JSONObject) -> None:
    """What the client left out of its metadata comes from the stored object; what it changed there is refused later."""
    metadata, stored = inside(new, "metadata"), mapping(old, "metadata")
    metadata.pop("generation", None)
    metadata.pop("selfLink", None)
    for name in (*_KEPT, "managedFields"):
        if metadata.get(name) is None:
            metadata.pop(name, None)
            if name in stored:
                metadata[name] = stored[name]


def count_generation(resource: ResourceType, new: JSONObject, old: JSONObject) -> None:
    """A change of what is wanted is a new generation."""
    if not has_generation(resource):
        return
    changed = (
        resource.strategy.changes_generation(new, old)
        if resource.strategy.changes_generation is not None
        else _differs(resource, new, old)
    )
    if changed:
        metadata = inside(new, "metadata")
        generation = metadata.get("generation")
        metadata["generation"] = (generation if isinstance(generation, int) else 0) + 1


def _differs(resource: ResourceType, new: JSONObject, old: JSONObject) -> bool:
    if not resource.custom:
        return new.get("spec") != old.get("spec")
    ignored = {"metadata", "apiVersion", "kind"} | ({"status"} if "status" in resource.subresources else set())
    return any(new.get(name) != old.get(name) for name in (new.keys() | old.keys()) - ignored)


def is_finished(obj: JSONObject) -> bool:
    """Nothing keeps an object that is being deleted any longer."""
    grace: JSONValue = at(obj, "metadata", "deletionGracePeriodSeconds")
    return (
        bool(text(obj, "metadata", "deletionTimestamp"))
        and not is_kept(obj)
        and not (isinstance(grace, int) and grace > 0)
    )


def is_kept(obj: JSONObject) -> bool:
    """Whether finalizers keep an object. Those of namespaces are in the spec as well; no other kind has any there."""
    return bool(items(obj, "metadata", "finalizers") or items(obj, "spec", "finalizers"))


def refuse(resource: ResourceType, name: str, errors: list[FieldError]) -> None:
    """Raise what is wrong, if anything is."""
    if errors:
        gvk = resource.storage or resource.gvk
        raise invalid(gvk.kind, gvk.group, name, errors)
