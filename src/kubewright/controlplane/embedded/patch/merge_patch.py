"""Merge patches: RFC 7386, with what Kubernetes' implementation does differently.

A list that replaces something other than an object loses the nulls inside its objects; one that replaces an object
keeps them.
"""

from __future__ import annotations

from typing import cast

from msgspec import Raw

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.nesting import children, cut_again, opened
from kubewright.controlplane.embedded.apimachinery.status import bad_request
from kubewright.controlplane.embedded.patch.result import checked


def apply_merge_patch(document: JSONObject, patch: JSONValue, *, lenient: bool = False) -> JSONObject:
    """The document with the patch merged in; neither is changed, and what the patch does not name is shared.

    `lenient` words the errors of malformed patches as `fieldValidation=Ignore` does.
    """
    if isinstance(patch, dict):
        return _Merge().merged(document, patch)
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not lenient:
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type "
            "map[string]interface {}"
        )
    if not isinstance(patch, list):
        raise bad_request("Invalid JSON Patch")
    return checked(_Merge().without_nulls(patch))


class _Merge:
    """One merge, without recursion: objects nest deeper than Python can follow."""

    def __init__(self) -> None:
        self._is_opened = False

    def merged(self, document: JSONObject, patch: JSONObject) -> JSONObject:
        result = dict(document)
        rest = [(result, patch)]
        while rest:
            target, changes = rest.pop()
            for name, change in changes.items():
                if change is None:
                    target.pop(name, None)
                    continue
                current = self._opened(target.get(name))
                if not isinstance(current, dict):
                    target[name] = self.without_nulls(change)
                elif isinstance(value := self._opened(change), dict):
                    inner = target[name] = dict(current)
                    rest.append((inner, value))
                else:
                    target[name] = value
        return cast(JSONObject, cut_again(result)) if self._is_opened else result

    def without_nulls(self, value: JSONValue) -> JSONValue:
        """Without the null fields of objects at any depth; null items of lists stay."""
        root: list[JSONValue] = [value]
        rest: list[object] = [root]
        while rest:
            container = cast("dict[object, object]", rest.pop())
            for key, found in list(children(container)):
                item = found
                if isinstance(found, Raw) and b"null" in bytes(found):
                    item = self._opened(found)
                if isinstance(item, dict):
                    item = {name: inner for name, inner in item.items() if inner is not None}
                elif isinstance(item, list):
                    item = list(item)
                else:
                    continue
                container[key] = item
                rest.append(item)
        return root[0]

    def _opened(self, value: JSONValue | Raw) -> JSONValue:
        self._is_opened |= isinstance(value, Raw)
        return opened(value)
