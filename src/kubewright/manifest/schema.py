"""From a model to its structural OpenAPI schema, as CustomResourceDefinitions carry it.

What `kubewright.api.codec` decodes for a type and encodes again, the server accepts, and bounds are the same on both
sides. What only the server checks, because msgspec has no notion of it: duplicates in a `ListMap` or `ListSet`, the
range of `Int32` (and that any integer has 64 bits), the letters of `Base64`, the values of a `Choice`, the metadata of
embedded objects; and that a Quantity is written as an integer or as text with a digit. See `pattern` for patterns.
"""

from __future__ import annotations

import copy
import enum
import types
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, UnsetType
from msgspec.structs import FieldInfo

from kubewright.api.codec import decode_json, decode_scalar, decoder_of, encode, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import Atomic, FieldUnion, Format, Immutable, JSONValue, ListMap, ListSet, Rule, Values
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import BuiltIn, Default, Model
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object
from kubewright.api.shape import shape_of
from kubewright.api.time import MicroTime
from kubewright.manifest.constraints import constrain, refuse_limits
from kubewright.manifest.docstrings import class_description, field_descriptions
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import RULES, Schema, fields
from kubewright.manifest.list_type import list_map, list_set
from kubewright.manifest.rules import UNCHANGED, add_rules, check_correlation, removal_rule
from kubewright.manifest.unions import merged_members, tag_schema, tagged

_INT_OR_STRING: Final[Schema] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
# The format "byte" means the same, but the server's check for it refuses the empty string.
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
# As controller-gen renders resource.Quantity.
_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_SCALARS: Final[dict[object, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "pattern": _BASE64},
    datetime: {"type": "string", "format": "date-time"},
    MicroTime: {"type": "string", "format": "date-time"},
    Quantity: {**_INT_OR_STRING, "pattern": _QUANTITY},
}
_ENCODED: Final = (bytes, datetime, MicroTime, Quantity)

# The server prunes what a schema does not name, labels of pod templates included; so it has to keep the rest. The rest
# is not typed on purpose: `creationTimestamp: null`, which kubectl prints into every template, must be accepted.
_EMBEDDED_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
    "x-kubernetes-preserve-unknown-fields": True,
}

# Kubernetes' own structures that are replaced whole wherever they are: their types say so in Go.
ATOMIC: Final = frozenset(
    {"ConfigMapKeySelector", "CrossVersionObjectReference", "EndpointAddress", "EndpointPort", "FileKeySelector"}
    | {"LabelSelector", "LocalObjectReference", "MatchResources", "NamedRuleWithOperations", "NodeSelector"}
    | {"NodeSelectorTerm", "ObjectFieldSelector", "ObjectReference", "OwnerReference", "ParamKind", "ParamRef"}
    | {"ResourceFieldSelector", "RoleRef", "ScopeSelector", "SecretKeySelector", "SecretReference"}
    | {"ServiceBackendPort", "Subject", "TopologySelectorTerm", "TypedLocalObjectReference", "Variable"}
)

_OBJECT_FIELDS: Final[dict[str, type]] = {"api_version": str, "kind": str, "metadata": ObjectMeta}

_INSTEAD: Final[dict[object, str]] = {
    tuple: "list[...]",
    set: "Annotated[list[...], ListSet()]",
    frozenset: "Annotated[list[...], ListSet()]",
}


@dataclass(frozen=True, slots=True)
class _Location:
    """A field of the innermost of the models around it."""

    around: tuple[type, ...]
    name: str

    def __str__(self) -> str:
        return f"{self.around[-1].__name__}.{self.name}"


def schema_of(cls: type[Model]) -> Schema:
    """The structural schema of a model; of a kind, with its apiVersion, kind and metadata.

    Raises `ManifestError` naming the class and the field for anything a structural schema cannot express.
    """
    schema = _structure(cls, ())
    check_correlation(schema, cls.__name__)
    try:
        decoder_of(cls)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ManifestError(f"{cls.__name__} has a schema, but cannot be decoded: {error}") from None
    return schema


