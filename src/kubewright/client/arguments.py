"""What the verbs of a client accept, and the sentence for a caller who gives them something else.

Type checkers find these mistakes, too. What is checked here would otherwise fail somewhere deep inside, or be sent and
mean something else.
"""

from __future__ import annotations

import re
from typing import TypeVar, cast

from kubewright.api.resources import Object, ObjectType, ResourceInfo
from kubewright.client.patch import JSONPatch, MergePatch, Patch, PatchFrom, StrategicMergePatch
from kubewright.client.paths import ObjectName

T = TypeVar("T", bound=Object)

_NAMESPACE = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"


def kind_and_name(target: T | type[T], name: ObjectName | None) -> tuple[type[T], ObjectName]:
    """Which object is meant: by kind and name, or by an object that names itself."""
    if isinstance(target, ObjectType):
        if name is None:
            raise TypeError(f"which {target.__name__}? Give an object, or a kind and a name")
        return target, name
    _check_target(target, name)
    if name is not None:
        raise TypeError(
            f"the {target.kind} {target.key} names itself: leave out {name!r}, or give the kind "
            f"{type(target).__name__} with that name"
        )
    return type(target), target


def _check_target(target: object, name: object) -> None:
    if isinstance(target, str) and name is not None:
        check_kind(target)
    check_object(target, "an object, or a kind and a name")


def check_kind(kind: object, call: str = "") -> None:
    """Raise a TypeError unless it is the class of a kind. `call` is what it was given to, for the message."""
    if isinstance(kind, ObjectType):
        return
    match kind:
        case str():
            word = kind.rpartition(".")[2].removesuffix("s").capitalize() or "Pod"
            sentence = (
                f'a kind is given by its class, not by its name "{kind}": import it ("from kubewright.api.core.v1 '
                f'import Pod"), or make one with Dynamic.of("v1", "{word}")'
            )
        case Object():
            sentence = f"expected a kind, not the {kind.kind} {kind.key}: give its class {type(kind).__name__}"
        case list() | tuple() | set():
            sentence = f"expected a kind, not a {type(kind).__name__}: give them one by one"
        case type():
            sentence = (
                f"{kind.__name__} is not a kind: derive it from Resource and decorate it with "
                '@resource("group/version")'
            )
        case _:
            sentence = f"expected a kind, which is a class such as Pod, not {_shown(kind)}"
    raise TypeError(f"{call}: {sentence}" if call else sentence)


def check_object(obj: object, expected: str = "an object") -> None:
    """Raise a TypeError unless it is an object."""
    if isinstance(obj, Object):
        return
    if isinstance(obj, ObjectType):
        raise TypeError(f"expected {expected}, not just the kind {obj.__name__}: make one with {obj.__name__}(...)")
    if isinstance(obj, dict):
        kind = obj.get("kind")
        known = kind if isinstance(kind, str) and kind.isidentifier() else "Pod"
        raise TypeError(
            f"expected {expected}, not a dict: make one with from_json({known}, {{...}}) of kubewright.api, or with "
            f"{known}(metadata=ObjectMeta(...), ...)"
        )
    if isinstance(obj, str):
        raise TypeError(f'expected {expected}, not the text "{obj[:40]}": give the kind first, as in (Pod, "name")')
    if isinstance(obj, list | tuple):
        raise TypeError(f"expected {expected}, not a {type(obj).__name__}: give them one by one")
    raise TypeError(f"expected {expected}, not {_shown(obj)}")


def check_name(info: ResourceInfo, name: object, namespace: str | None) -> None:
    """Raise what is wrong with the name of an object, if anything."""
    kind = info.gvk.kind
    if not isinstance(name, str):
        raise TypeError(f"the name of a {kind} is a string, a key or an object, not {_shown(name)}")
    if not name:
        raise ValueError(f"the {kind} has no name")
    if "/" in name:
        where, _, called = name.rpartition("/")
        fix = f'"{called}", namespace="{where}"' if info.namespaced else f'"{called}"'
        raise ValueError(f'"{name}" cannot be the name of a {kind}: give {fix}')
    check_scope(info, namespace)


def check_scope(info: ResourceInfo, namespace: str | None) -> None:
    """Raise a ValueError for a namespace where there is none, and for what cannot be the name of one."""
    if namespace:
        check_namespace(namespace, "namespace")
    if namespace and info.namespaced is False:
        raise ValueError(f'{info.gvk.kind} is cluster-scoped and in no namespace: leave out namespace="{namespace}"')


def check_namespace(namespace: object, parameter: str) -> None:
    """Raise an error unless it can be the name of a namespace; a server answers any other with an empty list."""
    if not isinstance(namespace, str):
        raise TypeError(
            f"{parameter}= expects the name of one namespace, not {_shown(namespace)}: leave it out for all namespaces"
        )
    if not re.fullmatch(_NAMESPACE, namespace):
        fix = "leave it out for all namespaces" if namespace in ("*", "all") or not namespace else "give one name"
        raise ValueError(f'{parameter}="{namespace[:80]}" cannot be the name of a namespace: {fix}')


def name_and_patch(
    target: Object | type[Object], name: ObjectName | Patch | None, patch: Patch | None
) -> tuple[ObjectName | None, Patch | None]:
    """The second and third argument of `patch`: (object, patch), or (kind, name, patch)."""
    if isinstance(target, Object) and patch is None:
        return None, cast("Patch | None", name)
    if isinstance(name, MergePatch | JSONPatch | StrategicMergePatch | PatchFrom):
        raise TypeError(f"which {getattr(target, '__name__', target)}? Give a kind, a name and a patch, in this order")
    return name, patch


def check_patch(patch: object) -> None:
    """Raise a TypeError unless it is a patch."""
    if isinstance(patch, MergePatch | JSONPatch | StrategicMergePatch | PatchFrom):
        return
    if isinstance(patch, dict | list):
        fix = "MergePatch({...})" if isinstance(patch, dict) else "JSONPatch([...])"
        raise TypeError(f"expected a patch, not {_shown(patch)}: use {fix} of kubewright.client")
    raise TypeError(f"expected a patch (MergePatch, JSONPatch, StrategicMergePatch, patch_from), not {_shown(patch)}")


def _shown(value: object) -> str:
    """A value in a message: its type and how it begins; what is in an object may be secret."""
    if isinstance(value, Object):
        return f"the {value.kind} {value.key}"
    if isinstance(value, str | int | float | None):
        return repr(value)[:60]
    return f"a {type(value).__name__}"
