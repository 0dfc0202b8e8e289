"""The schemas of Kubernetes' own kinds, from their Python types: one per structure, under the names Kubernetes gives.

They contain what the types have: fields, lists that are merged, known values. Descriptions come from elsewhere.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import FieldInfo

from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import Atomic, Format, JSONObject, JSONValue, ListMap, ListSet, StrategicMerge, Values
from kubewright.api.model import Default
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, resource_info
from kubewright.api.time import MicroTime
from kubewright.controlplane.embedded.apimachinery.document import items, text

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
REFERENCE: Final = "#/components/schemas/"

# Groups whose Go packages are not where those of the others are.
_PACKAGES = {
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
    "resource_k8s_io": "io.k8s.api.resource",
}
_WELL_KNOWN: Final[dict[object, str]] = {
    datetime: f"{META}.Time",
    MicroTime: f"{META}.MicroTime",
    Quantity: "io.k8s.apimachinery.pkg.api.resource.Quantity",
    Raw: f"{META}.FieldsV1",
}
_RAW: Final = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_ANYTHING: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SCALARS: Final[dict[object, JSONObject]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
}

SchemaReference: TypeAlias = "type[Struct] | str"
"""What a schema refers to: a type, or the name of one of `STATIC`."""

STATIC: Final[dict[str, JSONObject]] = {
    f"{META}.Time": {"type": "string", "format": "date-time"},
    f"{META}.MicroTime": {"type": "string", "format": "date-time"},
    f"{META}.FieldsV1": {"type": "object"},
    _RAW: {"type": "object"},
    _ANYTHING: {},
    f"{_ANYTHING}SchemaPropsOrArray": {},
    f"{_ANYTHING}SchemaPropsOrBool": {},
    f"{_ANYTHING}SchemaPropsOrStringArray": {},
    f"{META}.Patch": {"type": "object"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    f"{META}.StatusCause": {
        "type": "object",
        "properties": {"field": {"type": "string"}, "message": {"type": "string"}, "reason": {"type": "string"}},
    },
    f"{META}.StatusDetails": {
        "type": "object",
        "properties": {
            "causes": {
                "type": "array",
                "items": {"allOf": [{"$ref": f"{REFERENCE}{META}.StatusCause"}]},
                "x-kubernetes-list-type": "atomic",
            },
            "group": {"type": "string"},
            "kind": {"type": "string"},
            "name": {"type": "string"},
            "retryAfterSeconds": {"type": "integer", "format": "int32"},
            "uid": {"type": "string"},
        },
    },
    f"{META}.Status": {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "code": {"type": "integer", "format": "int32"},
            "details": {"allOf": [{"$ref": f"{REFERENCE}{META}.StatusDetails"}]},
            "kind": {"type": "string"},
            "message": {"type": "string"},
            "metadata": {"default": {}, "allOf": [{"$ref": f"{REFERENCE}{META}.ListMeta"}]},
            "reason": {"type": "string"},
            "status": {"type": "string"},
        },
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "Status", "version": "v1"}],
    },
}
"""Structures that have no Python type, and scalars that have a name."""
STATUS_PARTS: Final = (f"{META}.Status", f"{META}.StatusDetails", f"{META}.StatusCause")


# A kind cannot be without these, so that the Python types demand them; the server's schemas do not.
_OPTIONAL: Final = frozenset(
    (
        "apps.v1.DaemonSet.spec",
        "apps.v1.Deployment.spec",
        "apps.v1.ReplicaSet.spec",
        "apps.v1.ReplicaSetSpec.template",
        "apps.v1.StatefulSet.spec",
        "batch.v1.Job.spec",
        "batch.v1.JobTemplateSpec.spec",
        "core.v1.LimitRange.spec",
        "core.v1.Pod.spec",
        "core.v1.PodTemplate.template",
        "core.v1.PodTemplateSpec.spec",
        "flowcontrol.v1.FlowSchema.spec",
        "flowcontrol.v1.PriorityLevelConfiguration.spec",
        "apiregistration.v1.APIService.spec",
    )
)
# And the other way round: the server fills these in or checks them by other means.
_REQUIRED: Final = frozenset(
    (
        "authorization.v1.LocalSubjectAccessReview.spec",
        "authorization.v1.SelfSubjectAccessReview.spec",
        "authorization.v1.SelfSubjectRulesReview.spec",
        "authorization.v1.SubjectAccessReview.spec",
        "authorization.v1.SubjectRulesReviewStatus.nonResourceRules",
        "authorization.v1.SubjectRulesReviewStatus.resourceRules",
        "core.v1.Event.metadata",
        "core.v1.PersistentVolumeClaimTemplate.spec",
        "events.v1.Event.eventTime",
        "events.v1.EventSeries.lastObservedTime",
        "resource_k8s_io.v1.DeviceClass.spec",
        "resource_k8s_io.v1.ResourceClaim.spec",
        "resource_k8s_io.v1.ResourceClaimTemplate.spec",
        "resource_k8s_io.v1.ResourceClaimTemplateSpec.spec",
        "storage.v1.CSIDriver.spec",
    )
)


@dataclass(frozen=True, slots=True)
class TypeSchema:
    """The schema of one structure, and what it refers to. It is shared and must not be changed."""

    schema: JSONObject
    parts: tuple[SchemaReference, ...]
    atomic: tuple[str, ...]
    """The names of those parts that are replaced whole, never merged: their own schemas say so."""


def name_of(cls: type[Struct]) -> str:
    """The name of a type in OpenAPI documents, such as `io.k8s.api.core.v1.Pod`."""
    if cls.__module__ == "kubewright.api.meta":
        return f"{META}.{cls.__name__}"
    group, _, version = _group_version_of(cls).partition(".")
    return f"{_PACKAGES.get(group) or f'io.k8s.api.{group}'}.{version}.{cls.__name__}"


def _group_version_of(cls: type[Struct]) -> str:
    """Such as `core.v1`, which has a module for each kind."""
    return ".".join(cls.__module__.removeprefix("kubewright.api.").split(".")[:2])


@cache
def schema_of_type(cls: type[Struct]) -> TypeSchema:
    """The schema of a structure; those of its parts are named, not repeated."""
    reader = _Reader()
    properties: JSONObject = {}
    required: list[JSONValue] = []
    for info in sorted(msgspec.structs.fields(cls), key=lambda info: info.encode_name):
        schema = reader.schema(info.type)
        if isinstance(info.default_factory, type) and "allOf" in schema:
            schema = {"default": {}, **schema}
        if cls.__module__ == "kubewright.api.meta":
            schema.pop("enum", None)  # as the server, which leaves the values of what all kinds share open
        properties[info.encode_name] = schema
        if _is_required(cls, info):
            required.append(info.encode_name)
    whole: JSONObject = {"type": "object"}
    if required:
        whole["required"] = required
    whole["properties"] = properties
    if issubclass(cls, Object):
        gvk = resource_info(cls).gvk
        whole["x-kubernetes-group-version-kind"] = [{"group": gvk.group, "kind": gvk.kind, "version": gvk.version}]
    return TypeSchema(whole, tuple(reader.parts), tuple(reader.atomic))


def _is_required(cls: type[Struct], info: FieldInfo) -> bool:
    location = f"{_group_version_of(cls)}.{cls.__name__}.{info.encode_name}"
    if location in _REQUIRED:
        return True
    if location in _OPTIONAL or (issubclass(cls, Object) and info.encode_name in ("apiVersion", "kind", "metadata")):
        return False
    # What is always sent, even when it is zero, is required of others as well.
    return info.required or isinstance(info.default_factory, Default)


def closure(parts: Iterable[SchemaReference]) -> dict[str, JSONObject]:
    """The schemas of all that is named, and of all that these name, by their names."""
    found: dict[str, JSONObject] = {}
    atomic: set[str] = set()
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        name = part if isinstance(part, str) else name_of(part)
        if name in found:
            continue
        if isinstance(part, str):
            found[name] = STATIC[part]
        else:
            made = schema_of_type(part)
            found[name] = made.schema
            waiting += made.parts
            atomic.update(made.atomic)
    for name in atomic:
        found[name] = {**found[name], "x-kubernetes-map-type": "atomic"}
    return found


def reference(name: str) -> JSONObject:
    """A schema that is somewhere else in the document."""
    return {"$ref": f"{REFERENCE}{name}"}


@dataclass(slots=True)
class _Reader:
    """Reads annotations, and collects what they refer to."""

    parts: list[SchemaReference] = field(default_factory=list)
    atomic: list[str] = field(default_factory=list)

    def schema(self, annotation: object) -> JSONObject:
        """The schema of a field."""
        if annotation == IntOrString:
            return self._part(_INT_OR_STRING)
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            return self._marked(arguments[0], arguments[1:])
        if origin is Union or origin is types.UnionType:
            return self._union([argument for argument in arguments if argument is not types.NoneType])
        if origin is list:
            return {"type": "array", "items": self._item(arguments[0])}
        if origin is dict:
            if arguments[1] is Any:
                return self._part(_RAW)
            return {"type": "object", "additionalProperties": self._item(arguments[1])}
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if annotation in _WELL_KNOWN:
            return self._part(_WELL_KNOWN[annotation])
        if isinstance(annotation, type) and issubclass(annotation, Struct):
            return self._part(annotation)
        return self._part(_ANYTHING)

    def _union(self, alternatives: list[object]) -> JSONObject:
        """Only schemas of custom resources have fields of one of several types."""
        if len(alternatives) == 1:
            return self.schema(alternatives[0])
        if bool in alternatives:
            return self._part(f"{_ANYTHING}SchemaPropsOrBool")
        return self._part(f"{_ANYTHING}SchemaPropsOr{'String' if list[str] in alternatives else ''}Array")

    def _marked(self, annotation: object, markers: Iterable[object]) -> JSONObject:
        schema = dict(self.schema(annotation))
        for marker in markers:
            if isinstance(marker, Atomic) and "allOf" in schema:
                self.atomic.append(_referred(schema))
            else:
                _mark(schema, marker)
        return schema

    def _item(self, annotation: object) -> JSONObject:
        """The schema of list items and map values, which are never null."""
        schema = self.schema(annotation)
        if "allOf" not in schema:
            return schema
        name = _referred(schema)
        return reference(name) if name in STATIC else {"default": {}, **schema}

    def _part(self, part: SchemaReference) -> JSONObject:
        self.parts.append(part)
        return {"allOf": [reference(part if isinstance(part, str) else name_of(part))]}


def _referred(schema: JSONObject) -> str:
    return text(items(schema, "allOf")[0], "$ref").removeprefix(REFERENCE)


def _mark(schema: JSONObject, marker: object) -> None:
    match marker:
        case Format(name=name):
            schema["format"] = name
        case Values(values=values):
            schema["enum"] = list(values)
        case ListMap(keys=keys):
            schema["x-kubernetes-list-map-keys"] = list(keys)
            schema["x-kubernetes-list-type"] = "map"
        case ListSet():
            schema["x-kubernetes-list-type"] = "set"
        case Atomic():
            schema["x-kubernetes-list-type" if schema.get("type") == "array" else "x-kubernetes-map-type"] = "atomic"
        case StrategicMerge(key=key, retain_keys=retain_keys):
            if key:
                schema["x-kubernetes-patch-merge-key"] = key
            is_list = schema.get("type") == "array"
            strategies = [*(["merge"] if is_list or not retain_keys else []), *(["retainKeys"] if retain_keys else [])]
            schema["x-kubernetes-patch-strategy"] = ",".join(strategies)