def _structure(annotation: object, around: tuple[type, ...]) -> Schema:
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or not issubclass(cls, Model):
        raise ManifestError(f"{cls} is not a Model")
    if issubclass(cls, Dynamic):
        raise ManifestError(f"{cls.__name__} is Dynamic and so has no fields to describe: use dict[str, JSONValue]")
    around = (*around, cls)
    properties: dict[str, JSONValue] = {**_tag(cls)}
    required: list[JSONValue] = []
    removals: list[Rule] = []
    descriptions = field_descriptions(cls)
    for info in _fields(annotation, cls):
        where = _Location(around, info.name)
        if issubclass(cls, Object) and info.name in _OBJECT_FIELDS:
            properties[info.encode_name] = _object_field(info, where)
        elif info.type is not types.NoneType:  # the status of a kind without one
            rendered = _field(info, where)
            if info.name in descriptions:
                rendered["description"] = descriptions[info.name]
            properties[info.encode_name] = rendered
            if info.required:
                required.append(info.encode_name)
            elif _is_immutable(info.type) and "default" not in rendered:
                removals.append(removal_rule(info.encode_name))
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = sorted(required, key=str)
    add_rules(schema, [*cls.__rules__, *removals], cls.__name__)
    description = class_description(cls)
    if description:
        schema["description"] = description
    return schema


def _tag(cls: type[Model]) -> Schema:
    name, tag = cls.__struct_config__.tag_field, cls.__struct_config__.tag
    return {name: tag_schema(tag)} if name and isinstance(tag, str) else {}


def _fields(annotation: object, cls: type[Model]) -> Sequence[FieldInfo]:
    try:
        return msgspec.structs.fields(annotation)  # type: ignore[arg-type]  # generic models are accepted as well
    except NameError as error:
        raise ManifestError(
            f"{cls.__name__}: an annotation cannot be read: {error}: define or import it at the top of {cls.__module__}"
        ) from None


def _object_field(info: FieldInfo, where: _Location) -> Schema:
    if info.type is not _OBJECT_FIELDS[info.name]:
        raise ManifestError(f"{where} is the same for every kind and cannot be redeclared: rename the field")
    return {"type": "object" if info.name == "metadata" else "string"}


def _field(info: FieldInfo, where: _Location) -> Schema:
    schema, nullable = _node(info.type, where)
    default = _declared_default(info)
    if default is not None:
        schema["default"] = _rendered_default(default, info, schema, where)
    elif (
        where.name == "status"
        and issubclass(where.around[-1], Object)
        # Unless its author demands it, or lets it be absent.
        and not (info.required or info.default is None or info.default is UNSET)
        and (defaults := _defaults_inside(schema))
    ):
        # Rules see a default without the defaults of what is in it.
        schema["default"] = defaults if schema.get(RULES) else {}
    # None is absent when it is the default, and null in all other cases.
    if nullable and info.default is not None:
        _allow_null(schema)
    return schema


def _defaults_inside(schema: Schema) -> Schema:
    """The defaults out of which the server can make a status, so that `phase: Pending` shows at once."""
    if "required" in schema:
        return {}
    return {name: field["default"] for name, field in fields(schema).items() if "default" in field}


def _declared_default(info: FieldInfo) -> object:
    """The default that the server fills in as well; None when it leaves the field absent.

    Kubernetes' own structures leave out zero values, and the server does not put them back.
    """
    if isinstance(info.default_factory, Default):
        return info.default_factory.value
    is_zero = info.default is NODEFAULT or info.default is UNSET or not decode_json(encode(info.default))
    return None if is_zero else info.default


def _rendered_default(default: object, info: FieldInfo, schema: Schema, where: _Location) -> JSONValue:
    encoded = encode(default)
    rendered = decode_json(encoded)
    try:
        msgspec.json.decode(encoded, type=info.type, dec_hook=decode_scalar)
    except (msgspec.ValidationError, ValueError) as error:
        raise ManifestError(f"{where}: the default {rendered!r} does not fit the field: {error}") from None
    values = schema.get("enum")
    if isinstance(values, list) and rendered not in values:
        raise ManifestError(f"{where}: the default {rendered!r} is none of {', '.join(map(repr, values))}")
    return rendered


