"""A value and what it was before an update, as far as the two belong together.

Properties and entries of maps belong together by name, items of lists of type map by their keys; items of other lists
belong to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

_NO_KEY = object()


class CorrelatedValue:
    """One value of an object that is created or updated; `old` is None when nothing belongs to it."""

    __slots__ = ("_equal", "_nearest", "_olds", "_schema", "new", "old")

    def __init__(
        self, new: JSONValue, old: JSONValue, schema: JSONObject, nearest: CorrelatedValue | None = None
    ) -> None:
        self.new = new
        self.old = old
        self._schema = schema
        # The value itself when it has an old one, else the closest one around it that has.
        self._nearest = self if old is not None else nearest
        self._equal: bool | None = None
        self._olds: Mapping[object, JSONValue] | None = None

    @property
    def is_untouched(self) -> bool:
        """Whether the value, or the closest one around it that has an old one, is as it was."""
        nearest = self._nearest
        if nearest is None:
            return False
        if nearest._equal is None:
            nearest._equal = _same(nearest.new, nearest.old, nearest._schema)
        return nearest._equal

    def member(self, name: str, value: JSONValue) -> CorrelatedValue:
        """A property, or an entry of a map."""
        if self.old is None:
            return CorrelatedValue(value, None, {}, self._nearest)
        old = self.old.get(name) if isinstance(self.old, dict) else None
        return CorrelatedValue(value, old, _below(self._schema, name) or {}, self._nearest)

    def unrelated(self, value: JSONValue, old: JSONValue) -> CorrelatedValue:
        """A part that is never taken for untouched."""
        change = CorrelatedValue(value, old, {})
        change._nearest = None
        return change

    def item(self, value: JSONValue) -> CorrelatedValue:
        """An item of a list."""
        if self._olds is None:
            self._olds = _keyed(self.old, self._schema)
        old = self._olds.get(_key(value, _keys(self._schema))) if self._olds else None
        return CorrelatedValue(value, old, mapping(self._schema, "items"), self._nearest)


def _below(schema: JSONObject, name: str) -> JSONObject | None:
    found = mapping(schema, "properties").get(name, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None


def _keys(schema: JSONObject) -> Sequence[str]:
    if text(schema, "type") != "array" or text(schema, "x-kubernetes-list-type") != "map":
        return ()
    return [str(key) for key in items(schema, "x-kubernetes-list-map-keys")]


def _key(item: JSONValue, keys: Sequence[str]) -> object:
    if not isinstance(item, dict):
        return _NO_KEY
    values = [item.get(key) for key in keys]
    if any(value is None or isinstance(value, dict | list) for value in values):
        return _NO_KEY
    # The type is part of the key: 1 and true are different.
    return tuple((type(value), value) for value in values)


def _keyed(old: JSONValue, schema: JSONObject) -> Mapping[object, JSONValue]:
    keys = _keys(schema)
    if not keys or not isinstance(old, list):
        return {}
    found: dict[object, JSONValue] = {}
    for item in old:
        found.setdefault(_key(item, keys), item)
    found.pop(_NO_KEY, None)
    return found


def _same(new: JSONValue, old: JSONValue, schema: JSONObject) -> bool:
    """Whether nothing was changed; the order of a list of type map is no change, a field without a schema always is."""
    if isinstance(new, dict) and isinstance(old, dict):
        return len(new) == len(old) and all(
            name in old and (nested := _below(schema, name)) is not None and _same(value, old[name], nested)
            for name, value in new.items()
        )
    if isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old):
            return False
        olds, keys = _keyed(old, schema), _keys(schema)
        if not olds:
            return new == old
        nested = mapping(schema, "items")
        return all((key := _key(item, keys)) in olds and _same(item, olds[key], nested) for item in new)
    return type(new) is type(old) and new == old
