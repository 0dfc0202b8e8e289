"""The body of a write: the part of the object that it concerns, without the fields that the server sets."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import msgspec

from kubewright.api.codec import decode_json, encode, remembered
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import Parts, as_read, joined, merged, parts_of, patch_between
from kubewright.api.resources import Object, ResourceInfo
from kubewright.api.shape import SCALAR, Shape

SERVER_METADATA = (
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Set by the server alone: a patch that carried them would claim to own them, or fail."""


def compared_fields(subresource: str) -> tuple[str, ...]:
    """The fields that are compared for changes; empty for all. For status not the spec, which is large."""
    return ("metadata", "status") if subresource == "status" else ()


def for_create(obj: Object, info: ResourceInfo) -> bytes:
    """The whole object; without status where the server would ignore it."""
    body = whole(obj)
    if not info.has_status:
        return body
    parts = parts_of(body)
    return joined(parts) if parts.pop("status", None) is not None else body


def for_update(obj: Object, info: ResourceInfo, subresource: str) -> bytes:
    """The whole object; for a subresource with the changes there, and the rest as it was read."""
    parts = merged(obj, compared_fields(subresource))
    if info.has_status and not subresource:
        read = as_read(obj) or parts
        refuse_status_alone(obj, patch_between(read, parts), "update")
        parts.pop("status", None)
    return joined(_named(parts, obj))


def refuse_status_alone(obj: Object, changed: Collection[str], verb: str) -> None:
    """Raise a ValueError when only status was changed, which a request for the object itself does not write."""
    if "status" in changed and len(changed) == 1:
        raise ValueError(
            f"only the status of {obj.kind} {obj.key} was changed, and {verb} does not write it: "
            f"use client.status.{verb}(obj)"
        )


def whole(obj: Object) -> bytes:
    """The JSON of an object, with the fields that its type does not know."""
    return encode(obj) if remembered(obj) is None else joined(_named(merged(obj), obj))


def _named(parts: Parts, obj: Object) -> Parts:
    """The object with apiVersion and kind, which items of lists and some manifests lack."""
    if "apiVersion" in parts and "kind" in parts:
        return parts
    return {"apiVersion": msgspec.Raw(encode(obj.api_version)), "kind": msgspec.Raw(encode(obj.kind))} | parts


def for_apply(obj: Object, info: ResourceInfo, subresource: str) -> JSONObject:
    """The fields that were set, and only those: for a subresource just its part."""
    set_ = _set_fields(decode_json(whole(obj)), Shape("model", model=type(obj)))
    content = _part(cast(JSONObject, set_), info, subresource)
    metadata = content.get("metadata")
    if isinstance(metadata, dict):
        content["metadata"] = {
            name: value
            for name, value in metadata.items()
            if (name in ("name", "namespace") if subresource else name not in SERVER_METADATA)
        }
    return content


def for_patch(difference: JSONObject, info: ResourceInfo, subresource: str) -> JSONObject:
    """The part of a difference that the endpoint accepts; empty when there is none."""
    if subresource == "status":
        return {"status": difference["status"]} if "status" in difference else {}
    return _part(difference, info, subresource)


def _set_fields(content: JSONValue, shape: Shape) -> JSONValue:
    """The fields without structures that exist only because Go holds them by value, as `resources: {}`."""
    if isinstance(content, dict):
        nested = {
            name: _set_fields(value, shape.fields.get(name, shape.item or SCALAR)) for name, value in content.items()
        }
        return {
            name: value
            for name, value in nested.items()
            if value != {} or name not in shape.fields or not shape.fields[name].by_value
        }
    if isinstance(content, list):
        return [_set_fields(item, shape.item or SCALAR) for item in content]
    return content


def _part(content: JSONObject, info: ResourceInfo, subresource: str) -> JSONObject:
    if subresource == "status":
        return {name: content[name] for name in ("apiVersion", "kind", "metadata", "status") if name in content}
    if info.has_status and not subresource:
        return {name: value for name, value in content.items() if name != "status"}
    return content
