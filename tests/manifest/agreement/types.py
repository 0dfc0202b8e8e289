"""Random types: everything that a definition can be rendered from, with every marker, nested in every way.

A type comes as the annotation of a field and the way the field has it: required, optional, nullable or with a default.
"""

from __future__ import annotations

import enum
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from random import Random
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, Union, cast, get_args, get_origin

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from tests.manifest.agreement.values import Unsatisfiable, value_of

from kubewright.api.codec import decode_model, encode
from kubewright.api.core.v1 import ConfigMap, ContainerPort, EnvVar, PodTemplateSpec, ResourceRequirements
from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Atomic,
    Base64,
    Double,
    ExactlyOneOf,
    FieldUnion,
    Format,
    Immutable,
    Int32,
    Int64,
    JSONValue,
    ListMap,
    ListSet,
    Rule,
    Values,
)
from kubewright.api.meta import Condition, LabelSelector, ObjectMeta
from kubewright.api.model import BuiltIn, Model, ModelMeta
from kubewright.api.naming import json_name
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.time import MicroTime, Time

T = TypeVar("T")
Field = tuple[Any, object]
"""An annotation and a default, which is ... where the field is required."""

_numbers = itertools.count()


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Port = NewType("Port", int)

EVEN = Rule("self % 2 == 0", message="must be even")
SHORT = Rule("self.size() <= 2", message="must be short")
NOT_ADMIN = Rule("self != 'admin'", message="is reserved")

SCALARS: list[Any] = [
    bool,
    int,
    float,
    str,
    bytes,
    Int32,
    Int64,
    Double,
    Base64,
    Port,
    Quantity,
    Time,
    MicroTime,
    IntOrString,
    int | str,
    int | float,
    Color,
    Level,
    Literal["a", "b"],
    Literal[1, 2],
    Literal["a", None],
    Literal["a"] | Literal["b"],
    Annotated[str, Values(("Always", "Never"))],
    JSONValue,
    Raw,
    int | Annotated[str, Meta(pattern="^[0-9]+%$")],
    Annotated[int, Meta(ge=1)] | str,
    Annotated[str, Meta(min_length=1, max_length=3)],
    Annotated[str, Meta(pattern="^[a-z]+$", title="Words", examples=["a"])],
    Annotated[str, Meta(pattern=r"\d", description="Has a digit.")],
    Annotated[str, Meta(max_length=9), NOT_ADMIN],
    Annotated[str, Meta(max_length=3), Immutable()],
    Annotated[str, Meta(extra_json_schema={"minLength": 2})],
    Annotated[str, Format("uuid")],
    Annotated[str, Format("ipv4")],
    Annotated[str, Format("date")],
    Annotated[int, Meta(ge=1, le=5)],
    Annotated[int, Meta(gt=-3, lt=3)],
    Annotated[int, Meta(multiple_of=3)],
    Annotated[int, Meta(ge=0, le=100), EVEN],
    Annotated[Int32, Meta(ge=1)],
    Annotated[int, Meta(extra_json_schema={"maximum": 7})],
    Annotated[float, Meta(gt=0, lt=1)],
    Annotated[float, Meta(ge=-1, le=1)],
    Annotated[float, Meta(multiple_of=2)],
]
BUILT_IN: list[Any] = [LabelSelector, EnvVar, ResourceRequirements, ConfigMap, ObjectMeta, Condition, PodTemplateSpec]
KEYS: list[Any] = [str, int, Color, Literal["a", "b"], bool, Annotated[str, Meta(max_length=2)]]
NAMES = ("size", "max_size", "from_", "namespace", "items", "x")


