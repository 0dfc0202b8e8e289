"""How large values of a schema can be: the limits it sets, or else what fits into a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.cel.escaping import escaped
from kubewright.controlplane.embedded.cel.views import with_object_meta

_MAX_REQUEST_SIZE: Final = 3 * 1024 * 1024
# The longest and the shortest text of each format, with its quotation marks.
_MAX_LENGTHS: Final = {"duration": 32, "date": 12, "date-time": 32}
_MIN_LENGTHS: Final = {"duration": 3, "date": 12, "date-time": 21}


@dataclass(frozen=True)
class Extent:
    """The limits of one schema; `maximum` counts elements or bytes, and is 0 for what has neither."""

    schema: JSONObject

    @cached_property
    def fields(self) -> Mapping[str, Extent]:
        """The properties that rules can name."""
        if self._type != "object" or isinstance(self.schema.get("additionalProperties"), dict):
            return {}
        found = {}
        for name, property_ in mapping(self.schema, "properties").items():
            key = escaped(name)
            if key is not None:
                found[key] = extent(mapping(property_))
        return found

    @cached_property
    def element(self) -> Extent | None:
        """Items of a list or values of a map."""
        nested = self.schema.get("items" if self._type == "array" else "additionalProperties")
        return extent(nested) if isinstance(nested, dict) else None

    @property
    def _type(self) -> str:
        return "" if self.schema.get("x-kubernetes-int-or-string") is True else text(self.schema, "type")

    @cached_property
    def maximum(self) -> int:
        """Elements of a list or map, bytes of a text."""
        element = self.element
        match self._type:
            case "array" if element is not None:
                limit = _limit(self.schema, "maxItems")
                return (_MAX_REQUEST_SIZE - 2) // (element.min_size + 1) if limit is None else limit
            case "object" if element is not None:
                limit = _limit(self.schema, "maxProperties")
                return (_MAX_REQUEST_SIZE - 2) // (element.min_size + 6) if limit is None else limit
            case "string" | "":
                return self._max_length
            case _:
                return 0

    @property
    def _max_length(self) -> int:
        format_, limit = text(self.schema, "format"), _limit(self.schema, "maxLength")
        if self._type and format_ in _MAX_LENGTHS:
            return _MAX_LENGTHS[format_]
        if limit is not None:
            # A character can be four bytes long.
            return limit if self._type and format_ == "byte" else limit * 4
        values = items(self.schema, "enum")
        if self._type and values and format_ != "byte":
            return max((len(value.encode()) for value in values if isinstance(value, str)), default=0)
        return _MAX_REQUEST_SIZE - 2

    @cached_property
    def min_size(self) -> int:
        """The least number of bytes a value takes in JSON."""
        match self._type:
            case "boolean":
                return 4
            case "integer" | "number" | "":
                return 1
            case "string":
                return _MIN_LENGTHS.get(text(self.schema, "format"), 2)
            case "object" if self.element is None:
                return self._min_object_size
            case _:
                return 2

    @property
    def _min_object_size(self) -> int:
        required = set(map(str, items(self.schema, "required")))
        size = 2
        for name, property_ in mapping(self.schema, "properties").items():
            if name in required and mapping(property_).get("default") is None:
                size += len(name.encode()) + extent(mapping(property_)).min_size + 4
        return size

    @property
    def cardinality(self) -> int:
        """How many such values fit into a request."""
        return _MAX_REQUEST_SIZE // (self.min_size + 1)

    def at(self, path: Sequence[str]) -> Extent | int | None:
        """What is at a path of fields, `@items`, `@values` and `@keys`; keys of maps have size 0."""
        current: Extent = self
        for index, name in enumerate(path):
            nested: Extent | None
            if name in ("@items", "@values"):
                nested = current.element
            elif name == "@keys":
                return 0 if current._type == "object" and current.element and index == len(path) - 1 else None
            else:
                nested = current.fields.get(name)
            if nested is None:
                return None
            current = nested
        return current


def extent(schema: JSONObject) -> Extent:
    """The limits of a schema within another one."""
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    return Extent(with_object_meta(schema) if embedded else schema)


def _limit(schema: JSONObject, name: str) -> int | None:
    value = schema.get(name)
    return max(int(value), 0) if isinstance(value, int | float) and not isinstance(value, bool) else None
