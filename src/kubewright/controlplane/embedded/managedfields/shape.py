"""Structures prepared for walks over values: every lookup is done once per schema.

A `MergeShape` adds two things to a `Structure`: which names are fields of their own and which are merely keys of a map,
and the metadata that every custom resource has whatever its schema says.
"""

from __future__ import annotations

from functools import cache, lru_cache

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import (
    SCALAR,
    UNTYPED,
    ScalarType,
    SchemaStructure,
    Structure,
    structure_of,
)
from kubewright.controlplane.embedded.managedfields.fieldset import canonical, quoted


class Untrackable(ValueError):
    """An item of a list has nothing that identifies it."""


class MergeShape:
    """How one value is walked.

    `is_leaf` values are owned, replaced and compared whole. Of the others, those with `holds_names` have named values,
    those with `holds_items` have items known by an element; with neither, the value itself decides: objects have named
    values, all else is whole.
    """

    __slots__ = ("_element", "_keys", "_named", "_opens", "_structure", "holds_items", "holds_names", "is_leaf")

    def __init__(self, structure: Structure, *, opens: bool = False) -> None:
        self._structure = structure
        self._opens = opens or structure.preserves_unknown
        self._named: dict[str, MergeShape] = {}
        self._element: MergeShape | None = None
        form = structure.form
        self.holds_names = form in ("struct", "map")
        self.holds_items = form == "list"
        self.is_leaf = form == "scalar" or structure.atomic or (self.holds_items and structure.list_type == "atomic")
        keys = structure.list_keys if structure.list_type == "map" else ()
        self._keys = tuple(sorted(keys))

    @property
    def is_atomic(self) -> bool:
        """Whether the value has parts that are owned with it."""
        return self.is_leaf and self._structure.form != "scalar"

    @property
    def scalar_type(self) -> ScalarType:
        """What a scalar may be."""
        return self._structure.scalar_type

    @property
    def is_untyped(self) -> bool:
        """Whether the schema says nothing about the value."""
        return not (self.is_leaf or self.holds_names or self.holds_items)

    def field(self, name: str) -> MergeShape:
        """The shape of a field of a struct, or of a value of a map."""
        return self._named.get(name) or self._found(name)

    def is_named(self, name: str) -> bool:
        """Whether the schema declares this field, rather than letting it be a key of a map or an unknown field."""
        self.field(name)
        return name in self._named

    def allows(self, name: str) -> bool:
        """Whether there may be such a field at all."""
        return self._opens or self.is_untyped or self._structure.form == "map" or self.is_named(name)

    def _found(self, name: str) -> MergeShape:
        structure = None if self._structure.form == "map" else self._structure.field(name)
        is_custom = isinstance(structure, SchemaStructure)
        if structure is None or (
            structure is UNTYPED and (self._opens or isinstance(self._structure, SchemaStructure))
        ):
            return self.element
        shape = self._named[name] = MergeShape(structure, opens=self._opens and is_custom)
        return shape

    @property
    def element(self) -> MergeShape:
        """The shape of items of a list, and of the values of a map."""
        if self._element is None:
            known = self._structure.form in ("map", "list")
            self._element = MergeShape(self._structure.item, opens=self._opens) if known else ANYTHING
        return self._element

    def item_element(self, item: JSONValue) -> str:
        """The path element of an item of a list; Untrackable when nothing identifies it."""
        if not self._keys:
            return _set_element(item)
        if not isinstance(item, dict):
            kind = "a null element" if item is None else "non-map elements"
            raise Untrackable(f"associative list with keys may not have {kind}")
        parts = []
        for key in self._keys:
            value = item.get(key)
            if value is None and key not in item:
                value = self._default(key)
                if value is None:
                    continue
            parts.append(f"{quoted(key)}:{canonical(value)}")
        if not parts:
            names = " ".join(quoted(key) for key in self._structure.list_keys)
            raise Untrackable(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return f"k:{{{','.join(parts)}}}"

    def _default(self, key: str) -> JSONValue:
        return self._structure.item.default(key)


def _set_element(item: JSONValue) -> str:
    if isinstance(item, dict):
        raise Untrackable("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise Untrackable("not supported: associative list with lists as elements")
    if item is None:
        raise Untrackable("associative list without keys has an element that's an explicit null")
    return f"v:{canonical(item)}"


ANYTHING = MergeShape(UNTYPED)


class _CustomResource(Structure):
    """A custom resource: its schema, and the metadata of every object."""

    form = "struct"

    def __init__(self, schema: SchemaStructure) -> None:
        self._schema = schema
        self.preserves_unknown = schema.preserves_unknown

    def field(self, name: str) -> Structure | None:
        if name == "metadata":
            return _metadata()
        if name in ("apiVersion", "kind"):
            return SCALAR
        return self._schema.field(name)


@cache
def _metadata() -> Structure:
    metadata = structure_of(ConfigMap).field("metadata")
    return metadata if metadata is not None else UNTYPED


# Bounded, because every change of a custom resource definition brings a new structure.
@lru_cache(maxsize=1024)
def shape_of(structure: Structure) -> MergeShape:
    """The shape of the objects of a kind."""
    return MergeShape(_CustomResource(structure) if isinstance(structure, SchemaStructure) else structure)
