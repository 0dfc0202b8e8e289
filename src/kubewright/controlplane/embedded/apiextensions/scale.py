"""The rules of the scale subresource's fields in a custom resource, whatever its schema says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value, shown

_MAX_REPLICAS = 2**31 - 1
_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource has its replicas and its selector."""

    spec_replicas: str
    status_replicas: str
    label_selector: str

    @classmethod
    def of(cls, subresources: JSONObject) -> ScalePaths | None:
        """Those of a version; None when it cannot be scaled."""
        scale = subresources.get("scale")
        if scale is None:
            return None
        return cls(
            text(scale, "specReplicasPath"),
            text(scale, "statusReplicasPath"),
            text(mapping(scale), "labelSelectorPath"),
        )

    def check_spec(self, obj: JSONObject) -> Iterator[FieldError]:
        """What is wrong with the desired replicas."""
        yield from _replicas(obj, self.spec_replicas)

    def check_status(self, obj: JSONObject) -> Iterator[FieldError]:
        """What is wrong with the observed replicas, and with the selector."""
        yield from _replicas(obj, self.status_replicas)
        if self.label_selector:
            _, complaint = _found(obj, self.label_selector, str, "string")
            if complaint:
                yield invalid_value(self.label_selector, "", complaint)


def _replicas(obj: JSONObject, path: str) -> Iterator[FieldError]:
    found, complaint = _found(obj, path, int, "int64")
    if complaint:
        yield invalid_value(path, 0, complaint)
    elif isinstance(found, int) and found < 0:
        yield invalid_value(path, found, "should be a non-negative integer")
    elif isinstance(found, int) and found > _MAX_REPLICAS:
        yield invalid_value(path, found, f"should be less than or equal to {_MAX_REPLICAS}")


def _found(obj: JSONObject, path: str, expected: type, go_type: str) -> tuple[JSONValue, str]:
    """The value at a path, and what is wrong with it; nothing is when it is not there."""
    value: JSONValue = obj
    walked = ""
    for name in path.removeprefix(".").split("."):
        if value is None:
            return None, ""
        walked += f".{name}"
        if not isinstance(value, dict):
            return None, _complaint(walked, value, "map[string]interface{}")
        if name not in value:
            return None, ""
        value = value[name]
    if type(value) is not expected:
        return None, _complaint(walked, value, go_type)
    return value, ""


def _complaint(path: str, value: JSONValue, expected: str) -> str:
    return f"{path} accessor error: {_printed(value)} is of the type {_GO_TYPES[type(value)]}, expected {expected}"


def _printed(value: JSONValue) -> str:
    """A value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_printed(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    return "<nil>" if value is None else value if isinstance(value, str) else shown(value)