def _node(annotation: object, where: _Location) -> tuple[Schema, bool]:
    """The schema of a type annotation, and whether null is one of its values."""
    markers: tuple[object, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        markers = tuple(rest)
    if isinstance(annotation, NewType):
        annotation = annotation.__supertype__
    if get_origin(annotation) in (Union, types.UnionType):
        refuse_limits(markers, where)
        schema, nullable = _union(annotation, where)
    else:
        schema, nullable = _plain(annotation, where)
        if annotation is datetime and not any(isinstance(marker, Meta) and marker.tz for marker in markers):
            raise ManifestError(f"{where}: a datetime may lack the time zone that the server demands: use Time")
    for marker in markers:
        _mark(schema, marker, annotation, where)
    return schema, nullable


def _union(annotation: object, where: _Location) -> tuple[Schema, bool]:
    members = [member for member in get_args(annotation) if member not in (types.NoneType, UnsetType)]
    nullable = types.NoneType in get_args(annotation)
    if len(members) == 1:
        schema, nested = _node(members[0], where)
        return schema, nullable or nested
    if Any in members:
        return _plain(Any, where)
    if set(members) == {int, float}:
        return copy.deepcopy(_SCALARS[float]), nullable
    bare = [get_args(member)[0] if get_origin(member) is Annotated else member for member in members]
    markers = [(each, marker) for each, member in zip(bare, members, strict=True) for marker in _markers(member)]
    if set(bare) == {int, str} and all(isinstance(marker, Meta) for _, marker in markers):
        schema = copy.deepcopy(_INT_OR_STRING)
        for each, marker in markers:
            constrain(schema, cast(Meta, marker), "integer" if each is int else "string", where)
        return schema, nullable
    if markers:
        raise ManifestError(
            f"{where}: markers are for all of a union, not for one of its members: write "
            f"Annotated[{' | '.join(map(_name, bare))}, ...]"
        )
    if all(get_origin(member) is Literal for member in members):
        values = [value for member in members for value in get_args(member)]
        return _enumeration([value for value in values if value is not None], where), nullable or None in values
    if (found := tagged(members, where)) is not None:
        tag_field, by_tag = found
        schemas = {tag: _plain(member, where)[0] for tag, member in by_tag.items()}
        return merged_members(schemas, tag_field, where), nullable
    instead = "one of them, IntOrString (which is int | str)"
    if not all(member in _SCALARS for member in members):
        instead = 'one Model with an optional field for each, class Source(Model, rules=[ExactlyOneOf("file", "url")])'
    raise ManifestError(
        f"{where}: a structural schema cannot express {' or '.join(map(_name, members))}: use {instead}, or JSONValue"
    )


def _plain(annotation: object, where: _Location) -> tuple[Schema, bool]:
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if annotation is Any or annotation is Raw:
        return {"x-kubernetes-preserve-unknown-fields": True}, True
    if annotation in _SCALARS:
        return copy.deepcopy(_SCALARS[annotation]), False
    if origin is Literal:
        return _enumeration([value for value in arguments if value is not None], where), None in arguments
    if origin is list:
        return {"type": "array", "items": _inner(arguments[0] if arguments else Any, where)}, False
    if origin is dict:
        return _map(arguments or (str, Any), where), False
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return _enumeration([member.value for member in origin], where), False
    if isinstance(origin, type) and issubclass(origin, Model):
        return _nested(annotation, origin, where), False
    raise ManifestError(f"{where}: {_unsupported(annotation, origin)}")


def _unsupported(annotation: object, origin: object) -> str:
    if isinstance(annotation, TypeVar):
        return f"{annotation.__name__} is not bound to a type: give the generic model its type, as in Box[int]"
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return f"{origin.__name__} is a plain msgspec.Struct: derive it from kubewright's Model"
    instead = _INSTEAD.get(origin, "a scalar, an Enum, a Literal, list, dict[str, ...], a Model or JSONValue")
    return f"{_name(annotation)} has no structural schema: use {instead}"


def _nested(annotation: object, cls: type[Model], where: _Location) -> Schema:
    if cls in where.around:
        raise ManifestError(
            f"{where}: {cls.__name__} contains itself, which a structural schema cannot describe: "
            "use JSONValue for the inner part"
        )
    if issubclass(cls, Object) and (issubclass(cls, Dynamic) or cls.__naming__.info is None):
        raise ManifestError(
            f"{where}: {cls.__name__} is not a kind with known fields: use the class of one, or dict[str, JSONValue]"
        )
    if cls is ObjectMeta:
        return copy.deepcopy(_EMBEDDED_METADATA)
    schema = _structure(annotation, where.around)
    if issubclass(cls, Object):
        schema["x-kubernetes-embedded-resource"] = True
    if cls.__name__ in ATOMIC and cls.__module__.startswith("kubewright.api."):
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _map(arguments: tuple[object, ...], where: _Location) -> Schema:
    key, value = arguments
    if key is not str:
        raise ManifestError(f"{where}: the keys of a JSON object are strings without limits: use dict[str, ...]")
    if value is Any:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _inner(value, where)}


