"""Which kind a reconciler class is for, from its base class: `class WidgetReconciler(ObjectReconciler[Widget])`."""

from __future__ import annotations

from typing import TypeVar, get_args, get_origin

from kubewright.api import Object


def kind_of(cls: type, base: type) -> type[Object] | None:
    """The kind that a class names as the argument of `base`, itself or by inheritance.

    None for a class that leaves it to those derived from it. Raises TypeError when there is none.
    """
    argument = _argument(cls, base)
    if isinstance(argument, TypeVar):
        return None
    if isinstance(argument, type) and issubclass(argument, Object):
        return argument
    raise TypeError(f"{cls.__name__} does not name its kind: derive it from {base.__name__}[Widget], with your kind")


def _argument(cls: type, base: type) -> object:
    """What the one type parameter of `base` is in a class: a type, a type variable, or None."""
    for generic in getattr(cls, "__orig_bases__", cls.__bases__):
        origin = get_origin(generic) or generic
        if not issubclass(origin, base):
            continue
        found = get_args(generic)[0] if origin is base and get_args(generic) else _argument(origin, base)
        if isinstance(found, TypeVar) and origin is not base:
            parameters: tuple[object, ...] = getattr(origin, "__parameters__", ())
            given = get_args(generic)
            found = given[parameters.index(found)] if given and found in parameters else found
        return found
    return None