class RandomTypes:
    """Makes types, the same ones for the same random numbers."""

    def __init__(self, random: Random, is_accepted: Callable[[Any, JSONValue], bool]) -> None:
        self._random = random
        self._is_accepted = is_accepted

    def field(self, annotation: Any) -> Field:
        """One of the ways in which a field can have a type."""
        may_be_null = annotation in (Any, Raw)
        way = self._random.choice(["required", "optional", "default"] + ["nullable", "null"] * (not may_be_null))
        match way:
            case _ if annotation is Raw:  # whose null is no None
                return annotation, ...
            case "required":
                return annotation, ...
            case "optional":
                return annotation if may_be_null else annotation | None, None
            case "nullable":
                return annotation | UnsetType | None, UNSET
            case "null":
                return annotation | None, ...
        try:
            return annotation, self._default(annotation)
        except Unsatisfiable:
            return annotation, ...

    def _default(self, annotation: Any) -> object:
        value = value_of(self._random, annotation)
        if not self._is_accepted(annotation, value):  # by a rule, for instance
            raise Unsatisfiable
        holder = structure({"value": (annotation, ...)})
        return cast(Any, decode_model(holder, encode({"value": value}))).value

    def type(self, depth: int) -> Any:
        """A type that nests at most so deep."""
        if not depth or self._random.random() < 0.3:
            return self._random.choice(SCALARS)
        kinds = [self._list, self._map, self._model, self._model, self._union, self._generic, self._built_in]
        return self._random.choice(kinds)(depth - 1)

    def _built_in(self, depth: int) -> Any:
        return self._random.choice([*BUILT_IN, dict[str, JSONValue]])

    def _item(self, depth: int) -> Any:
        item = self.type(depth)
        return item | None if item not in (Any, Raw) and self._random.random() < 0.3 else item

    def _list(self, depth: int) -> Any:
        match self._random.randrange(6):
            case 0:
                item: Any = self._random.choice(KEYS)
                return Annotated[list[item], ListSet()]
            case 1:
                return self._keyed_list()
            case 2:
                return Annotated[list[ContainerPort], ListMap("containerPort", "protocol")]
            case 3:
                return Annotated[list[Annotated[int, Meta(ge=0, le=9)]], Meta(max_length=4), SHORT]
        item = self._item(depth)
        markers = [None, Meta(max_length=2), Meta(min_length=1, max_length=3), Meta(min_length=2), Atomic()]
        return self._marked(list[item], markers)

    def _keyed_list(self) -> Any:
        """Of structures, or of members of a union, that are identified by one or two keys."""
        keys: dict[str, Field] = {"name": (self._random.choice(KEYS), ...)}
        if self._random.random() < 0.5:
            keys["scope_"] = (str, "main")
        choices: list[list[str | None]] = [[None], [None], ["One", "Two"]]
        tags = self._random.choice(choices)
        members = [structure({**keys, **self._fields(1, f"_{number}")}, tag=tag) for number, tag in enumerate(tags)]
        item: Any = functools.reduce(operator.or_, members)
        return Annotated[list[item], ListMap(*map(json_name, keys))]

    def _map(self, depth: int) -> Any:
        value: Any = self._item(depth)
        return self._marked(
            dict[str, value], [None, Meta(max_length=2), Meta(min_length=1), Atomic(), Meta(title="Map")]
        )

    def _marked(self, annotation: Any, markers: Sequence[object]) -> Any:
        marker = self._random.choice(markers)
        return annotation if marker is None else Annotated[annotation, marker]

    def _generic(self, depth: int) -> Any:
        generic: Any = Generic
        box: Any = structure({"content": (T, ...), "lid": (bool, False)}, bases=(Model, generic[T]))
        return box[self.type(depth)]

    def _model(self, depth: int) -> Any:
        own = self._fields(depth)
        absent = [json_name(name) for name, (annotation, default) in own.items() if default is None and annotation]
        rules: list[FieldUnion] = []
        if len(absent) > 1 and self._random.random() < 0.5:
            rules = [self._random.choice([ExactlyOneOf, AtMostOneOf, AtLeastOneOf])(*absent[:2])]
        return self._marked(structure(own, rules=rules), [None, None, None, Atomic()])

    def _union(self, depth: int) -> Any:
        common = self._fields(min(depth, 1), "_common")
        tag_field = self._random.choice(["type", "kind"])
        members: list[type[Model]] = []
        for tag in self._random.choice([["File", "URL"], ["a", "b/c", "d-e"]]):
            own = self._fields(depth, f"_{len(members)}")
            shared = {name: field for name, field in common.items() if self._random.random() < 0.7}
            members.append(structure({**own, **shared}, tag=tag, tag_field=tag_field))
        return functools.reduce(operator.or_, members)

    def _fields(self, depth: int, suffix: str = "") -> dict[str, Field]:
        names = self._random.sample(NAMES, self._random.randrange(4))
        return {f"{name.rstrip('_')}{suffix}" if suffix else name: self.field(self.type(depth)) for name in names}


def structure(
    own: dict[str, Field],
    *,
    bases: tuple[Any, ...] = (Model,),
    tag: str | None = None,
    tag_field: str | None = None,
    rules: list[FieldUnion] | None = None,
) -> type[Model]:
    """A class with these fields."""
    namespace: dict[str, object] = {
        "__annotations__": {name: annotation for name, (annotation, _) in own.items()},
        "__module__": __name__,
        **{name: default for name, (_, default) in own.items() if default is not ...},
    }
    if len(bases) > 1:
        namespace["__orig_bases__"] = bases
        bases = (Model, Generic)
    name = f"Model{next(_numbers)}"
    made = ModelMeta(name, bases, namespace, rules=rules or [], tag=tag, tag_field=tag_field if tag else None)
    assert issubclass(made, Struct)
    return cast("type[Model]", made)


def described(annotation: Any) -> str:
    """A type, and the structures in it."""
    return f"{annotation}; " + "; ".join(
        f"{each.__name__}: {each.__annotations__} {list(each.__rules__)} tag {each.__struct_config__.tag}"
        for each in dict.fromkeys(_structures(annotation))
    )


def _structures(annotation: Any) -> list[Any]:
    cls = get_origin(annotation) or annotation
    found = [each for argument in get_args(annotation) for each in _structures(argument)]
    if isinstance(cls, type) and issubclass(cls, Model) and cls.__module__ == __name__:
        return [cls, *(each for hint in cls.__annotations__.values() for each in _structures(hint)), *found]
    return found


def has_built_in(annotation: Any) -> bool:
    """Whether there are structures of Kubernetes in a type: they leave out zeros, and servers fill in their keys."""
    cls = get_origin(annotation) or annotation
    if isinstance(cls, type) and issubclass(cls, BuiltIn | Object):
        return True
    own = cls.__annotations__.values() if isinstance(cls, type) and issubclass(cls, Model) else ()
    return any(map(has_built_in, (*own, *get_args(annotation))))


def members_of(annotation: Any) -> list[Any]:
    """What a union is of, besides None."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return [each for each in get_args(annotation) if each not in (UnsetType, NoneType)] if is_union else [annotation]
