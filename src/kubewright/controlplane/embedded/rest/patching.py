"""PATCH: the four kinds of patches, each applied to what is stored and then written like an update.

A patch that names no resourceVersion is applied again when somebody else was faster, as the real server does.
"""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.document import JSONObject, copied_object, inside, text
from kubewright.controlplane.embedded.managedfields import apply as apply_configuration
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.patch.strategic import apply_strategic_patch
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import check_kind
from kubewright.controlplane.embedded.rest.tracking import tracking
from kubewright.controlplane.embedded.rest.unknown import check_fields, undecodable_patch
from kubewright.controlplane.embedded.rest.writing import create, replace
from kubewright.controlplane.embedded.status import (
    StatusError,
    bad_request,
    invalid,
    not_found,
    required,
    unsupported_media_type,
)
from kubewright.controlplane.embedded.storage import Entry

JSON, MERGE, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_ATTEMPTS = 5


def patch(call: Call, content_type: str, body: JSONValue) -> tuple[Entry, bool]:
    """The object after the patch, and whether an apply created it."""
    _check_type(call, content_type)
    for _ in range(_ATTEMPTS):
        entry = call.services.store.get(call.resource.key(call.target.namespace, call.target.name))
        try:
            if content_type == APPLY:
                return _apply(call, entry, body)
            if entry is None:
                raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
            return _patched(call, entry, content_type, body), False
        except StatusError as error:
            if error.reason != "Conflict" or error.details is None or "causes" in error.details or _is_locked(body):
                raise
            last = error
    raise last


def _is_locked(body: JSONValue) -> bool:
    """Whether the patch itself says which revision it is for."""
    if isinstance(body, dict):
        return bool(text(body, "metadata", "resourceVersion") or text(body, "metadata", "uid"))
    return isinstance(body, list) and any(
        isinstance(step, dict) and step.get("path") in ("/metadata/resourceVersion", "/metadata/uid") for step in body
    )


def _check_type(call: Call, content_type: str) -> None:
    supported = [JSON, MERGE, APPLY] if call.resource.custom else [JSON, MERGE, STRATEGIC, APPLY]
    if content_type not in supported:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
        )


def _patched(call: Call, entry: Entry, content_type: str, body: JSONValue) -> Entry:
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
    new = copied_object(result)
    check_kind(call, new)
    try:
        check_fields(call, new, (), patched=result)
        if not text(new, "metadata", "resourceVersion"):
            inside(new, "metadata")["resourceVersion"] = text(entry.value, "metadata", "resourceVersion")
        return replace(call, new, entry)
    except StatusError as error:
        # That the object cannot be decoded is the fault of the patch.
        undecodable = f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: '
        if error.code == 400 and error.message.startswith(undecodable):
            raise undecodable_patch(result, error.message.removeprefix(undecodable)) from None
        raise


def _apply(call: Call, entry: Entry | None, body: JSONValue) -> tuple[Entry, bool]:
    manager = call.query.text("fieldManager")
    if not manager:
        raise invalid(
            "PatchOptions",
            "meta.k8s.io",
            "",
            [required("fieldManager", "is required for apply patch")],
        )
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: an object is expected")
    if entry is None and call.target.subresource:
        raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
    configuration = copied_object(body)
    check_kind(call, copied_object(body))
    gvk = call.resource.gvk
    # With its kind, which complaints about it name. Nothing is dropped: an unknown field is an error in an apply, and
    # an empty map is owned.
    configuration |= {"apiVersion": gvk.api_version, "kind": gvk.kind}
    metadata = inside(configuration, "metadata")
    if not text(metadata, "name"):
        metadata["name"] = call.target.name
    result = apply_configuration(
        entry.value if entry is not None else None,
        configuration,
        manager=manager,
        force=call.query.flag("force"),
        **tracking(call),
    )
    check_kind(call, result)
    check_fields(call, result, ())
    if entry is None:
        return create(call, result, tracked=False), True
    return replace(call, result, entry, tracked=False), False
