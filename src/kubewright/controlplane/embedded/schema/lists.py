"""Lists that are sets or maps: no item, or no key, may be there twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, duplicate, invalid_value
from kubewright.controlplane.embedded.schema.depth import check_depth

_NESTED = (dict, list)
_encode = msgspec.json.Encoder(order="sorted").encode


class ListTypes:
    """Checks `x-kubernetes-list-type` of one schema, which is read once; nodes without such lists are not visited."""

    def __init__(self, schema: JSONObject) -> None:
        check_depth(schema)
        self._root = _read(schema)

    def validate(self, obj: JSONValue) -> list[FieldError]:
        """Every item that repeats another one, at its second appearance."""
        errors: list[FieldError] = []
        if self._root is not None:
            self._root.check(obj, "", errors)
        return errors


class _Node:
    __slots__ = ("extra", "item", "keys", "list_type", "properties")

    def __init__(self, schema: JSONObject) -> None:
        self.list_type = text(schema, "x-kubernetes-list-type")
        self.keys = sorted(key for key in items(schema, "x-kubernetes-list-map-keys") if isinstance(key, str))
        read = {name: _read(inner) for name, inner in mapping(schema, "properties").items()}
        self.properties = {name: node for name, node in read.items() if node is not None}
        self.extra = _read(schema.get("additionalProperties"))
        self.item = _read(schema.get("items"))

    @property
    def matters(self) -> bool:
        return bool(self.list_type in ("set", "map") or self.properties or self.extra or self.item)

    def check(self, value: JSONValue, path: str, errors: list[FieldError]) -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                if type(item) in _NESTED:
                    node = self.properties.get(name)
                    if node is not None:
                        node.check(item, f"{path}.{name}" if path else name, errors)
                    elif self.extra is not None:
                        self.extra.check(item, f"{path}[{name}]", errors)
        elif isinstance(value, list):
            if self.list_type == "set":
                errors += [duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
            elif self.list_type == "map":
                self._check_keys(value, path, errors)
            if self.item is not None:
                for index, item in enumerate(value):
                    self.item.check(item, f"{path}[{index}]", errors)

    def _check_keys(self, value: list[JSONValue], path: str, errors: list[FieldError]) -> None:
        keys: list[JSONValue] = []
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                errors.append(
                    invalid_value(f"{path}[{index}]", item, "must be an object for an array of list-type map")
                )
                return
            keys.append({key: item[key] for key in self.keys if key in item} if item else {})
        errors += [duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys)]


def _read(schema: JSONValue) -> _Node | None:
    if not isinstance(schema, dict):
        return None
    node = _Node(schema)
    return node if node.matters else None


def _repeated(values: Sequence[JSONValue]) -> list[int]:
    """The positions where a value appears for the second time."""
    seen: dict[bytes, int] = {}
    repeated: list[int] = []
    for index, value in enumerate(values):
        # Encoded, so that true, 1 and 1.0 are three values.
        key = _encode(value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            repeated.append(index)
    return repeated
