"""The types of a schema, as rules may use them.

What a schema does not describe (`x-kubernetes-preserve-unknown-fields` without a type) has no type: a field of it does
not exist for rules, nor does a list or map of it.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.cel.escaping import escaped
from kubewright.controlplane.embedded.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
)
from kubewright.controlplane.embedded.cel.views import with_object_meta

_SELF = "selfType"
_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}


def declared(schema: JSONObject, *, resource: bool, name: str = _SELF) -> CelType | None:
    """The type of a schema's values; `resource` adds what every object has. None for what rules cannot see."""
    if schema.get("x-kubernetes-int-or-string") is True:
        return DYN
    if resource:
        schema = with_object_meta(schema)
    match text(schema, "type"):
        case "array":
            item = _nested(schema.get("items"), f"{name}.@idx")
            return None if item is None else list_of(item)
        case "object":
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                value = _nested(additional, f"{name}.@elem")
                return None if value is None else map_of(STRING, value)
            return CelType("struct", name, fields=_fields(schema, name))
        case "string":
            return _FORMATS.get(text(schema, "format"), STRING)
        case "boolean":
            return BOOL
        case "number":
            return DOUBLE
        case "integer":
            return INT
        case _:
            return None


def _nested(schema: object, name: str) -> CelType | None:
    if not isinstance(schema, dict):
        return None
    return declared(schema, resource=schema.get("x-kubernetes-embedded-resource") is True, name=name)


def _fields(schema: JSONObject, name: str) -> dict[str, CelType]:
    fields: dict[str, CelType] = {}
    for property_, nested in mapping(schema, "properties").items():
        key = escaped(property_)
        if key is None:
            continue
        type_ = _nested(nested, f"{name}.{key}")
        if type_ is not None:
            fields[key] = type_
    return fields
