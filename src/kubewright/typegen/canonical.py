"""When two schemas mean the same.

A definition can say one thing in several ways. The canonical form says it in one, so that schemas that mean the same to
an API server are equal:

- what is the default of a keyword is left out: `x-kubernetes-list-type: atomic`, `minLength: 0`, what is false, null or
  empty; and what a definition cannot have, which the server drops;
- a required field that has a default is never missing, and so is not required;
- a default holds the defaults of what is in it, as the server fills them in;
- what may be an integer or a string has no `type` and no `anyOf` to say so again;
- a map of anything, null included, preserves unknown fields;
- of apiVersion, kind and metadata, which every object has, only the restrictions of the name count;
- white space in descriptions does not count;
- Kubernetes' conditions are `kubewright.Condition`, whose message may be absent and whose prose is kubewright's.
"""

from __future__ import annotations

import json
from typing import Final

from kubewright.api.markers import JSONValue
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.manifest.constraints import EXTRA_KEYWORDS
from kubewright.manifest.keywords import (
    INT_OR_STRING,
    OBJECT_FIELDS,
    PRESERVE,
    PROSE,
    RULES,
    Schema,
    fields,
    is_said,
    required,
    rules,
)
from kubewright.manifest.schema import schema_of

_KNOWN: Final = (
    EXTRA_KEYWORDS
    | {"type", "properties", "required", "items", "additionalProperties", "default", INT_OR_STRING, RULES}
    | {"x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
)
_INTEGER_OR_STRING: Final = ({"type": "integer"}, {"type": "string"})
_CONDITION_FIELDS: Final = {"type", "status", "observedGeneration", "lastTransitionTime", "reason", "message"}
_BOUNDS: Final = frozenset({"minimum", "maximum", "multipleOf"})
_SAID_BY_ABSENCE: Final[dict[str, JSONValue]] = {
    "x-kubernetes-list-type": "atomic",
    "x-kubernetes-map-type": "granular",
    "minLength": 0,
    "minItems": 0,
    "minProperties": 0,
}


def canonical(schema: Schema) -> Schema:
    """The canonical form of a structural schema."""
    result: Schema = {}
    for keyword, value in schema.items():
        if keyword in _KNOWN and is_said(keyword, value) and _SAID_BY_ABSENCE.get(keyword, ...) != value:
            result[keyword] = _keyword(keyword, value, schema)
    _shape(result)
    _defaults(result)
    if is_condition(result):
        needed, properties = _CONDITION
        result |= {"properties": {**properties}, "required": [*sorted(needed)]}
        result.pop("description", None)
    return result


def canonical_kind(schema: Schema) -> Schema:
    """The canonical form of the schema of a kind."""
    form = canonical(schema)
    own = fields(form)
    for name in OBJECT_FIELDS:
        restrictions = {keyword: value for keyword, value in own.pop(name, {}).items() if keyword not in PROSE}
        if restrictions.keys() - {"type"}:
            own[name] = restrictions
    needed: list[JSONValue] = [*sorted(required(form) - {*OBJECT_FIELDS})]
    return canonical({**form, "properties": {**own}, "required": needed})


def is_quantity(schema: Schema) -> bool:
    """Whether the schema is that of a Quantity."""
    form = canonical(schema) if schema.get(INT_OR_STRING) else {}
    return {keyword: form[keyword] for keyword in form.keys() - PROSE - {"nullable", "default", RULES}} == _QUANTITY


def is_condition(schema: Schema) -> bool:
    """Whether the objects of the schema are conditions as Kubernetes defines them."""
    return fields(schema).keys() == _CONDITION_FIELDS and _shape_of_condition(schema) == _CONDITION


def _keyword(keyword: str, value: JSONValue, schema: Schema) -> JSONValue:
    if keyword == "description":
        return " ".join(str(value).split())
    if keyword == "properties" and isinstance(value, dict):
        return {name: canonical(field) for name, field in value.items() if isinstance(field, dict)}
    if keyword in ("items", "additionalProperties", "not") and isinstance(value, dict):
        return canonical(value)
    if keyword in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
        return [canonical(part) if isinstance(part, dict) else part for part in value]
    if keyword in ("enum", "required") and isinstance(value, list):
        return [json.loads(text) for text in sorted({json.dumps(one, sort_keys=True) for one in value})]
    if keyword in _BOUNDS and isinstance(value, int):
        return float(value)  # as the server keeps it
    return [*rules(schema)] if keyword == RULES else value


def _shape(schema: Schema) -> None:
    if INT_OR_STRING in schema:
        schema.pop("type", None)
        alternatives = schema.get("anyOf")
        if isinstance(alternatives, list) and all(part in _INTEGER_OR_STRING for part in alternatives):
            del schema["anyOf"]
    if schema.get("additionalProperties") == {PRESERVE: True, "nullable": True}:
        del schema["additionalProperties"]
        schema[PRESERVE] = True


def _defaults(schema: Schema) -> None:
    if "default" in schema:
        schema["default"] = _filled(schema["default"], schema)
    if "required" in schema:
        with_default = {name for name, field in fields(schema).items() if "default" in field}
        schema["required"] = [*sorted(required(schema) - with_default)]
        if not schema["required"]:
            del schema["required"]


def _filled(value: JSONValue, schema: JSONValue) -> JSONValue:
    """A value with the defaults of what is in it, as the server fills them in."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_filled(item, schema.get("items")) for item in value]
    if isinstance(value, dict):
        known = fields(schema)
        values = schema.get("additionalProperties")
        given = {name: _filled(item, known.get(name, values)) for name, item in value.items()}
        absent = {name: known[name]["default"] for name in known if name not in given and "default" in known[name]}
        return {**given, **absent}
    return value


class _Known(Model):
    """The types of kubewright that a schema is compared with."""

    quantity: Quantity
    condition: Condition


def _shape_of_condition(schema: Schema) -> tuple[set[str], dict[str, Schema]]:
    """What makes a condition: the fields that it must have besides its message, and what fits each field."""
    own = {
        name: {keyword: value for keyword, value in canonical(field).items() if keyword not in PROSE}
        for name, field in fields(schema).items()
    }
    if own["message"].get("default") == "":
        del own["message"]["default"]
    return required(schema) - {"message"}, own


_KNOWN_SCHEMAS: Final = fields(schema_of(_Known))
_QUANTITY: Final = canonical(_KNOWN_SCHEMAS["quantity"])
_CONDITION: Final = _shape_of_condition(_KNOWN_SCHEMAS["condition"])
