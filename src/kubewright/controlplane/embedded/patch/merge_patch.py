"""Merge patches: RFC 7386, with what Kubernetes' implementation does differently.

A list that replaces something other than an object loses the nulls inside its objects; one that replaces an object
keeps them.
"""

from __future__ import annotations

import msgspec

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.document import JSONObject
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.nesting import LEVELS
from kubewright.controlplane.embedded.apimachinery.status import bad_request
from kubewright.controlplane.embedded.patch.result import checked


def apply_merge_patch(document: JSONObject, patch: JSONValue, *, lenient: bool = False) -> JSONObject:
    """The document with the patch merged in; neither is changed, and what the patch does not name is shared.

    `lenient` words the errors of malformed patches as `fieldValidation=Ignore` does.
    """
    if isinstance(patch, dict):
        return _merged(document, patch)
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not lenient:
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type "
            "map[string]interface {}"
        )
    if not isinstance(patch, list):
        raise bad_request("Invalid JSON Patch")
    return checked(_without_nulls(patch))


def _merged(document: JSONObject, patch: JSONObject) -> JSONObject:
    merged = dict(document)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
            continue
        current = merged.get(name)
        _check_depth(current, value)
        if not isinstance(current, dict):
            merged[name] = _without_nulls(value)
        elif isinstance(value, dict):
            merged[name] = _merged(current, value)
        else:
            merged[name] = value
    return merged


def _check_depth(current: object, value: object) -> None:
    """Refuse what would have to be merged with, or searched for nulls in, a value that is kept as text."""
    is_deep = isinstance(current, msgspec.Raw) or isinstance(value, msgspec.Raw)
    is_merged = isinstance(current, dict | msgspec.Raw) and isinstance(value, dict | msgspec.Raw)
    if is_deep and (is_merged or (isinstance(value, msgspec.Raw) and b"null" in bytes(value))):
        raise bad_request(
            f"the embedded control plane does not merge below {LEVELS} levels: replace the object, or a field above"
        )


def _without_nulls(value: JSONValue) -> JSONValue:
    """Without the null fields of objects at any depth; null items of lists stay."""
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
