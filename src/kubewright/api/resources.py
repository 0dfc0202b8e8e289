"""`Object`, `Resource` and `@resource`: from a Python class to a kind.

    @resource("apps.mycompany.com/v1", short_names=["pm"])
    class PodManager(Resource[PodManagerSpec, PodManagerStatus]):
        "Keeps a number of identical pods running."

A class carries all that is known of its kind in its `ResourceInfo`; there is no global registry.
"""

from __future__ import annotations

import copy
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Generic, Self, TypeVar, get_args, get_origin

from msgspec import Struct, field

from kubewright.api.errors import explained
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.markers import FieldUnion, JSONValue, Rule
from kubewright.api.meta import OWNER_NAMESPACE, LocatedOwnerReference, ObjectMeta, OwnerReference
from kubewright.api.model import (
    Model,
    ModelMeta,
    annotations_of,
    checked_rules,
    instance,
    raise_construction_error,
    set_field,
)
from kubewright.api.naming import default_plural

SpecT = TypeVar("SpecT")
StatusT = TypeVar("StatusT")
ObjectT = TypeVar("ObjectT", bound="Object")

SECRET_KINDS = frozenset(("Secret", "TokenRequest", "TokenReview"))
"""The kinds that hold credentials: those with fields that Kubernetes marks with a data policy."""

# Compiled when a kind is first made: a program that works with `Dynamic` alone makes none.
_DNS_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_GROUP = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


class Column(Struct, frozen=True):
    """A column of `kubectl get`. `type` is guessed when empty; with a `priority` above 0 it needs `-o wide`."""

    name: str
    path: str
    type: str = ""
    description: str = ""
    format: str = ""
    priority: int = 0


class Scale(Struct, frozen=True):
    """The scale subresource: JSON paths of the desired and the observed replicas, and of the label selector."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


class ResourceInfo(Struct, frozen=True, kw_only=True):
    """What is known of a kind: its names, its scope, its subresources, and how its definition is rendered."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool | None = True  # None: not known without asking the server
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    columns: tuple[Column, ...] = ()
    scale: Scale | None = None
    selectable_fields: tuple[str, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: str | None = None
    rules: tuple[Rule | FieldUnion, ...] = ()
    age_column: bool = True
    extra_json_schema: Mapping[str, JSONValue] = {}
    definition_annotations: Mapping[str, str] = {}
    definition_labels: Mapping[str, str] = {}
    external: bool = False

    @property
    def has_status(self) -> bool:
        """True when status is written through its own endpoint, and ignored by all others."""
        return "status" in self.subresources


class _Naming:
    """Holds a class's `ResourceInfo`, which `@resource` knows only after the class exists."""

    __slots__ = ("info",)
    info: ResourceInfo | None

    def __init__(self) -> None:
        self.info = None

    def api_version(self) -> str:
        return self.info.gvk.api_version if self.info else ""

    def kind(self) -> str:
        return self.info.gvk.kind if self.info else ""


class ObjectType(ModelMeta):
    """The metaclass that gives each class its own apiVersion and kind, and the types of `Resource[Spec, Status]`."""

    __naming__: _Naming

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **options: object
    ) -> ObjectType:
        """Create the class, unnamed until `@resource` names its kind."""
        if options:
            option = next(iter(options))
            if option in ("tag", "tag_field"):
                raise TypeError(f"{name}: a kind cannot have a {option}: its apiVersion and kind say what it is")
            raise TypeError(f"{name}: give {option} to the decorator of the class: @resource(..., {option}=...)")
        naming = _Naming()
        annotations: dict[str, object] = {"api_version": str, "kind": str}
        namespace["api_version"] = field(default_factory=naming.api_version)
        namespace["kind"] = field(default_factory=naming.kind)
        generic = typing.cast("tuple[object, ...]", namespace.get("__orig_bases__", ()))
        if any(base.__name__ == "Resource" for base in bases) and not generic:
            raise TypeError(
                f"{name}: a Resource needs the types of its spec and status: write Resource[{name}Spec, {name}Status], "
                f"or Resource[{name}Spec, None] without a status"
            )
        for base in generic:
            arguments = get_args(base)
            if getattr(get_origin(base), "__name__", "") == "Resource" and not isinstance(arguments[0], TypeVar):
                annotations |= _spec_and_status(name, arguments[0], arguments[1], namespace)
        namespace["__annotations__"] = annotations | annotations_of(namespace)
        created = typing.cast(ObjectType, super().__new__(mcls, name, bases, namespace, dict=True))
        created.__naming__ = naming
        return created

    if not typing.TYPE_CHECKING:

        def __call__(*args: object, **values: object) -> object:
            """A new object. A dict instead of a structure is refused: its attributes could not be read."""
            if type(values.get("metadata")) is dict or type(values.get("spec")) is dict:
                name = args[0].__name__
                raise TypeError(
                    f"{name}: metadata and spec are structures and cannot be dicts: write "
                    f"metadata=ObjectMeta(name=...), or from_json({name}, {{...}}) for a whole manifest"
                )
            # Not super().__call__, which would be one more frame for each new object.
            try:
                return instance(*args, **values)
            except TypeError as error:
                raise_construction_error(error, *args, values=values)


