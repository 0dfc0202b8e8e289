"""Dropping what a schema does not know.

Pruning follows the structural part of a schema only. Metadata, at the root and in embedded resources, does not depend
on the schema: it has the fields of ObjectMeta.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import bad_request, invalid_value
from kubewright.controlplane.embedded.schema.depth import check_depth
from kubewright.controlplane.embedded.schema.metadata import MalformedMetadata, coerced

Paths = Sequence[str]
_NESTED = (dict, list)
_META = frozenset(("apiVersion", "kind", "metadata"))


class Pruner:
    """Prunes objects of one schema, which is read once."""

    def __init__(self, schema: JSONObject) -> None:
        check_depth(schema)
        self._root = _Node(schema, root=True)

    def prune(self, obj: JSONObject) -> list[str]:
        """Drop unknown fields from `obj`, in place. Returns their paths, those of metadata first, otherwise sorted.

        Raises a 400 when metadata, here or in an embedded resource, cannot be what ObjectMeta is.
        """
        unknown: list[str] = []
        embedded: list[str] = []
        try:
            if "metadata" in obj:
                obj["metadata"] = coerced(obj["metadata"], "metadata", unknown)
            dropped = sorted(path.removeprefix(".") for path in self._root.prune(obj))
            self._root.coerce(obj, "", embedded)
        except MalformedMetadata as error:
            kind, version = text(obj, "kind"), text(obj, "apiVersion").rpartition("/")[2]
            raise bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {error}') from None
        return unknown + dropped + sorted(embedded)


class ValuePruner:
    """Prunes single values, such as the defaults in a schema."""

    def __init__(self, schema: JSONObject) -> None:
        self._root = _Node(schema)

    def prune(self, value: JSONValue) -> bool:
        """Drop unknown fields from `value`, in place. True when there were any."""
        return bool(self._root.prune(value))


class _Node:
    """One node of a schema. `extra` are the values under names that are no properties: absent, anything, or a node."""

    __slots__ = ("embedded", "embeds", "extra", "items", "open", "preserves", "properties")

    def __init__(self, schema: JSONObject, *, root: bool = False) -> None:
        self.embedded = root or schema.get("x-kubernetes-embedded-resource") is True
        self.preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.properties = {
            name: _Node(inner) for name, inner in mapping(schema, "properties").items() if isinstance(inner, dict)
        }
        extra = schema.get("additionalProperties")
        self.extra = _Node(extra) if isinstance(extra, dict) else None
        self.open = extra is not None
        items = schema.get("items")
        self.items = _Node(items) if isinstance(items, dict) else None
        inner = [*self.properties.values(), self.extra, self.items]
        self.embeds: bool = (self.embedded and not root) or any(node is not None and node.embeds for node in inner)

    def prune(self, value: JSONValue) -> Paths:
        """Prune a value. Returns the paths of what was dropped, from this node on: `.name`, `[0].name`."""
        if self.preserves:
            return self._prune_below(value)
        if type(value) is dict:
            return self._prune_object(value)
        if type(value) is not list:
            return ()
        dropped: list[str] = []
        for index, item in enumerate(value):
            if type(item) in _NESTED:
                below = _prune(item, self.items)
                if below:
                    dropped += [f"[{index}]{path}" for path in below]
        return dropped

    def _prune_object(self, value: JSONObject) -> Paths:
        properties = self.properties
        dropped: list[str] = []
        unknown: list[str] = []
        for name, item in value.items():
            if self.embedded and name in _META:
                continue
            node = properties.get(name)
            if node is None:
                if not self.open:
                    unknown.append(name)
                    continue
                node = self.extra
            if type(item) in _NESTED:
                below = _prune(item, node)
                if below:
                    dropped += [f".{name}{path}" for path in below]
        for name in unknown:
            del value[name]
            dropped.append(f".{name}")
        return dropped

    def _prune_below(self, value: JSONValue) -> Paths:
        """Keep what is unknown here; what is known is pruned by its own schema."""
        dropped: list[str] = []
        if isinstance(value, dict):
            for name, item in value.items():
                if type(item) not in _NESTED or (self.embedded and name in _META):
                    continue
                node = self.properties.get(name)
                if node is not None or self.open:
                    dropped += [f".{name}{path}" for path in _prune(item, node or self.extra)]
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                dropped += [f"[{index}]{path}" for path in self.items._prune_below(item)]
        return dropped

    def coerce(self, value: JSONValue, path: str, unknown: list[str]) -> None:
        """Hold the metadata of embedded resources below (not at) the root to ObjectMeta."""
        if not self.embeds:
            return
        if isinstance(value, list):
            if self.items is not None:
                for index, item in enumerate(value):
                    self.items.coerce(item, f"{path}[{index}]", unknown)
        elif isinstance(value, dict):
            if self.embedded and path:
                _coerce_embedded(value, path, unknown)
            for name, item in value.items():
                node = self.properties.get(name)
                if node is not None:
                    node.coerce(item, f"{path}.{name}" if path else name, unknown)
                elif self.extra is not None:
                    self.extra.coerce(item, f"{path}[{name}]", unknown)


def _coerce_embedded(value: JSONObject, path: str, unknown: list[str]) -> None:
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            raise MalformedMetadata(str(invalid_value(f"{path}.{name}", value[name], "must be a string")))
    if "metadata" in value:
        try:
            value["metadata"] = coerced(value["metadata"], f"{path}.metadata", unknown)
        except MalformedMetadata as error:
            raise MalformedMetadata(str(invalid_value(f"{path}.metadata", value["metadata"], str(error)))) from None


def _prune(value: JSONValue, node: _Node | None) -> Paths:
    if node is not None:
        return node.prune(value)
    dropped: list[str] = []
    if isinstance(value, dict):
        # Without a schema nothing is known, not even below `additionalProperties: true`.
        dropped = [f".{name}" for name in value]
        value.clear()
    elif isinstance(value, list):
        for index, item in enumerate(value):
            dropped += [f"[{index}]{path}" for path in _prune(item, None)]
    return dropped
