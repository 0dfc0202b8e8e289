"""`Model`, the base of every structure in an object.

A model is a `msgspec.Struct`: keyword-only, camelCase in JSON (see `naming`), quick to decode and encode.
Two rules decide what is sent. A field whose value is None and whose default is None is absent from the JSON.
A field with any other default is always sent, because the type declares that default.

To distinguish null from absent, as custom resources with nullable fields may need, write so in the type:
`deadline: int | UnsetType | None = UNSET` is absent when UNSET and null when None.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, dataclass_transform

from msgspec import NODEFAULT, UNSET, Struct, StructMeta, field

from kubewright.api.markers import FieldUnion, Rule
from kubewright.api.naming import json_name

_T = TypeVar("_T")
_Field: type[Any] = type(field(default=None))
_TAG = "[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?"
_TAG_FIELD = "[a-z][A-Za-z0-9]*"
_NO_FIELDS = (FunctionType, property, classmethod, staticmethod, type)
"""What a class has besides fields: methods and classes."""


class Default(Generic[_T]):
    """A default that is always sent: a fresh copy of `value` for every instance.

    msgspec leaves out what is identical to a field's default; a factory has no identity to compare with.
    """

    __slots__ = ("_fresh", "value")

    def __init__(self, value: _T) -> None:
        self.value = value
        self._fresh: Callable[[], _T]
        if isinstance(value, (str, int, float, bool, bytes, tuple, frozenset)):
            self._fresh = lambda: value
        elif value == [] or value == {}:
            # What most mutable defaults are; a deepcopy of them takes ten times as long.
            self._fresh = type(value)
        else:
            self._fresh = lambda: copy.deepcopy(value)

    def __call__(self) -> _T:
        """The default of one more instance."""
        return self._fresh()


def annotations_of(namespace: dict[str, Any]) -> dict[str, Any]:
    """The annotations in the body of a class that is being made, whether they are there already or, since Python 3.14,
    as a function that makes them. What they name need not exist yet.
    """
    # What is there already comes first: a metaclass may have added to what the body says.
    if sys.version_info >= (3, 14) and "__annotations__" not in namespace:
        from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace

        annotate = get_annotate_from_class_namespace(namespace)
        if annotate is not None:
            return call_annotate_function(annotate, Format.FORWARDREF)
    annotations: dict[str, Any] = namespace.get("__annotations__", {})
    return annotations


class ModelMeta(StructMeta):
    """The metaclass that gives every model the settings above, so that a subclass needs no keywords."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        *,
        rules: Sequence[Rule | FieldUnion] = (),
        redacted: Sequence[str] = (),
        tag: str | None = None,
        tag_field: str | None = None,
        zero_is_absent: bool | None = None,
        dict: bool = False,
    ) -> ModelMeta:
        """Create the class. `rules` are enforced by the API server, besides those of the bases.

        The fields named by `redacted` hold credentials: `repr` does not show them.
        `tag` makes the class a member of unions (`source: FileSource | UrlSource`): it is sent as the field `tag_field`
        (its JSON name, "type" unless given), by which decoding finds the class.
        `zero_is_absent` is explained at `BuiltIn` and inherited, `dict` is msgspec's.
        """
        if zero_is_absent is None:
            zero_is_absent = any(getattr(base, "__zero_is_absent__", False) for base in bases)
        if redacted:
            namespace["__repr__"] = _redacted_repr
            namespace["__rich_repr__"] = _redacted_rich_repr
        if not zero_is_absent:
            # Only here: the structures of Kubernetes itself are generated, and 200 of them are made at every start.
            annotations = annotations_of(namespace)
            _check_fields(name, namespace, annotations)
            for field_name, annotation in annotations.items():
                if field_name in namespace and not _is_class_variable(annotation):
                    namespace[field_name] = _always_sent(namespace[field_name])
        inherited = [rule for base in reversed(bases) for rule in getattr(base, "__rules__", ())]
        # Set before the class is made: setting them afterwards makes Python go through all methods of the class again.
        namespace["__zero_is_absent__"] = zero_is_absent
        namespace["__redacted__"] = frozenset(redacted)
        namespace["__rules__"] = (
            checked_rules([*inherited, *checked_rules(rules, name)], name) if inherited or rules else ()
        )
        if tag is not None or tag_field is not None:
            _check_tag(name, tag, tag_field)
        try:
            return super().__new__(
                mcls,
                name,
                bases,
                namespace,
                kw_only=True,
                omit_defaults=True,
                rename=json_name,
                dict=dict,
                # Objects are trees, so that nothing is left to the collector; tracking them made decoding 3 x slower.
                gc=dict,
                tag=tag,
                tag_field=tag_field,
            )
        except ValueError as error:
            if "tag_field" not in str(error):
                raise
            raise TypeError(
                f"{name}: its tag is sent as a field, and cannot be a field of the class as well: remove the field, "
                "as the class says which one it is, or give the tag another one with tag_field="
            ) from None

    if not TYPE_CHECKING:  # to type checkers, the fields are the arguments

        def __call__(*args: object, **values: object) -> object:
            """A new instance. An error names the class and the field that the arguments are wrong in."""
            # The class is among the arguments: to take it out and put it back would cost a fifth of an instance.
            try:
                return instance(*args, **values)
            except TypeError as error:
                raise_construction_error(error, *args, values=values)

    __zero_is_absent__: bool
    __redacted__: frozenset[str]
    __rules__: tuple[Rule | FieldUnion, ...]


instance = StructMeta.__call__
"""Makes a structure without explaining errors."""