def _spec_and_status(name: str, spec: object, status: object, namespace: dict[str, object]) -> dict[str, object]:
    alternatives = get_args(spec) if get_origin(spec) in (typing.Union, types.UnionType) else (spec,)
    for role, argument in (*(("spec", alternative) for alternative in alternatives), ("status", status)):
        cls = get_origin(argument) or argument
        if cls is not None and cls is not type(None) and not (isinstance(cls, type) and issubclass(cls, Model)):
            raise TypeError(
                f"{name}: the {role} type of Resource[...] must be a class that derives from Model, not {argument!r}"
            )
    if status is None or status is type(None):
        namespace["status"] = None
        return {"spec": spec, "status": None}
    namespace["status"] = field(default_factory=typing.cast("type[Model]", status))
    return {"spec": spec, "status": status}


class Object(Model, metaclass=ObjectType):
    """Anything with an apiVersion, a kind and metadata. Kinds without spec and status derive from it directly.

    An object that was decoded remembers its JSON and whether a server sent it, so that writing it loses nothing the
    Python type does not know. Copies made with `copy` remember it too.
    """

    api_version: str = ""  # each class has its own default for these two
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    __naming__: ClassVar[_Naming]

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    def as_owner(self, *, controller: bool = True) -> OwnerReference:
        """A reference for the objects that are deleted with this one; an object has at most one controlling owner.

        The owner must be in the namespace of what it owns, or have none: the garbage collector deletes the child of an
        owner that it does not find there. A client refuses to write such a child.
        """
        if not self.metadata.uid:
            raise ValueError(
                f"{self.kind} {self.key} has no uid yet: only an object that the server has can be an owner"
            )
        reference = LocatedOwnerReference(
            api_version=self.api_version,
            kind=self.kind,
            name=self.metadata.name,
            uid=self.metadata.uid,
            controller=True if controller else None,
            block_owner_deletion=True if controller else None,
        )
        reference.__dict__[OWNER_NAMESPACE] = self.metadata.namespace
        return reference

    if not typing.TYPE_CHECKING:
        __setattr__ = set_field

    def __repr__(self) -> str:
        # Log lines, tracebacks and failed assertions must not show what is in a Secret.
        return f"<{self.kind} {self.key}>" if self.kind in SECRET_KINDS else super().__repr__()

    def __rich_repr__(self) -> list[tuple[str, object]]:
        # The package rich shows what this returns.
        names = ("key",) if self.kind in SECRET_KINDS else self.__struct_fields__
        return [(name, getattr(self, name)) for name in names]

    def __copy__(self) -> Self:
        return self._rebuilt(lambda value: value)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self._rebuilt(lambda value: copy.deepcopy(value, memo))

    def _rebuilt(self, each: Callable[[object], object]) -> Self:
        fields: dict[str, typing.Any] = {name: each(getattr(self, name)) for name in self.__struct_fields__}
        rebuilt = type(self)(**fields)
        rebuilt.__dict__.update(self.__dict__)
        return rebuilt


class Resource(Object, Generic[SpecT, StatusT]):
    """An object with its desired state (`spec`) and its observed state (`status`).

    `status` is never None unless the status type is: a fresh object has a fresh status. It is sent to the status
    endpoint only.
    """

    spec: SpecT
    status: StatusT = field(default_factory=lambda: None)  # type: ignore[assignment]  # each subclass gets its own

    if not typing.TYPE_CHECKING:

        def __class_getitem__(cls, types: object) -> object:
            if cls is Resource and not (isinstance(types, tuple) and len(types) == 2):
                name = getattr(types, "__name__", "Spec")
                raise TypeError(
                    f"Resource[{name}]: give the types of spec and status: write Resource[{name}, Status], or "
                    f"Resource[{name}, None] for a kind without a status"
                )
            return super().__class_getitem__(types)


