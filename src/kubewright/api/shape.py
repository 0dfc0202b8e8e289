"""How a type nests: which JSON fields hold structures, lists and maps, and which keys identify list items.

Derived once per class from its annotations. Used wherever JSON is handled beside its type.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields, replace

from kubewright.api.markers import Atomic, ListMap, ListSet, StrategicMerge
from kubewright.api.quantity import Quantity


class Shape(Struct, frozen=True):
    """The shape of one value. `item` is the shape of list items or map values, `keys` identify list items.

    `is_set` marks a list of scalars that are identified by their value, `is_atomic` a value that is replaced whole,
    `by_value` a structure that always exists, if only empty: an empty one counts as not set. `strategic` is how a
    strategic merge patch merges a list. `scalar` is the type of a scalar that can be written in several ways. `members`
    are the classes of a union, which has the fields of all of them; one that is in several has the same type in each.
    """

    form: Literal["scalar", "model", "list", "map"]
    model: type[Struct] | None = None
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    is_set: bool = False
    is_atomic: bool = False
    by_value: bool = False
    strategic: StrategicMerge | None = None
    scalar: type[Quantity | datetime] | None = None
    members: tuple[type[Struct], ...] = ()

    @property
    def fields(self) -> Mapping[str, Shape]:
        """The shapes of the fields of a model or a union by JSON name; empty for everything else."""
        if self.members:
            return _fields_of_all(self.members)
        return fields_of(self.model) if self.model is not None else {}

    @property
    def name(self) -> str:
        """The class of a model, or the classes of a union; empty for everything else."""
        return " or ".join(cls.__name__ for cls in self.members or (self.model,) if cls is not None)

    def excludes(self, value: Mapping[str, object], field: str) -> bool:
        """Whether `field` belongs to other members of a union than the one that `value` is of."""
        if not self.members or field not in self.fields:
            return False
        tag = value.get(self._tag_field)
        return not any(cls.__struct_config__.tag == tag and field in fields_of(cls) for cls in self.members)

    def is_one_member(self, *values: object) -> bool:
        """Whether these have fields in common: those of different members of a union do not."""
        if not self.members:
            return True
        tags = [value.get(self._tag_field) for value in values if isinstance(value, Mapping)]
        return all(tag == tags[0] for tag in tags)

    @property
    def _tag_field(self) -> str:
        return self.members[0].__struct_config__.tag_field or ""


SCALAR = Shape("scalar")


@cache
def fields_of(cls: type[Struct]) -> Mapping[str, Shape]:
    """The shape of each field of a model, by JSON name."""
    hints = get_type_hints(cls, include_extras=True)
    shapes = {field.encode_name: shape_of(hints[field.name]) for field in fields(cls)}
    by_value = {field.encode_name for field in fields(cls) if isinstance(field.default_factory, type)}
    tag_field = cls.__struct_config__.tag_field
    tag = {tag_field: SCALAR} if tag_field is not None else {}
    return tag | {
        name: replace(shape, by_value=True) if name in by_value and shape.form == "model" else shape
        for name, shape in shapes.items()
    }


@cache
def _fields_of_all(members: tuple[type[Struct], ...]) -> Mapping[str, Shape]:
    return {name: shape for cls in members for name, shape in fields_of(cls).items()}


def shape_of(annotation: object) -> Shape:
    """The shape of a type annotation. Of a union, what nests counts: `Spec | None` is a model."""
    markers: tuple[object, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        markers = tuple(rest)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Union or origin is types.UnionType:
        # Markers may be on the whole (`Annotated[list[Port] | None, ListMap("name")]`) or on the alternative.
        alternatives = (Annotated[(alternative, *markers)] if markers else alternative for alternative in arguments)
        nesting = [shape for shape in map(shape_of, alternatives) if shape is not SCALAR]
        members = tuple([shape.model for shape in nesting if shape.model is not None])
        if len(members) > 1:
            return replace(nesting[0], model=None, members=members)
        return nesting[0] if nesting else SCALAR
    if origin is list:
        strategic = next((marker for marker in markers if isinstance(marker, StrategicMerge)), None)
        item, is_set, is_atomic = shape_of(arguments[0]), ListSet() in markers, Atomic() in markers
        return Shape("list", None, item, _keys(markers), is_set, is_atomic, strategic=strategic)
    if origin is dict:
        return Shape("map", item=shape_of(arguments[1]), is_atomic=Atomic() in markers)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return Shape("model", model=annotation, is_atomic=Atomic() in markers)
    if isinstance(annotation, type) and issubclass(annotation, Quantity | datetime):
        return Shape("scalar", scalar=annotation)
    return SCALAR


def _keys(markers: tuple[object, ...]) -> tuple[str, ...]:
    for marker in markers:
        if isinstance(marker, ListMap):
            return marker.keys
        if isinstance(marker, Atomic):
            return ()
    return next(((marker.key,) for marker in markers if isinstance(marker, StrategicMerge) and marker.key), ())
