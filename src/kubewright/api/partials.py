"""Server-side apply of just some fields.

An ordinary object claims more than a program means to own: required fields must be given, and defaults are sent.
`partial` makes an object in which nothing is set yet, to be filled in by assignment:

    web = partial(Widget, "web", namespace="default")
    web.spec.replicas = 3
    web.spec.template.containers.append(partial(Container, name="app", image="app:2"))
    await client.apply(web)      # owns .spec.replicas and that container's image, and nothing else

It is an ordinary `Widget` to type checkers and to the client. What is assigned is sent, a zero or an empty list too.
Everything else is absent, including structures, lists and maps that were only read. Fields that are not set hold
`msgspec.UNSET`. Optional structures (`Affinity | None`) are assigned: `web.spec.affinity = partial(Affinity)`.
The lower-level equivalent is `from_json(Widget, {...})`, whose manifest is applied as it stands.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, TypeVar, get_args, get_origin, get_type_hints, overload

from msgspec import NODEFAULT, UNSET
from msgspec.structs import FieldInfo, fields

from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Object, resource_info

ModelT = TypeVar("ModelT", bound=Model)
ObjectT = TypeVar("ObjectT", bound=Object)

PARTIAL = "_partial"
"""In the `__dict__` of an object that was made by `partial`."""


class _UnsetList(list[object]):
    """A list to append to; absent while it is empty."""


class _UnsetDict(dict[str, object]):
    """A dict to put entries into; absent while it is empty."""


@overload
def partial(cls: type[ObjectT], /, name: str, *, namespace: str = "") -> ObjectT: ...
@overload
def partial(cls: type[ModelT], /, **values: object) -> ModelT: ...
def partial(cls: type[Model], /, *names: object, **values: object) -> Model:
    """An object or a structure of type `cls` with nothing set but what is given here."""
    given: object = cls
    if not isinstance(given, type) or not issubclass(given, Model):
        raise TypeError(f"partial() takes the class of an object or a structure, as in partial(Pod, ...), not {cls!r}")
    if issubclass(cls, Dynamic):
        raise TypeError("partial() is for typed objects: a Dynamic one sends what its content has, and nothing else")
    if not issubclass(cls, Object):
        if names:
            raise TypeError(f"partial({cls.__name__}, ...) takes the fields of the structure by their names")
        return _partial(cls, values)
    name, namespace = names[0] if names else values.pop("name", ""), values.pop("namespace", "")
    if not name or not isinstance(name, str) or not isinstance(namespace, str) or names[1:] or values:
        raise TypeError(
            f'partial({cls.__name__}, ...) takes the name and the namespace, as in "web", namespace="default": '
            "assign the other fields afterwards"
        )
    info = resource_info(cls)
    # Metadata is whole: all its fields are absent unless they are set, and the client reads name and namespace.
    metadata = ObjectMeta(name=name, namespace=namespace)
    created = _partial(cls, {"api_version": info.gvk.api_version, "kind": info.gvk.kind, "metadata": metadata})
    created.__dict__[PARTIAL] = True
    return created


def set_fields(model: Model) -> dict[str, object]:
    """What is set of a partial object or structure, by JSON names. Scalars are left as they are."""
    return _set_fields(model)[0]


def _partial(cls: type[ModelT], values: Mapping[str, object]) -> ModelT:
    absent = {name: placeholder() for name, placeholder in _placeholders(cls).items() if name not in values}
    return cls(**{**absent, **values})


@cache
def _placeholders(cls: type[Model]) -> Mapping[str, Callable[[], object]]:
    """What each field holds until it is set: something to assign into for structures, lists and maps."""
    hints = get_type_hints(cls, include_extras=True)
    return {info.name: _placeholder(hints[info.name]) for info in fields(cls)}


def _placeholder(annotation: object) -> Callable[[], object]:
    if get_origin(annotation) is Annotated:
        return _placeholder(get_args(annotation)[0])
    origin = get_origin(annotation) or annotation
    if origin is types.NoneType:
        return lambda: None
    if origin is list:
        return _UnsetList
    if origin is dict:
        return _UnsetDict
    if isinstance(origin, type) and issubclass(origin, Model):
        return lambda: _partial(origin, {})
    return lambda: UNSET


def _set_fields(model: Model) -> tuple[dict[str, object], bool]:
    """The fields that are set, and whether any is not."""
    values = [(info, value, _set_part(value)) for info in fields(model) for value in (getattr(model, info.name),)]
    is_partial = any(part is UNSET for *_, part in values)
    return {
        info.encode_name: part
        for info, value, part in values
        # A structure that was not made by `partial` leaves out its defaults, as it does everywhere.
        if part is not UNSET and not (_is_default(info, value) and (value is None or not is_partial))
    }, is_partial


def _set_part(value: object) -> object:
    """The value without what is not set in it; UNSET when nothing is."""
    match value:
        case Model():
            content, is_partial = _set_fields(value)
            config = value.__struct_config__
            tag = {config.tag_field: config.tag} if config.tag_field is not None else {}
            return UNSET if is_partial and not content else {**tag, **content}
        case _UnsetList() | _UnsetDict() if not value:
            return UNSET
        case list():
            return [{} if (part := _set_part(item)) is UNSET else part for item in value]
        case dict():
            return {name: {} if (part := _set_part(item)) is UNSET else part for name, item in value.items()}
    return value


def _is_default(info: FieldInfo, value: object) -> bool:
    if info.default is not NODEFAULT:
        return bool(value == info.default)
    return info.default_factory in (list, dict) and not value
