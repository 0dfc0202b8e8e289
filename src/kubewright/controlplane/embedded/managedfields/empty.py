"""Objects of built-in kinds before anything is set.

The real server keeps built-in kinds in structs, and compares a new object with an empty struct. What such a struct
shows even when it is empty is not new in the object, so that mentioning it makes no one its manager.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object, resource_info
from kubewright.controlplane.embedded.apimachinery.document import inside

# Where the real structs differ from their Python types: fields that are shown although they may be absent,
_SHOWN: Mapping[tuple[str, str], Mapping[tuple[str, ...], JSONValue]] = {
    ("v1", "Event"): {
        ("eventTime",): None,
        ("firstTimestamp",): None,
        ("lastTimestamp",): None,
        ("reportingComponent",): "",
        ("reportingInstance",): "",
    },
    ("events.k8s.io/v1", "Event"): {
        ("deprecatedFirstTimestamp",): None,
        ("deprecatedLastTimestamp",): None,
        ("eventTime",): None,
    },
    ("apps/v1", "ControllerRevision"): {("data",): None},
    ("apps/v1", "StatefulSet"): {("spec", "serviceName"): ""},
    ("discovery.k8s.io/v1", "EndpointSlice"): {("endpoints",): None, ("ports",): None},
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): {("spec", "matchingPrecedence"): 0},
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): {("rules",): None},
    ("rbac.authorization.k8s.io/v1", "Role"): {("rules",): None},
    ("scheduling.k8s.io/v1", "PriorityClass"): {("value",): 0},
}
# and fields that must be there in the end, but are absent at first.
_HIDDEN: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"): ("spec", "validationActions"),
    ("networking.k8s.io/v1", "IPAddress"): ("spec", "parentRef"),
    ("networking.k8s.io/v1beta1", "IPAddress"): ("spec", "parentRef"),
}


@cache
def empty_object(kind: type[Object]) -> JSONObject:
    """An object of the built-in kind with nothing set: its inner structs, and the zero of what is always there."""
    gvk = resource_info(kind).gvk
    name = gvk.api_version, gvk.kind
    result = _empty(kind)
    for path, value in _SHOWN.get(name, {}).items():
        inside(result, *path[:-1])[path[-1]] = value
    if name in _HIDDEN:
        *way, last = _HIDDEN[name]
        del inside(result, *way)[last]
    return {field: value for field, value in result.items() if field not in ("apiVersion", "kind")}


def _empty(kind: type[msgspec.Struct]) -> JSONObject:
    hints = get_type_hints(kind, include_extras=True)
    result: JSONObject = {}
    for field in msgspec.structs.fields(kind):
        annotation = _bare(hints[field.name])
        if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
            result[field.encode_name] = _empty(annotation)
        elif field.required:
            result[field.encode_name] = _zero(annotation)
        elif field.default_factory is not msgspec.NODEFAULT:
            value = field.default_factory()
            if isinstance(value, str | int | float):
                result[field.encode_name] = value
    return result


def _bare(annotation: object) -> object:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _zero(annotation: object) -> JSONValue:
    origin = get_origin(annotation)
    if origin is Union or origin is types.UnionType:
        return None
    zeros: dict[object, JSONValue] = {str: "", int: 0, float: 0, bool: False}
    return zeros.get(annotation)