@explained
def resource(
    api_version: str,
    *,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    namespaced: bool = True,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    subresources: Sequence[str] = (),
    columns: Sequence[Column] = (),
    scale: Scale | None = None,
    selectable_fields: Sequence[str] = (),
    served: bool = True,
    storage: bool = True,
    deprecated: str | None = None,
    rules: Sequence[Rule | FieldUnion] = (),
    age_column: bool = True,
    extra_json_schema: Mapping[str, JSONValue] | None = None,
    definition_annotations: Mapping[str, str] | None = None,
    definition_labels: Mapping[str, str] | None = None,
    external: bool = False,
) -> Callable[[type[ObjectT]], type[ObjectT]]:
    """Make a class the Python type of a kind. The kind is the class name unless `kind` is given.

    A `Resource` with a status type has the status subresource; `scale` adds the scale subresource. `rules` are about
    the whole object, and see of its metadata the name and the generateName. Where there are `columns`, a column Age is
    added unless they have one or `age_column` is False. `extra_json_schema` adds keywords to the schema of the object,
    as that of `msgspec.Meta` does to a field. `definition_annotations` and `definition_labels` are those of
    the CustomResourceDefinition. That of an `external` kind belongs to another program: it is not deployed
    with those that reconcile the kind.
    """
    _check_arguments(api_version, short_names, categories, subresources, columns, scale, selectable_fields)

    def decorate(cls: type[ObjectT]) -> type[ObjectT]:
        given: object = cls
        if not isinstance(given, ObjectType):
            raise TypeError(
                f"{cls.__name__} is no object: a class with @resource derives from Resource[Spec, Status], or from "
                "Object when it has neither"
            )
        gvk = GroupVersionKind.parse(api_version, kind or cls.__name__)
        _check_names(cls, gvk, plural)
        own = set(subresources)
        if issubclass(cls, Resource) and _has_status_type(cls):
            own.add("status")
        if scale is not None:
            own.add("scale")
        cls.__naming__.info = ResourceInfo(
            gvk=gvk,
            plural=plural or default_plural(gvk.kind),
            namespaced=namespaced,
            singular=singular or gvk.kind.lower(),
            short_names=tuple(short_names),
            categories=tuple(categories),
            subresources=frozenset(own),
            columns=tuple(columns),
            scale=scale,
            selectable_fields=tuple(selectable_fields),
            served=served,
            storage=storage,
            deprecated=deprecated,
            rules=checked_rules(rules, f"@resource of {cls.__name__}"),
            age_column=age_column,
            extra_json_schema=extra_json_schema or {},
            definition_annotations=definition_annotations or {},
            definition_labels=definition_labels or {},
            external=external,
        )
        return cls

    return decorate


def _check_arguments(
    api_version: object,
    short_names: object,
    categories: object,
    subresources: object,
    columns: object,
    scale: object,
    selectable_fields: object,
) -> None:
    """Raise the mistakes that a type checker would find, each as a sentence with the fix."""
    if not isinstance(api_version, str):
        name = getattr(api_version, "__name__", "")
        raise TypeError(f'@resource needs the API group and version of {name}: write @resource("example.com/v1")')
    for option, value in (
        ("short_names", short_names),
        ("categories", categories),
        ("subresources", subresources),
        ("selectable_fields", selectable_fields),
    ):
        if isinstance(value, str):
            raise TypeError(f'@resource("{api_version}"): {option} is a list: write {option}=["{value}"]')
    for column in columns if isinstance(columns, list | tuple) else [None]:
        if not isinstance(column, Column):
            raise TypeError(
                f'@resource("{api_version}"): columns is a list of columns: write '
                f'columns=[Column("Ready", ".status.readyReplicas")], not {columns!r}'
            )
    if scale is not None and not isinstance(scale, Scale):
        raise TypeError(
            f'@resource("{api_version}"): write scale=Scale(".spec.replicas", ".status.replicas"), not {scale!r}'
        )


def resource_info(cls: type[Object]) -> ResourceInfo:
    """All that is known of the kind of `cls`; a TypeError when the class was never given one."""
    info = cls.__naming__.info
    if info is not None:
        return info
    if cls.__name__ == "Dynamic":
        raise TypeError('Dynamic is of many kinds: write Dynamic.of("example.com/v1", "Widget")')
    raise TypeError(f'{cls.__qualname__} is not a kind yet: decorate it with @resource("group/version")')


def _has_status_type(cls: type[Object]) -> bool:
    # A kind may derive from another one, as a new version often does.
    kinds = cls.__mro__[: cls.__mro__.index(Resource)]
    types = (kind.__annotations__["status"] for kind in kinds if "status" in kind.__annotations__)
    return next(types, None) is not None


def _check_names(cls: type[Object], gvk: GroupVersionKind, plural: str | None) -> None:
    if gvk.group and not re.fullmatch(_GROUP, gvk.group):
        raise ValueError(f'{cls.__qualname__}: "{gvk.group}" is not an API group: expected a DNS name in lower case')
    if not re.fullmatch(_DNS_LABEL, gvk.version):
        raise ValueError(f'{cls.__qualname__}: "{gvk.version}" is not a version: expected something like "v1alpha1"')
    if plural is not None and not re.fullmatch(_DNS_LABEL, plural):
        raise ValueError(f'{cls.__qualname__}: "{plural}" is not a plural: expected lower-case letters and digits')