def raise_construction_error(error: TypeError, cls: type, *args: object, values: Mapping[str, object]) -> NoReturn:
    """Raise the error with the class, the field and the fix in its message."""
    from kubewright.api.mistakes import construction_error

    explained = construction_error(error, cls, args, values)
    if explained is error:  # of a __post_init__, for instance: it keeps its cause
        raise error
    raise explained from None


def _is_class_variable(annotation: object) -> bool:
    # As text: with the future import annotations are text, and what they name need not exist yet.
    return "ClassVar" in str(annotation)


def _check_fields(name: str, namespace: dict[str, Any], annotations: dict[str, Any]) -> None:
    """Refuse attributes that would silently not be fields, and private ones, which would be sent."""
    for field_name, annotation in annotations.items():
        if field_name.startswith("_") and not _is_class_variable(annotation):
            raise TypeError(
                f"{name}.{field_name}: the fields of a model are sent to the API server and cannot be private: "
                f"rename it, or keep it in the reconciler ({field_name}: ClassVar[...] is no field)"
            )
    for field_name, value in namespace.items():
        if field_name.startswith("_") or field_name in annotations or isinstance(value, _NO_FIELDS):
            continue
        raise TypeError(
            f"{name}.{field_name} has no type and so is no field: write "
            f"{field_name}: {type(value).__name__} = {value!r} ({field_name}: ClassVar[...] for a class attribute)"
        )


def _redacted_rich_repr(self: Struct) -> list[tuple[str, object]]:
    hidden = type(self).__redacted__  # type: ignore[attr-defined]  # a class attribute of every model
    return [
        (name, "<redacted>" if name in hidden and value else value)
        for name in self.__struct_fields__
        for value in (getattr(self, name),)
    ]


def _redacted_repr(self: Struct) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in _redacted_rich_repr(self))})"


def checked_rules(rules: Sequence[Rule | FieldUnion], where: str) -> tuple[Rule | FieldUnion, ...]:
    """The rules, each once; a TypeError that shows how to write them when they are anything else."""
    given: object = rules
    if not isinstance(given, list | tuple) or not all(
        isinstance(rule, FieldUnion) or (isinstance(rule, Rule) and rule.rule.strip()) for rule in given
    ):
        raise TypeError(f'{where}: expected rules=[Rule("self.min <= self.max", message="...")], found {given!r}')
    for rule in rules:
        if isinstance(rule, FieldUnion) and (len(rule.fields) < 2 or len(set(rule.fields)) < len(rule.fields)):
            raise TypeError(f"{where}: {rule!r} needs the names of at least two different fields")
    return tuple(dict.fromkeys(rules))


def is_tag(value: object) -> bool:
    """Whether a class can have that tag."""
    return isinstance(value, str) and re.fullmatch(_TAG, value) is not None


def is_tag_field(value: object) -> bool:
    """Whether a tag can be sent as a field of that name, which is as JSON has it."""
    return isinstance(value, str) and re.fullmatch(_TAG_FIELD, value) is not None


def _check_tag(name: str, tag: object, tag_field: object) -> None:
    """Raise a TypeError that shows how to write a tag when it is anything else."""
    if tag is not None and not is_tag(tag):
        raise TypeError(f'{name}: expected tag="File", of letters, digits, and . _ / - between them, found {tag!r}')
    if tag_field is not None and not is_tag_field(tag_field):
        raise TypeError(f'{name}: expected tag_field="type", a field as JSON names it, found {tag_field!r}')


def _always_sent(default: object) -> object:
    """The field's default, wrapped unless it is None, UNSET or an explicit factory."""
    name = None
    if isinstance(default, _Field):
        if default.default is NODEFAULT:
            return default
        name, default = default.name, default.default
    if default is None or default is UNSET:
        return field(default=default, name=name)
    return field(default_factory=Default(default), name=name)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Model(Struct, metaclass=ModelMeta):
    """A structure of an object: write the fields as annotations, with defaults where they are optional."""

    if not TYPE_CHECKING:  # to type checkers, a class with these two has every attribute

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):  # of protocols that a model does not have, such as __deepcopy__
                raise AttributeError(name)
            if class_attribute(type(self), name) is not None:
                # A property, whose AttributeError Python has dropped to come here: raise it again.
                return object.__getattribute__(self, name)
            raise no_such_field(self, name)

        def __setattr__(self, name: str, value: object) -> None:
            try:
                _set_field(self, name, value)
            except AttributeError:
                if class_attribute(type(self), name) is not None:  # a property, or a method
                    raise
                raise no_such_field(self, name) from None


_set_field = Struct.__setattr__


def set_field(model: Model, name: str, value: object) -> None:
    """Set a field or property of a model with a `__dict__`: anything else would be kept there, and never be sent."""
    if name not in model.__struct_fields__ and not isinstance(class_attribute(type(model), name), property):
        raise no_such_field(model, name)
    _set_field(model, name, value)


def has_field(model: object, name: str) -> bool:
    """Whether a model has a field of that name. `hasattr` makes an error that explains what it has, to no use."""
    return isinstance(model, Struct) and name in model.__struct_fields__


def class_attribute(cls: type, name: str) -> object:
    """What the body of a class, or of one of its bases, has by a name: a property or a method, for instance."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def no_such_field(model: Model, name: str) -> AttributeError:
    """The error for an attribute that a model does not have."""
    from kubewright.api.mistakes import attribute_error

    return attribute_error(model, name)


class BuiltIn(Model, zero_is_absent=True):
    """A structure of Kubernetes itself: a field at its default (None, "", 0, [] or {}) is absent, as Go's omitempty."""
