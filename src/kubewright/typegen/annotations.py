"""A schema as a Python type: `{type: integer, minimum: 1}` is `Annotated[int, Meta(ge=1)]`.

What Python's types and kubewright's markers have no word for (alternatives, patterns that only Go reads) is kept in
`extra_json_schema`, where the server still finds it: rendering the type again gives a schema that means the same.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

from kubewright.api.markers import JSONValue
from kubewright.manifest.constraints import EXTRA_KEYWORDS
from kubewright.manifest.keywords import (
    INT_OR_STRING,
    PRESERVE,
    RULES,
    Schema,
    described,
    inner,
    is_said,
    is_untyped,
    rules,
)
from kubewright.manifest.pattern import incompatibility
from kubewright.typegen.canonical import canonical, is_condition, is_quantity
from kubewright.typegen.layout import Bracket, Expression, Union, call, literal, subscript, text
from kubewright.typegen.unions import members_of

Markers: TypeAlias = list[Expression]

IMMUTABLE: Final[Schema] = {"rule": "self == oldSelf", "message": "field is immutable"}

_HANDLED: Final = frozenset(
    {"type", "properties", "required", "items", "additionalProperties", "nullable", "default", "description", RULES}
)
_PLAIN: Final = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}
_FORMATS: Final = {
    ("integer", "int32"): "Int32",
    ("integer", "int64"): "Int64",
    ("number", "double"): "Double",
    ("string", "date-time"): "Time",
}
_BOUNDS: Final = (("minimum", "exclusiveMinimum", "ge", "gt"), ("maximum", "exclusiveMaximum", "le", "lt"))
_LENGTHS: Final = {
    "string": {"minLength": "min_length", "maxLength": "max_length"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
    "object": {"minProperties": "min_length", "maxProperties": "max_length"},
}
_RULE_KEYWORDS: Final = {
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}
_MAX_INTEGER: Final = 2**63 - 1
_MAX_EXACT_FLOAT: Final = 2**53


def is_structure(schema: Schema) -> bool:
    """Whether the schema has a class of its own: it has named fields, or none at all, and is no map."""
    if schema.get("properties"):
        return not is_condition(schema)
    return schema.get("type") == "object" and not schema.get("additionalProperties") and not schema.get(PRESERVE)


def structure_key(schema: Schema) -> str:
    """What two structures have in common that can share a class: all but what is said of their use."""
    form = canonical({keyword: schema[keyword] for keyword in ("properties", "required", RULES) if keyword in schema})
    return json.dumps(form, sort_keys=True)


def is_nullable(schema: Schema) -> bool:
    """Whether null is a value besides those of the type. The server refuses it where values are enumerated."""
    return bool(schema.get("nullable")) and not schema.get("enum") and not is_untyped(schema)


class Annotations:
    """Writes type annotations, given how the structures are called and described; and remembers the names they use."""

    def __init__(
        self, class_names: Mapping[str, str], descriptions: Mapping[str, str], tag_fields: Mapping[str, str]
    ) -> None:
        self._class_names = class_names
        self._descriptions = descriptions
        self._tag_fields = tag_fields
        self.used: set[str] = set()

    def use(self, name: str) -> str:
        """A name that has to be imported."""
        self.used.add(name)
        return name

    def class_of(self, schema: Schema) -> str:
        """The name of the class of a structure or a condition."""
        return self.use("Condition") if is_condition(schema) else self._class_names[structure_key(schema)]

    def type_of(self, schema: Schema) -> Expression:
        """The same, or the classes of a union."""
        members = members_of(schema)
        if members is None:
            return self.class_of(schema)
        return Union(tuple(map(self.class_of, members.schemas.values())))

    def tag_field(self, schema: Schema) -> str:
        """The field of a structure that its class has as its tag; empty when there is none."""
        return self._tag_fields.get(structure_key(schema), "")

    def description(self, schema: Schema) -> str:
        """What has to be said of a value besides what its class says."""
        of_class = self._descriptions.get(structure_key(schema), "") if is_structure(schema) else ""
        return "" if described(schema).split() == of_class.split() else described(schema)

    def of(
        self,
        schema: Schema,
        *,
        absent: Expression | None = None,
        immutable: bool = False,
        extra: Mapping[str, JSONValue] | None = None,
    ) -> Expression:
        """The type of a field.

        With `absent`, what it is when it is not there; with `immutable`, its first such rule is a marker; with `extra`,
        keywords that it has besides.
        """
        return self._of(schema, absent, immutable, dict(extra or {}), "")

    def rule(self, rule: Schema) -> Expression:
        """`Rule(...)`."""
        options = {option: literal(rule[keyword]) for keyword, option in _RULE_KEYWORDS.items() if rule.get(keyword)}
        return call(self.use("Rule"), text(str(rule.get("rule", ""))), **options)

    def rules(self, of: Collection[Schema]) -> Expression:
        """`[Rule(...), ...]`."""
        return Bracket("[", tuple(map(self.rule, of)), "]")

    def _of(
        self, schema: Schema, absent: Expression | None, immutable: bool, extra: dict[str, JSONValue], description: str
    ) -> Expression:
        base, limited_as, said = self._base(schema)
        if schema.get("nullable") and schema.get("enum"):
            extra["nullable"] = True
        if is_untyped(schema) and bool(schema.get("nullable")) == (absent == "None"):
            extra["nullable"] = absent == "None"  # null is one of its values, unless it means that the field is absent
        if isinstance(allowed := schema.get("additionalProperties"), bool):
            extra["additionalProperties"] = allowed
        markers = self._markers(schema, limited_as, said, immutable, extra, description)
        # The markers stand within a union: msgspec takes the bounds of a number, and not those of a number or None.
        members = [subscript(self.use("Annotated"), base, *markers) if markers else base]
        if base != "JSONValue":
            if absent is not None and absent != "None":
                members.append(absent)
            if absent == "None" or is_nullable(schema):
                members.append("None")
        return Union(tuple(members)) if len(members) > 1 else members[0]

    def _inner(self, schema: Schema) -> Expression:
        """The type of the items of a list or of the values of a map, which have no docstring."""
        default = {"default": schema["default"]} if schema.get("default") is not None else {}
        return self._of(schema, None, False, default, self.description(schema))

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
            return subscript("list", self._inner(items) if items is not None else self.use("JSONValue")), "array", set()
        if isinstance(type_, str) and type_ in _PLAIN:
            return self._scalar(schema, type_)
        return self.use("JSONValue"), "", {PRESERVE}

    def _object(self, schema: Schema) -> tuple[Expression, str, set[str]]:
        if is_structure(schema) or schema.get("properties"):
            return self.type_of(schema), "", set()
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return subscript("dict", "str", self._inner(values)), "object", set()
        said = set() if isinstance(values, bool) else {PRESERVE}
        return subscript("dict", "str", self.use("JSONValue")), "object", said

    def _scalar(self, schema: Schema, type_: str) -> tuple[Expression, str, set[str]]:
        format_ = schema.get("format") or ""
        keyword, values = _enumeration(schema)
        if values and not format_:
            choice = subscript(self.use("Literal"), *map(literal, values))
            if type_ == "string" and all(isinstance(value, str) for value in values):
                return subscript(self.use("Choice"), choice), "", {keyword}
            if type_ == "integer" and all(type(value) is int for value in values):
                return choice, "", {keyword}
        if isinstance(format_, str) and (type_, format_) in _FORMATS:
            return self.use(_FORMATS[type_, format_]), "" if format_ == "date-time" else type_, {"format"}
        return _PLAIN[type_], "" if type_ == "boolean" or values else type_, set()

    def _markers(
        self,
        schema: Schema,
        limited_as: str,
        said: set[str],
        immutable: bool,
        extra: dict[str, JSONValue],
        description: str,
    ) -> Markers:
        rest: Schema = {
            keyword: value
            for keyword, value in schema.items()
            if keyword not in _HANDLED and keyword not in said and is_said(keyword, value)
        }
        markers = self._merging(rest, schema.get("type"))
        members = members_of(schema)
        if members is not None or not is_structure(schema):
            markers += self._rules(rules(schema) if members is None else members.rules, immutable)
        format_ = rest.get("format")
        if isinstance(format_, str) and format_ != "byte" and schema.get("type") in ("string", "integer", "number"):
            del rest["format"]
            markers.append(call(self.use("Format"), text(format_)))
        limits = {**_bounds(rest, limited_as), **_lengths(rest, limited_as)}
        if isinstance(title := rest.pop("title", None), str):
            limits["title"] = text(title)
        if description:
            limits["description"] = text(description)
        if "example" in rest:
            limits["examples"] = literal([rest.pop("example")])
        extra = {**{keyword: value for keyword, value in rest.items() if keyword in EXTRA_KEYWORDS}, **extra}
        if extra:
            limits["extra_json_schema"] = literal(extra)
        if limits:
            markers.append(call(self.use("Meta"), **limits))
        return markers

    def _rules(self, own: list[Schema], immutable: bool) -> Markers:
        if immutable:
            position = own.index(IMMUTABLE)
            before, after = own[:position], own[position + 1 :]
            return [*map(self.rule, before), call(self.use("Immutable")), *map(self.rule, after)]
        return [*map(self.rule, own)]

    def _merging(self, rest: Schema, type_: JSONValue) -> Markers:
        list_type, keys = rest.pop("x-kubernetes-list-type", ""), rest.pop("x-kubernetes-list-map-keys", None)
        map_type = rest.pop("x-kubernetes-map-type", "")
        if list_type == "map" and isinstance(keys, list):
            return [call(self.use("ListMap"), *(text(str(key)) for key in keys))]
        if list_type == "set":
            return [call(self.use("ListSet"))]
        if (type_, list_type) == ("array", "atomic") or (type_, map_type) == ("object", "atomic"):
            return [call(self.use("Atomic"))]
        return []


def _enumeration(schema: Schema) -> tuple[str, list[JSONValue]]:
    """The keyword that lists the values, and the values: of what may be null, they are in a part of their own."""
    values, parts = schema.get("enum"), schema.get("allOf")
    if isinstance(values, list) and values:
        return "enum", values
    if schema.get("nullable") and isinstance(parts, list) and len(parts) == 1:
        (part,) = parts
        nested = part.get("enum") if isinstance(part, dict) and part.keys() == {"enum"} else None
        if isinstance(nested, list):
            return "allOf", nested
    return "", []


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
    if _is_whole(rest.get("multipleOf")) and (factor := _number(rest["multipleOf"], limited_as)) is not None:
        del rest["multipleOf"]
        limits["multiple_of"] = factor
    return limits


def _is_whole(factor: JSONValue) -> bool:
    """Whether Python and the server agree on what is a multiple of it."""
    return isinstance(factor, int) or (isinstance(factor, float) and factor.is_integer())


def _number(value: JSONValue, limited_as: str) -> Expression | None:
    """A bound as msgspec takes it; None when it cannot."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > _MAX_EXACT_FLOAT and limited_as == "number":
        value = float(value)  # as the server keeps it
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_FLOAT:
        value = int(value)
    if limited_as == "integer" and not (isinstance(value, int) and abs(value) <= _MAX_INTEGER):
        return None
    return literal(value)


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
