"""The metadata of objects as the server keeps it: what it sets, what it keeps, what it refuses to change."""

from __future__ import annotations

from typing import Literal

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer, summarized
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    bad_request,
    conflict,
    invalid,
    invalid_value,
)
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call

_NAME_LENGTH = 63
_SUFFIX_LENGTH = 5
# Where etcd's key is not the plural: shown when a precondition fails.
_STORED_AS = {
    "endpoints": "services/endpoints",
    "ingresses": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
_STORED_BY_GROUP = ("apiextensions.k8s.io", "apiregistration.k8s.io")
# Kept from the stored object on every update, whatever was sent.
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


def check_kind(call: Call, obj: JSONObject, body: bytes = b"") -> None:
    """The object must be of the kind of its endpoint; `body` is what it came in."""
    gvk, custom = call.resource.gvk, call.resource.custom
    # A custom resource must name its kind; a built-in one may leave it to the endpoint.
    api_version = text(obj, "apiVersion") or ("" if custom else gvk.api_version)
    kind = text(obj, "kind") or ("" if custom else gvk.kind)
    if custom and not kind:
        raise unrecognized(call, f"Object 'Kind' is missing in '{body.decode(errors='replace')}'", body)
    if not custom and (why := unconvertible_kind(call, api_version, kind)):
        version = api_version.rpartition("/")[2]
        raise bad_request(f'{kind} in version "{version}" cannot be handled as a {gvk.kind}: {why}')
    if api_version != gvk.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({gvk.api_version})"
        )
    if kind != gvk.kind:
        raise wrong_identity(api_version, kind, text(obj, "metadata", "name"), "kind", kind, gvk.kind)
    obj.pop("apiVersion", None)
    obj.pop("kind", None)


def unrecognized(call: Call, why: str, body: bytes) -> StatusError:
    """400: a body without kind or apiVersion, with the beginning of it."""
    kind = call.resource.gvk.kind
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({summarized(body)})")


def unconvertible_kind(call: Call, api_version: str, kind: str) -> str:
    """Why an object of some kind is none of the endpoint's, which is built in; empty when it may be one."""
    gvk = call.resource.gvk
    if kind == gvk.kind and api_version == gvk.api_version:
        return ""
    group, _, version = api_version.rpartition("/")
    # Lists are kinds too, though none is served by itself.
    known = call.services.catalog.find_kind(group, version, kind) or call.services.catalog.find_kind(
        group, version, kind.removesuffix("List")
    )
    if known is None or known.custom:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    if (known.gvk.group, known.gvk.kind) == (gvk.group, gvk.kind) and not kind.endswith("List"):
        return ""
    ours = f"{gvk.group.partition('.')[0] or 'core'}.{gvk.kind}"
    return f"converting ({version}.{kind}) to ({ours}): unknown conversion"


def wrong_identity(api_version: str, kind: str, name: str, field: str, found: str, expected: str) -> StatusError:
    """422: a custom resource of another kind or version."""
    return invalid(kind, api_version.rpartition("/")[0], name, [invalid_value(field, found, f"must be {expected}")])


def place_in_namespace(call: Call, obj: JSONObject) -> None:
    """Set or check the namespace, which the path decides."""
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
    take_revision(call, obj)
    metadata = inside(obj, "metadata")
    for name in _KEPT:
        # What is not counted is not the server's: a generation that the client sets stays.
        if name != "generation":
            metadata.pop(name, None)
    metadata["uid"] = call.services.new_uid()
    metadata["creationTimestamp"] = call.services.now()
    if has_generation(call.resource):
        metadata["generation"] = 1


def take_revision(call: Call, obj: JSONObject) -> None:
    """Take the resourceVersion away from a new object, which must have none."""
    revision = text(obj, "metadata", "resourceVersion")
    # What is no number of 64 bits is ignored, as by the real server.
    is_set = revision.isdecimal() and revision.isascii() and 0 < bounded_integer(revision) < 2**64
    if is_set and not call.query.dry_run:
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    inside(obj, "metadata").pop("resourceVersion", None)


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
    """An update must be of the object it is sent to. A patch that changes the uid is judged with the metadata."""
    check_name(call, new)
    if call.target.verb == "update":
        check_uid(call, text(new, "metadata", "uid"), old)


def check_name(call: Call, obj: JSONObject) -> None:
    """An object that is sent to a name must have it."""
    name, target = text(obj, "metadata", "name"), call.target
    if not name:
        raise bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def check_uid(call: Call, uid: str, old: JSONObject) -> None:
    """A request with a uid is for that object, not for another one of the same name."""
    check_precondition(call, "UID", uid, old)


def check_precondition(call: Call, field: Literal["UID", "ResourceVersion"], wanted: str, old: JSONObject) -> None:
    """Raise StatusError when a stored object has not the uid or revision that is wanted, if any is."""
    resource, target = call.resource, call.target
    stored = text(old, "metadata", "uid" if field == "UID" else "resourceVersion")
    if not wanted or wanted == stored:
        return
    by_group = resource.custom or resource.gvk.group in _STORED_BY_GROUP
    directory = (
        f"{resource.gvk.group}/{resource.plural}" if by_group else _STORED_AS.get(resource.plural, resource.plural)
    )
    key = "/".join(filter(None, ("/registry", directory, target.namespace if resource.namespaced else "", target.name)))
    raise conflict(
        resource.plural,
        resource.gvk.group,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {stored}",
    )


def keep(new: JSONObject, old: JSONObject) -> None:
    """What the client left out of its metadata comes from the stored object; what it changed there is refused later."""
    metadata, stored = inside(new, "metadata"), mapping(old, "metadata")
    metadata.pop("generation", None)
    metadata.pop("selfLink", None)
    for name in _KEPT:
        # Creation and deletion times are set by the server.
        if metadata.get(name) is None or (name in ("creationTimestamp", "deletionTimestamp") and name in stored):
            metadata.pop(name, None)
            if name in stored:
                metadata[name] = stored[name]


def count_generation(resource: ResourceType, new: JSONObject, old: JSONObject) -> None:
    """A change of the desired state is a new generation."""
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
    """Raise the errors, if there are any."""
    if errors:
        gvk = resource.storage or resource.gvk
        raise invalid(gvk.kind, gvk.group, name, errors)


def without_repeated_owners(call: Call, obj: JSONObject) -> None:
    """Remove repeated owner references, with a warning."""
    owners = items(obj, "metadata", "ownerReferences")
    kept: list[JSONValue] = []
    repeated: list[str] = []
    for owner in owners:
        if owner in kept:
            repeated.append(text(owner, "uid"))
        else:
            kept.append(owner)
    if repeated:
        inside(obj, "metadata")["ownerReferences"] = kept
        call.warnings.append(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and "
            "may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            + ", ".join(repeated)
        )
