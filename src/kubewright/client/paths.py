"""The path and the query of a request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias
from urllib.parse import quote, urlencode

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object, ResourceInfo

FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
Propagation: TypeAlias = Literal["Orphan", "Background", "Foreground"]
Parameter: TypeAlias = tuple[str, str | int | bool | None]

_PLAIN = re.compile(r"[-A-Za-z0-9_.~]+")  # names that need no escapes, as nearly all


class Named(Protocol):
    """Anything that names an object: an `ObjectKey`, a reconcile request."""

    @property
    def namespace(self) -> str:
        """Empty for cluster-scoped objects."""

    @property
    def name(self) -> str:
        """The name."""


ObjectName: TypeAlias = str | Named | Object
"""An object of a kind: its name, a key such as a reconcile request, or any object of the same namespace and name."""


def api_root(gvk: GroupVersionKind) -> str:
    """`/api/v1` or `/apis/group/version`."""
    return f"/apis/{gvk.group}/{gvk.version}" if gvk.group else f"/api/{gvk.version}"


def collection_path(info: ResourceInfo, namespace: str) -> str:
    """The path of all objects of a kind, or of those in one namespace."""
    return _collection_path(info.gvk, info.plural, namespace if info.namespaced else "")


# A program writes to few kinds and namespaces, over and over.
@lru_cache(1024)
def _collection_path(gvk: GroupVersionKind, plural: str, namespace: str) -> str:
    scope = f"/namespaces/{segment(namespace)}" if namespace else ""
    return f"{api_root(gvk)}{scope}/{plural}"


def object_path(info: ResourceInfo, namespace: str, name: str, subresource: str = "") -> str:
    """The path of one object or of one of its subresources."""
    path = f"{collection_path(info, namespace)}/{segment(name)}"
    return f"{path}/{subresource}" if subresource else path


def resource_at(target: str) -> tuple[str, str, str] | None:
    """Group, version and plural of what a request is about; None for what is no resource, such as discovery."""
    steps = target.partition("?")[0].split("/")[1:]
    match steps:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        del rest[:2]
    return (group, version, rest[0]) if rest else None


def may_be_custom(group: str) -> bool:
    """Whether kinds of this group may come from a CustomResourceDefinition."""
    # The groups of definitions have a dot; and definitions are not defined by definitions.
    return "." in group and group != "apiextensions.k8s.io"


def segment(name: str) -> str:
    """A name as one step of a path: never more, whatever is in it."""
    if not name or name in (".", ".."):
        raise ValueError(f'"{name}" cannot be the name of an object')
    return name if _PLAIN.fullmatch(name) else quote(name, safe="")


def query(parameters: Iterable[Parameter]) -> str:
    """`?a=b&c=d` of what is set; empty when nothing is. Booleans are spelt as Go reads them."""
    pairs = [
        (name, ("true" if value else "false") if isinstance(value, bool) else value)
        for name, value in parameters
        if value is not None and value != ""
    ]
    return _encoded(tuple(pairs)) if pairs else ""


# A program's writes all have the same few parameters.
@lru_cache(256)
def _encoded(pairs: tuple[tuple[str, str | int], ...]) -> str:
    return f"?{urlencode(pairs)}"
