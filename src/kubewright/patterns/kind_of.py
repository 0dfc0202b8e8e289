"""Which kind a reconciler class is for, from its base class: `class WidgetReconciler(ObjectReconciler[Widget])`."""

from __future__ import annotations

from typing import get_args

from kubewright.api import Object


def kind_of(cls: type, base: type) -> type[Object]:
    """The kind that a class names in its base, itself or by inheritance. Raises TypeError when there is none."""
    for each in cls.__mro__:
        for generic in getattr(each, "__orig_bases__", ()):
            for argument in get_args(generic):
                if isinstance(argument, type) and issubclass(argument, Object):
                    return argument
    raise TypeError(f"{cls.__name__} does not name its kind: derive it from {base.__name__}[Widget], with your kind")
