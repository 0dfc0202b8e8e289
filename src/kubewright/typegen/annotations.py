"""A schema as a Python type: `{type: integer, minimum: 1}` is `Annotated[int, Meta(ge=1)]`.

What Python's types cannot express (rules, alternatives, patterns that only Go reads) is kept in `extra_json_schema`,
where the server still finds it: rendering the type again gives a schema that means the same.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from kubewright.api.markers import JSONValue
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.manifest.constraints import EXTRA_KEYWORDS
from kubewright.manifest.pattern import incompatibility
from kubewright.manifest.schema import Schema, schema_of
from kubewright.typegen.canonical import canonical
from kubewright.typegen.keywords import INT_OR_STRING, PRESERVE, PROSE, fields, inner, required
from kubewright.typegen.layout import Expression, Union, call, literal, subscript, text

Markers: TypeAlias = list[Expression]

_HANDLED: Final = PROSE | {"type", "properties", "required", "items", "additionalProperties", "nullable", "default"}
_PLAIN: Final = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
_FORMATS: Final = {("integer", "int32"): "Int32", ("number", "double"): "Double", ("string", "date-time"): "Time"}
_BOUNDS: Final = (("minimum", "exclusiveMinimum", "ge", "gt"), ("maximum", "exclusiveMaximum", "le", "lt"))
_LENGTHS: Final = {
    "string": {"minLength": "min_length", "maxLength": "max_length"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
    "object": {"minProperties": "min_length", "maxProperties": "max_length"},
}
_MAX_INTEGER: Final = 2**63 - 1


def is_quantity(schema: Schema) -> bool:
    """Whether the schema is that of a Quantity."""
    form = canonical(schema)
    return {keyword: form[keyword] for keyword in form if keyword not in ("nullable", "default")} == _QUANTITY


def is_condition(schema: Schema) -> bool:
    """Whether the objects of the schema are conditions as Kubernetes defines them."""
    return required(schema) >= _CONDITION_REQUIRED and _condition_shape(schema) == _CONDITION


def is_structure(schema: Schema) -> bool:
    """Whether the schema has a class of its own: it has named fields, or none at all, and is no map."""
    if schema.get("properties"):
        return not is_condition(schema)
    return schema.get("type") == "object" and not schema.get("additionalProperties") and not schema.get(PRESERVE)


class Annotations:
    """Writes type annotations, given the names of the structures; collects the names that they use."""

    def __init__(self, class_names: Mapping[str, str]) -> None:
        self._class_names = class_names
        self.used: set[str] = set()

    def use(self, name: str) -> str:
        """A name that has to be imported."""
        self.used.add(name)
        return name

    def class_of(self, schema: Schema) -> str:
        """The name of the class of a structure or a condition."""
        return self.use("Condition") if is_condition(schema) else self._class_names[structure_key(schema)]

    def of(self, schema: Schema, *, absent: Expression | None = None) -> Expression:
        """The type of a value; with `absent`, what it is when it is not there."""
        base, limited_as, said = self._base(schema)
        markers = self._markers(schema, limited_as, said)
        # The markers stand within a union: msgspec takes the bounds of a number, and not those of a number or None.
        members = [subscript(self.use("Annotated"), base, *markers) if markers else base]
        if base != "JSONValue":
            if absent is not None and absent != "None":
                members.append(absent)
            if absent == "None" or schema.get("nullable"):
                members.append("None")
        return Union(tuple(members)) if len(members) > 1 else members[0]

    def _base(self, schema: Schema) -> tuple[Expression, str, set[str]]:
        """The bare type; the JSON type whose limits Python checks, if any; the keywords that the bare type says."""
        type_ = schema.get("type")
        if is_quantity(schema):
            return self.use("Quantity"), "", {INT_OR_STRING, "anyOf", "pattern"}
        if schema.get(INT_OR_STRING):
            return self.use("IntOrString"), "", {INT_OR_STRING, *(["anyOf"] if _is_plain_alternative(schema) else [])}
        if type_ == "object" or schema.get("properties"):
            return self._object(schema)
        if type_ == "array":
            items = inner(schema)
            return subscript("list", self.of(items) if items is not None else self.use("JSONValue")), "array", set()
        if isinstance(type_, str) and type_ in _PLAIN:
            return self._scalar(schema, type_)
        return self.use("JSONValue"), "", {PRESERVE}

    def _object(self, schema: Schema) -> tuple[Expression, str, set[str]]:
        if is_structure(schema) or schema.get("properties"):
            return self.class_of(schema), "", set()
        values = schema.get("additionalProperties")
        if isinstance(values, dict) and values not in ({}, {PRESERVE: True}):
            return subscript("dict", "str", self.of(values)), "object", set()
        return subscript("dict", "str", self.use("JSONValue")), "object", {PRESERVE}

    def _scalar(self, schema: Schema, type_: str) -> tuple[Expression, str, set[str]]:
        values, format_ = schema.get("enum"), schema.get("format")
        if isinstance(values, list) and values and format_ is None:
            choice = subscript(self.use("Literal"), *map(literal, values))
            if type_ == "string" and all(isinstance(value, str) for value in values):
                return subscript(self.use("Choice"), choice), "", {"enum"}
            if type_ == "integer" and all(type(value) is int for value in values):
                return choice, "", {"enum"}
        if isinstance(format_, str) and (type_, format_) in _FORMATS:
            return self.use(_FORMATS[type_, format_]), "" if format_ == "date-time" else type_, {"format"}
        said = {"format"} if (type_, format_) == ("integer", "int64") else set()
        return _PLAIN[type_], "" if type_ == "boolean" or isinstance(values, list) else type_, said

    def _markers(self, schema: Schema, limited_as: str, said: set[str]) -> Markers:
        rest: Schema = {
            keyword: value
            for keyword, value in schema.items()
            if keyword not in _HANDLED and keyword not in said and value is not False and value is not None
        }
        markers = self._merging(rest)
        format_ = rest.get("format")
        if isinstance(format_, str) and format_ != "byte":
            del rest["format"]
            markers.append(call(self.use("Format"), text(format_)))
        limits = {**_bounds(rest, limited_as), **_lengths(rest, limited_as)}
        extra = {keyword: value for keyword, value in rest.items() if keyword in EXTRA_KEYWORDS}
        if extra:
            limits["extra_json_schema"] = literal(extra)
        if limits:
            markers.append(call(self.use("Meta"), **limits))
        return markers

    def _merging(self, rest: Schema) -> Markers:
        list_type, keys = rest.pop("x-kubernetes-list-type", ""), rest.pop("x-kubernetes-list-map-keys", None)
        if list_type == "map" and isinstance(keys, list):
            return [call(self.use("ListMap"), *(text(str(key)) for key in keys))]
        if list_type == "set":
            return [call(self.use("ListSet"))]
        if "atomic" in (list_type, rest.pop("x-kubernetes-map-type", "")):
            return [call(self.use("Atomic"))]
        return []


def structure_key(schema: Schema) -> str:
    """The key that structures with the same class have in common."""
    form = canonical({keyword: schema[keyword] for keyword in ("properties", "required") if keyword in schema})
    return json.dumps(form, sort_keys=True)


def _is_plain_alternative(schema: Schema) -> bool:
    return "anyOf" not in canonical(schema)


def _bounds(rest: Schema, limited_as: str) -> dict[str, Expression]:
    """The bounds of a number, which are taken out of `rest`."""
    limits: dict[str, Expression] = {}
    if limited_as not in ("integer", "number"):
        return limits
    for keyword, exclusive, inclusive_name, exclusive_name in _BOUNDS:
        if keyword in rest and (bound := _number(rest[keyword], limited_as)) is not None:
            del rest[keyword]
            limits[exclusive_name if rest.pop(exclusive, False) else inclusive_name] = bound
    if _is_exact(rest.get("multipleOf")) and (factor := _number(rest["multipleOf"], limited_as)) is not None:
        del rest["multipleOf"]
        limits["multiple_of"] = factor
    return limits


def _is_exact(factor: JSONValue) -> bool:
    """Whether Python can decide exactly what is a multiple of it: 2.5 is none of the float 0.1."""
    return isinstance(factor, int | float) and Decimal(factor) == Decimal(repr(factor))


def _number(value: JSONValue, limited_as: str) -> str | None:
    """A bound as msgspec takes it; None when it cannot."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if limited_as == "integer" and not (isinstance(value, int) and abs(value) <= _MAX_INTEGER):
        return None
    return repr(value)