def _inner(annotation: object, where: _Location) -> Schema:
    """The schema of list items and map values, which are null when they are None."""
    schema, nullable = _node(annotation, where)
    if nullable:
        _allow_null(schema)
    return schema


def _enumeration(values: Sequence[object], where: _Location) -> Schema:
    for name, cls in (("string", str), ("integer", int)):
        if values and all(isinstance(value, cls) and not isinstance(value, bool) for value in values):
            return {"type": name, "enum": [to_json(value) for value in values]}
    raise ManifestError(f"{where}: an enumeration must have strings only or integers only, not {values!r}")


def _allow_null(schema: Schema) -> None:
    if schema.setdefault("nullable", True) is False:
        return  # as its extra_json_schema says
    if "enum" in schema:
        # An enum refuses null even if it lists it, unless it is nested: the server skips nested parts for null.
        schema["allOf"] = [{"enum": schema.pop("enum")}]


def _mark(schema: Schema, marker: object, annotation: object, where: _Location) -> None:
    match marker:
        case Meta():
            # The length of an encoded value is not that of its bytes, and a structure has the fields it has.
            unlimited = annotation in _ENCODED or "enum" in schema or "properties" in schema
            constrain(schema, marker, "" if unlimited else str(schema.get("type", "")), where)
        case Format(name="byte"):
            schema["pattern"] = _BASE64
        case Format(name=name):
            if schema.get("type") not in ("string", "integer", "number"):
                raise ManifestError(f"{where}: {marker!r} is for strings and numbers")
            schema["format"] = name
        case Values(values=values):
            schema["enum"] = list(values)
        case Atomic() if schema.get("type") == "array":
            schema["x-kubernetes-list-type"] = "atomic"
        case Atomic() if schema.get("type") == "object":
            schema["x-kubernetes-map-type"] = "atomic"
        case ListSet():
            list_set(schema, where)
        case ListMap(keys=keys):
            list_map(schema, keys, where, built_in=_lists_built_ins(annotation))
        case Rule() | FieldUnion():
            add_rules(schema, [marker], str(where))
        case Immutable():
            add_rules(schema, [UNCHANGED], str(where))
        case Atomic():
            raise ManifestError(f"{where}: Atomic() is for lists, maps and structures")
        case type() if marker.__module__ == Atomic.__module__:
            raise ManifestError(f"{where}: {marker.__name__} is a class: write {marker.__name__}(...)")


def _markers(annotation: object) -> tuple[object, ...]:
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def _is_immutable(annotation: object) -> bool:
    """Whether the marker is on the whole or on an alternative of a union: `Annotated[int, Immutable()] | None`."""
    return isinstance(annotation, Immutable) or any(map(_is_immutable, _parts(annotation)))


def _parts(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) in (Annotated, Union, types.UnionType) else ()


def _lists_built_ins(annotation: object) -> bool:
    item = shape_of(annotation).item
    return item is not None and item.model is not None and issubclass(item.model, BuiltIn)


def _name(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
