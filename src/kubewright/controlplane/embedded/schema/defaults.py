"""Filling in what a schema gives by default.

Applied to what is written and to what is read from storage, so a default added later shows at once. Null is not a
value where the schema does not say `nullable`: it gives way to the default, or to nothing.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied, mapping
from kubewright.controlplane.embedded.schema.depth import check_depth

_NESTED = (dict, list)


class Defaulter:
    """Applies the defaults of one schema, which is read once."""

    def __init__(self, schema: JSONObject) -> None:
        check_depth(schema)
        self._root = _Node(schema)

    def apply(self, obj: JSONObject) -> None:
        """Fill in defaults and drop nulls, in place. Applying twice changes nothing more."""
        self._root.apply(obj)


class _Node:
    __slots__ = ("default", "extra", "items", "nullable", "properties", "wanted")

    def __init__(self, schema: JSONObject) -> None:
        self.default = schema.get("default")
        self.nullable = schema.get("nullable") is True
        self.properties = {
            name: _Node(inner) for name, inner in mapping(schema, "properties").items() if isinstance(inner, dict)
        }
        extra = schema.get("additionalProperties")
        self.extra = _Node(extra) if isinstance(extra, dict) else None
        items = schema.get("items")
        self.items = _Node(items) if isinstance(items, dict) else None
        self.wanted = [(name, node) for name, node in self.properties.items() if node.default is not None]

    def apply(self, value: JSONValue) -> None:
        if isinstance(value, dict):
            self._apply_to_object(value)
        elif isinstance(value, list) and self.items is not None:
            node = self.items
            for index, item in enumerate(value):
                if item is None and not node.nullable:
                    value[index] = item = copied(node.default)
                if type(item) in _NESTED:
                    node.apply(item)

    def _apply_to_object(self, value: JSONObject) -> None:
        for name, node in self.wanted:
            if name not in value:
                value[name] = copied(node.default)
        gone: list[str] = []
        for name, item in value.items():
            found = self.properties.get(name) or self.extra
            if found is None:
                continue
            if item is None and not found.nullable:
                if found.default is None:
                    gone.append(name)
                    continue
                value[name] = item = copied(found.default)
            if type(item) in _NESTED:
                found.apply(item)
        for name in gone:
            del value[name]