def _lengths(rest: Schema, limited_as: str) -> dict[str, Expression]:
    """The lengths and the pattern of a string, list or map, which are taken out of `rest`."""
    limits: dict[str, Expression] = {}
    for keyword, name in _LENGTHS.get(limited_as, {}).items():
        if isinstance(rest.get(keyword), int):
            limits[name] = repr(rest.pop(keyword))
    pattern = rest.get("pattern")
    if limited_as == "string" and isinstance(pattern, str) and _reads_alike(pattern):
        del rest["pattern"]
        limits["pattern"] = text(pattern)
    return limits


def _reads_alike(pattern: str) -> bool:
    """Whether Python and Go read the pattern alike."""
    try:
        with warnings.catch_warnings(action="error", category=FutureWarning):
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, FutureWarning):
        return False
    return incompatibility(pattern) is None


class _Known(Model):
    """The types of kubewright that a schema is compared with."""

    quantity: Quantity
    condition: Condition


def _known(name: str) -> Schema:
    return canonical(fields(schema_of(_Known))[name])


def _condition_shape(schema: Schema) -> dict[str, Schema]:
    """Of each field its type and its values: lengths and patterns are not what makes a condition."""
    return {
        name: {keyword: field[keyword] for keyword in ("type", "format", "enum") if keyword in field}
        for name, field in fields(canonical(schema)).items()
    }


_QUANTITY: Final = _known("quantity")
_CONDITION: Final = _condition_shape(_known("condition"))
_CONDITION_REQUIRED: Final = {"type", "status", "lastTransitionTime", "reason"}
