"""PATCH: the four kinds of patches, each applied to what is stored and then written like an update.

A patch that names no resourceVersion is applied again after a conflict, as the real server does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.decoding import decode_json, decode_yaml
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import formatted, json_kind
from kubewright.controlplane.embedded.apimachinery.status import (
    StatusError,
    bad_request,
    conflict,
    not_found,
    unsupported_media_type,
)
from kubewright.controlplane.embedded.builtins.typecheck import Undecodable
from kubewright.controlplane.embedded.managedfields import apply as apply_configuration
from kubewright.controlplane.embedded.managedfields import unconvertible
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch, unknown_fields
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.patch.strategic import apply_strategic_patch
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import check_kind, unconvertible_kind, wrong_identity
from kubewright.controlplane.embedded.rest.tracking import tracking
from kubewright.controlplane.embedded.rest.unknown import check_fields, in_order, undecodable_patch
from kubewright.controlplane.embedded.rest.writing import create, replace
from kubewright.controlplane.embedded.schema.emptied import emptied_objects
from kubewright.controlplane.embedded.storage.store import StoredObject

JSON, MERGE, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_METADATA = ("annotations", "finalizers", "labels", "ownerReferences")
_ATTEMPTS = 5


def patch(call: Call, content_type: str, sent: bytes) -> tuple[StoredObject, bool]:
    """The object after the patch that was sent, and whether an apply created it."""
    check_patch_type(call, content_type)
    complaints: list[str] = []
    body = decode_patch(content_type, sent, complaints)
    for _ in range(_ATTEMPTS):
        entry = call.services.store.get(call.resource.key(call.target.namespace, call.target.name))
        try:
            if content_type == APPLY:
                return _apply(call, entry, body, complaints)
            if entry is None:
                raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
            return _patched(call, entry, content_type, body, complaints), False
        except StatusError as error:
            if error.reason != "Conflict" or error.details is None or "causes" in error.details or _is_locked(body):
                raise
            last = error
    raise last


def decode_patch(content_type: str, sent: bytes, complaints: list[str]) -> JSONValue:
    """The body of a patch, with complaints about fields that mean nothing or are there twice."""
    if content_type == APPLY:
        return decode_yaml(sent, complaints, "error decoding YAML: ")
    body = decode_json(sent, complaints, "" if content_type == STRATEGIC else "error decoding patch: ")
    if content_type == JSON:
        complaints[:] = [*(f"json patch {complaint}" for complaint in complaints), *unknown_fields(body)]
    return body


def _is_locked(body: JSONValue) -> bool:
    """Whether the patch itself names a resourceVersion or uid."""
    if isinstance(body, dict):
        return bool(text(body, "metadata", "resourceVersion") or text(body, "metadata", "uid"))
    return isinstance(body, list) and any(
        isinstance(step, dict) and step.get("path") in ("/metadata/resourceVersion", "/metadata/uid") for step in body
    )


def check_patch_type(call: Call, content_type: str) -> None:
    """Raises 415 for a form of patch that the kind does not take."""
    supported = [JSON, MERGE, APPLY]
    if not call.resource.custom:
        if content_type not in (*supported, STRATEGIC):
            raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    elif content_type not in supported:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
        )


def _patched(
    call: Call, entry: StoredObject, content_type: str, body: JSONValue, complaints: Sequence[str]
) -> StoredObject:
    gvk = call.resource.gvk
    # Patches see the object as clients do, with its kind.
    live: JSONObject = {"apiVersion": gvk.api_version, "kind": gvk.kind, **entry.value}
    lenient = call.query.text("fieldValidation") == "Ignore"
    if content_type == JSON:
        result = apply_json_patch(live, body, lenient=lenient)
    elif content_type == MERGE:
        result = apply_merge_patch(live, body, lenient=lenient)
    else:
        result = apply_strategic_patch(live, body, call.resource.structure)
    # What a strategic patch made is never seen whole.
    shown = formatted(body) if content_type == STRATEGIC else in_order(result)
    new = copied_object(result)
    _check_patched_kind(call, new, shown)
    try:
        check_fields(call, new, complaints, patched=shown)
        if not text(new, "metadata", "resourceVersion"):
            inside(new, "metadata")["resourceVersion"] = text(entry.value, "metadata", "resourceVersion")
        return replace(call, new, entry)
    except StatusError as error:
        # That the object cannot be decoded is the fault of the patch.
        if why := _undecodable(call, error):
            if content_type == STRATEGIC and isinstance(error, Undecodable):
                why = error.converted
            elif content_type != STRATEGIC:
                why = _first_mistake(call, result) or why
            raise undecodable_patch(shown, why) from None
        raise


def _first_mistake(call: Call, result: JSONObject) -> str:
    """Of several mistakes, the one that comes first when fields are in order, as they are in what a patch made."""
    ordered = cast(JSONObject, decode_json(msgspec.json.encode(result, order="sorted")))
    try:
        call.resource.strategy.default(ordered)
    except StatusError as error:
        return _undecodable(call, error)
    return ""


def _check_patched_kind(call: Call, new: JSONObject, shown: str) -> None:
    """A patch may name the kind, and leave it away, but not change it."""
    gvk = call.resource.gvk
    api_version, kind = text(new, "apiVersion") or gvk.api_version, text(new, "kind") or gvk.kind
    if not call.resource.custom:
        if why := unconvertible_kind(call, api_version, kind):
            raise undecodable_patch(shown, why)
    elif api_version != gvk.api_version:
        raise wrong_identity(api_version, kind, call.target.name, "apiVersion", api_version, gvk.api_version)
    elif kind != gvk.kind:
        raise wrong_identity(api_version, kind, call.target.name, "kind", kind, gvk.kind)
    new.pop("apiVersion", None)
    new.pop("kind", None)


def applied_configuration(body: JSONValue, gvk: GroupVersionKind, policy: str, complaints: Sequence[str]) -> JSONObject:
    """What is applied: an object of the kind, which it must name. Keys that are there twice are refused when strict."""
    if policy == "Strict" and complaints:
        listed = "".join(f"\n  {complaint}" for complaint in complaints)
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{listed}")
    if body is None:
        body = {}
    if not isinstance(body, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{json_kind(body)} into Go value of type map[string]interface {{}}"
        )
    if (text(body, "apiVersion"), text(body, "kind")) != (gvk.api_version, gvk.kind):
        group, _, version = text(body, "apiVersion").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={text(body, 'kind')}")
    return copied_object(body)


def _apply(
    call: Call, entry: StoredObject | None, body: JSONValue, complaints: Sequence[str]
) -> tuple[StoredObject, bool]:
    if entry is None and call.target.subresource:
        raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
    # Nothing is dropped: an unknown field is an error in an apply, and an empty map is owned.
    policy = call.query.text("fieldValidation")
    configuration = applied_configuration(body, call.resource.gvk, policy, complaints)
    if policy != "Ignore":
        call.warnings += complaints
    metadata = inside(configuration, "metadata")
    if not text(metadata, "name"):
        metadata["name"] = call.target.name
    result = apply_configuration(
        entry.value if entry is not None else None,
        configuration,
        manager=call.query.text("fieldManager"),
        force=call.query.flag("force"),
        **tracking(call),
    )
    check_kind(call, result)
    # Empty metadata that is applied to a custom resource is stored, but never shown: the next write differs from it.
    hides = call.resource.custom and any(mapping(result, "metadata").get(name) in ({}, []) for name in _METADATA)
    emptied = emptied_objects(configuration, result, call.resource.schema) if call.resource.schema is not None else ()
    try:
        check_fields(call, result, ())
        if entry is None:
            stored = _created(call, result)
        else:
            seen = StoredObject(entry.key, entry.value, entry.revision, entry.created, adapted=entry.adapted != hides)
            stored = replace(call, result, seen, tracked=False, found=emptied)
    except StatusError as error:
        if why := _undecodable(call, error):
            raise unconvertible(configuration, why) from None
        raise
    stored.adapted = hides
    return stored, entry is None


def _created(call: Call, result: JSONObject) -> StoredObject:
    """An apply to nothing creates. Which revision it is for does not matter then; which uid does."""
    metadata = inside(result, "metadata")
    metadata.pop("resourceVersion", None)
    if uid := text(metadata, "uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise conflict(call.resource.plural, call.resource.gvk.group, call.target.name, why)
    return create(call, result, tracked=False)


def _undecodable(call: Call, error: StatusError) -> str:
    """Why an object that was made here is none of its kind; empty for any other failure."""
    gvk = call.resource.gvk
    prefix = f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: '
    return error.message.removeprefix(prefix) if error.code == 400 and error.message.startswith(prefix) else ""
