"""`Scheme`: which Python type stands for which kind.

A scheme is a value, not a global: two managers in one program may know different kinds. Kubernetes' own kinds are
known to every scheme and imported when first used; a kind that is not registered is `Dynamic`.
"""

from __future__ import annotations

import importlib
from functools import cache

from msgspec import DecodeError as JSONError
from msgspec import Struct
from msgspec.json import Decoder

from kubewright.api.builtin import MODULES
from kubewright.api.codec import decode
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object, resource_info


class _Kind(Struct, rename="camel"):
    api_version: str
    kind: str


_kind = Decoder(_Kind)


class Scheme:
    """The types a program works with, by kind."""

    def __init__(self, *types: type[Object]) -> None:
        self._types: dict[GroupVersionKind, type[Object]] = {}
        for cls in types:
            self.register(cls)

    def register(self, cls: type[Object]) -> None:
        """Make `cls` the type of its kind here. A kind has one type: another class for it is an error."""
        gvk = resource_info(cls).gvk
        known = self._types.setdefault(gvk, cls)
        if known is not cls:
            raise ValueError(f"{gvk} is registered as {known.__qualname__} already, not as {cls.__qualname__}")

    def type_for(self, api_version: str, kind: str) -> type[Object]:
        """The registered type, else Kubernetes' own, else a `Dynamic` one."""
        gvk = GroupVersionKind.parse(api_version, kind)
        return self._types.get(gvk) or _built_in(gvk) or Dynamic.of(api_version, kind)

    def decode(self, raw: bytes) -> Object:
        """An object of the kind that its JSON names."""
        try:
            named = _kind.decode(raw)
            cls = self.type_for(named.api_version, named.kind)
        except (JSONError, ValueError) as error:
            raise DecodeError(f"not a Kubernetes object: {error}") from None
        return decode(cls, raw)


@cache
def built_in_kinds(api_version: str) -> tuple[type[Object], ...]:
    """The types of Kubernetes' own kinds in one group version."""
    module = importlib.import_module(MODULES[api_version])
    kinds = (_built_in(GroupVersionKind.parse(api_version, name)) for name in dir(module))
    return tuple(kind for kind in kinds if kind is not None)


def _built_in(gvk: GroupVersionKind) -> type[Object] | None:
    module = MODULES.get(gvk.api_version)
    if module is None:
        return None
    cls = getattr(importlib.import_module(module), gvk.kind, None)
    if isinstance(cls, type) and issubclass(cls, Object) and cls.__naming__.info is not None:
        return cls
    return None
