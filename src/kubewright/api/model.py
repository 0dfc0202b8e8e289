"""`Model`, the base of every structure in an object.

A model is a `msgspec.Struct`: keyword-only, camelCase in JSON (see `naming`), quick to decode and encode.
What is sent follows two rules. A field whose value is None and whose default is None is absent from the JSON.
A field with any other default is always sent, because the author of the type chose that default.

To tell null from absent, as custom resources with nullable fields may need, say so in the type:
`deadline: int | UnsetType | None = UNSET` is absent when UNSET and null when None.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, dataclass_transform

from msgspec import NODEFAULT, UNSET, Struct, StructMeta, field

from kubewright.api.markers import Rule
from kubewright.api.naming import json_name

_T = TypeVar("_T")
_Field: type[Any] = type(field(default=None))


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
        """A value of its own for one more instance."""
        return self._fresh()


def annotations_of(namespace: dict[str, Any]) -> dict[str, Any]:
    """The annotations in the body of a class that is being made, whether they are there already or, since Python 3.14,
    as a function that makes them. What they name need not exist yet.
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace

        annotate = get_annotate_from_class_namespace(namespace)
        if annotate is not None:
            return call_annotate_function(annotate, Format.FORWARDREF)
    annotations: dict[str, Any] = namespace.get("__annotations__", {})
    return annotations


class ModelMeta(StructMeta):
    """Gives every model the settings above, so that a subclass needs no keywords."""

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        *,
        rules: Sequence[Rule] = (),
        zero_is_absent: bool | None = None,
        dict: bool = False,
    ) -> ModelMeta:
        """Create the class. `rules` are enforced by the API server, besides those of the bases.

        `zero_is_absent` is explained at `BuiltIn` and inherited, `dict` is msgspec's.
        """
        if zero_is_absent is None:
            zero_is_absent = any(getattr(base, "__zero_is_absent__", False) for base in bases)
        if not zero_is_absent:
            for field_name in annotations_of(namespace):
                if field_name in namespace:
                    namespace[field_name] = _always_sent(namespace[field_name])
        created = super().__new__(
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
        )
        created.__zero_is_absent__ = zero_is_absent
        inherited = [rule for base in reversed(bases) for rule in getattr(base, "__rules__", ())]
        created.__rules__ = checked_rules([*inherited, *checked_rules(rules, name)], name)
        return created

    __zero_is_absent__: bool
    __rules__: tuple[Rule, ...]


def checked_rules(rules: Sequence[Rule], where: str) -> tuple[Rule, ...]:
    """The rules, each once; a TypeError that shows how to write them when they are anything else."""
    given: object = rules
    if not isinstance(given, list | tuple) or not all(isinstance(rule, Rule) and rule.rule.strip() for rule in given):
        raise TypeError(f'{where}: expected rules=[Rule("self.min <= self.max", message="...")], found {given!r}')
    return tuple(dict.fromkeys(rules))


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


class BuiltIn(Model, zero_is_absent=True):
    """A structure of Kubernetes itself: a field at its default (None, "", 0, [] or {}) is absent, as Go's omitempty."""
