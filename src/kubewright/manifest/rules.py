"""Rules in CEL: `x-kubernetes-validations`, and what the server demands of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kubewright.api.field_path import FieldPath, FieldPathError
from kubewright.api.markers import AtLeastOneOf, AtMostOneOf, FieldUnion, JSONValue, Rule
from kubewright.api.naming import json_name
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import RULES, inner, is_untyped
from kubewright.manifest.path import PathError, schema_at

# As CEL has to spell names that are its own words.
_RESERVED: Final = re.compile(
    "true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|namespace|return|var|void|while"
)
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_FIELD: Final = re.compile(r"\b(?:self|oldSelf)((?:\.[A-Za-z_]\w*\b(?!\())+)")
_KEYWORDS: Final = {
    "message": "message",
    "message_expression": "messageExpression",
    "reason": "reason",
    "optional_old_self": "optionalOldSelf",
}

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")

UNCHANGED: Final = Rule("self == oldSelf", message="field is immutable")


def removal_rule(name: str) -> Rule:
    """A rule for the structure around an optional immutable field: one on the field itself does not see its removal."""
    field = escaped(name)
    return Rule(f"!has(oldSelf.{field}) || has(self.{field})", message=f"{name} is immutable once it is set")


def escaped(name: str) -> str:
    """A field as CEL spells it."""
    return f"__{name}__" if _RESERVED.fullmatch(name) else re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)


def add_rules(schema: dict[str, JSONValue], rules: Sequence[Rule | FieldUnion], where: str) -> None:
    """Add rules to a schema; an error for one that names a field as Python does, or that the server would refuse."""
    if not rules:
        return
    if not is_visible(schema):
        raise ManifestError(f"{where}: rules, Immutable() included, do not see JSONValue: use dict[str, JSONValue]")
    rendered: list[JSONValue] = []
    for rule in rules:
        if isinstance(rule, FieldUnion):
            rule = _union_rule(rule, schema, where)
        _check_names(rule, schema, where)
        _check_field_path(rule, schema, where)
        _check_options(rule, where)
        rendered.append(_rendered(rule))
    existing = schema.get(RULES)
    schema[RULES] = [*(existing if isinstance(existing, list) else []), *rendered]


def is_visible(schema: dict[str, JSONValue]) -> bool:
    """Whether CEL has such values: it has no type for what may be anything, nor for lists and maps of that."""
    nested = inner(schema)
    return not is_untyped(schema) and (nested is None or is_visible(nested))


def _union_rule(union: FieldUnion, schema: dict[str, JSONValue], where: str) -> Rule:
    """The same in CEL; an error for a field that does not exist, or that is always set."""
    properties, required = schema.get("properties"), schema.get("required")
    known = properties if isinstance(properties, dict) else {}
    for name in union.fields:
        field = known.get(name)
        if not isinstance(field, dict):
            if json_name(name) in known:
                raise ManifestError(f'{where}: {union!r} names a field as Python does: write "{json_name(name)}"')
            raise ManifestError(f'{where}: {union!r}: there is no field "{name}" (JSON names: {", ".join(known)})')
        if "default" in field or (isinstance(required, list) and name in required):
            raise ManifestError(
                f'{where}: {union!r}: "{name}" is always set, because it is required or has a default: '
                "make it optional, with the default None"
            )
    fields, names = [f"has(self.{escaped(name)})" for name in union.fields], ", ".join(union.fields)
    if isinstance(union, AtLeastOneOf):
        return Rule(" || ".join(fields), message=f"at least one of {names} must be set")
    count = " + ".join(f"({field} ? 1 : 0)" for field in fields)
    if isinstance(union, AtMostOneOf):
        return Rule(f"{count} <= 1", message=f"at most one of {names} may be set")
    return Rule(f"{count} == 1", message=f"exactly one of {names} must be set")


def check_correlation(schema: dict[str, JSONValue], where: str) -> None:
    """Raise `ManifestError` for rules about changes inside of lists whose items the server cannot correlate."""
    items = schema.get("items")
    if isinstance(items, dict):
        if schema.get("x-kubernetes-list-type") != "map" and (rule := _change_rule(items)):
            raise ManifestError(
                f"{where}: the rule {rule!r} is about changes, but the server cannot identify the items of this list: "
                'make it Annotated[list[...], ListMap("name")] with the fields that identify an item'
            )
        check_correlation(items, where)
    for name, nested in _nested(schema):
        check_correlation(nested, f"{where}.{name}")


def _nested(schema: dict[str, JSONValue]) -> list[tuple[str, dict[str, JSONValue]]]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    named = [*(properties.items() if isinstance(properties, dict) else ()), ("*", additional)]
    return [(name, nested) for name, nested in named if isinstance(nested, dict)]


def _change_rule(schema: dict[str, JSONValue]) -> str:
    """The first rule about changes in a schema or below."""
    rules = schema.get(RULES)
    for rule in rules if isinstance(rules, list) else ():
        source = rule.get("rule") if isinstance(rule, dict) else None
        if isinstance(source, str) and re.search(r"\boldSelf\b", source):
            return source
    items = schema.get("items")
    below = [nested for _, nested in _nested(schema)] + ([items] if isinstance(items, dict) else [])
    return next((found for nested in below if (found := _change_rule(nested))), "")


def _rendered(rule: Rule) -> JSONValue:
    rendered: dict[str, JSONValue] = {"rule": rule.rule}
    for name, keyword in _KEYWORDS.items():
        value: JSONValue = getattr(rule, name)
        if value not in ("", None):
            rendered[keyword] = value
    if rule.field_path:
        rendered["fieldPath"] = str(FieldPath(rule.field_path))
    return rendered


def _check_field_path(rule: Rule, schema: dict[str, JSONValue], where: str) -> None:
    if not rule.field_path:
        return
    try:
        path = FieldPath(rule.field_path)
        if path.steps[0] != "metadata":  # which the schema of a kind does not describe
            schema_at(schema, path)
    except (FieldPathError, PathError) as error:
        raise ManifestError(f'{where}: field_path of the rule "{rule.rule}": {error}') from None


def _check_options(rule: Rule, where: str) -> None:
    if rule.reason and rule.reason not in _REASONS:
        raise ManifestError(
            f'{where}: the reason "{rule.reason}" of the rule "{rule.rule}" is none of {", ".join(_REASONS)}'
        )
    if "\n" in rule.message.strip():  # as the server does, which ignores what a block of YAML ends with
        raise ManifestError(f'{where}: the message of the rule "{rule.rule}" must be one line')
    if rule.optional_old_self is not None and not re.search(r"\boldSelf\b", rule.rule):
        raise ManifestError(
            f'{where}: optional_old_self is for rules about changes, but "{rule.rule}" does not use oldSelf'
        )


def _check_names(rule: Rule, schema: dict[str, JSONValue], where: str) -> None:
    for found in _FIELD.finditer(rule.rule):
        current: JSONValue = schema
        for name in found[1].split(".")[1:]:
            properties = current.get("properties") if isinstance(current, dict) else None
            if not isinstance(properties, dict):
                break
            if name not in properties and json_name(name) in properties:
                raise ManifestError(
                    f'{where}: the rule "{rule.rule}" names the field "{name}" as Python does: '
                    f'write "{json_name(name)}", as in JSON'
                )
            current = properties.get(name)
            if isinstance(current, dict) and not is_visible(current):
                raise ManifestError(
                    f'{where}: the rule "{rule.rule}" names the field "{name}", but rules do not see JSONValue: use '
                    "dict[str, JSONValue]"
                )
