"""Checks of the rules in a definition before any object is there to apply them to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value, not_supported, required
from kubewright.controlplane.embedded.cel.cost.budget import Budget, multiplied
from kubewright.controlplane.embedded.cel.cost.estimate import worst_cost
from kubewright.controlplane.embedded.cel.cost.extent import Extent
from kubewright.controlplane.embedded.cel.cost.size import limited
from kubewright.controlplane.embedded.cel.declarations import declared
from kubewright.controlplane.embedded.cel.faults import about_rule
from kubewright.controlplane.embedded.cel.field_path import field_path
from kubewright.controlplane.embedded.cel.program import Program
from kubewright.controlplane.embedded.cel.rules import RuleError, has_rules, rule_expression
from kubewright.controlplane.embedded.cel.types import BOOL, STRING, CelType
from kubewright.controlplane.embedded.cel.views import with_object_meta

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_END = re.compile(r"[\n\r]")


def check_rules(schema: JSONObject, path: str) -> list[FieldError]:
    """What is wrong with the rules of a schema without other faults, which is at `path`.

    Faults of expressions come after those of what is written around them, those of the budget last.
    """
    faults = list(_static(schema, path))
    if has_rules(schema):
        budget = Budget()
        faults += _compiled(schema, path, _Context(budget, tuple(fault.field for fault in faults), 1))
        faults += budget.overdrawn(path)
    return faults


@dataclass(frozen=True, slots=True)
class _Context:
    """Where in a definition a schema is."""

    budget: Budget
    faulty: tuple[str, ...]
    """The fields that have faults of another kind."""
    cardinality: int | None
    """How many of its values there can be; None when nothing limits that."""
    uncorrelatable: str = ""
    """The enclosing list whose items cannot be correlated, if any."""
    root: bool = True


def _levels(schema: JSONObject, path: str) -> Iterator[tuple[str, JSONObject]]:
    """The schemas directly below, in the order the server visits them."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield f"{path}.additionalProperties", additional
    for name, property_ in mapping(schema, "properties").items():
        yield f"{path}.properties[{name}]", mapping(property_)
    nested = schema.get("items")
    if isinstance(nested, dict):
        yield f"{path}.items", nested


def _alternatives(schema: JSONObject, path: str) -> Iterator[tuple[str, JSONObject]]:
    if isinstance(schema.get("not"), dict):
        yield f"{path}.not", mapping(schema, "not")
    for name in ("allOf", "oneOf", "anyOf"):
        for index, nested in enumerate(items(schema, name)):
            yield f"{path}.{name}[{index}]", mapping(nested)


def _static(schema: JSONObject, path: str) -> Iterator[FieldError]:
    for nested_path, nested in (*_levels(schema, path), *_alternatives(schema, path)):
        yield from _static(nested, nested_path)
    for index, rule in enumerate(items(schema, "x-kubernetes-validations")):
        yield from _around(mapping(rule), schema, f"{path}.x-kubernetes-validations[{index}]")


def _around(rule: JSONObject, schema: JSONObject, path: str) -> Iterator[FieldError]:
    source, message = text(rule, "rule"), text(rule, "message")
    if not source.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_value(f"{path}.message", message, "must be non-empty if specified")
    elif _LINE_END.search(message.strip()):
        yield invalid_value(f"{path}.message", message, "must not contain line breaks")
    elif _LINE_END.search(source.strip()) and not message:
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = text(rule, "messageExpression")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    yield from _about_path(text(rule, "fieldPath"), schema, f"{path}.fieldPath")


def _about_path(field: str, schema: JSONObject, path: str) -> Iterator[FieldError]:
    if not field:
        return
    if not field.strip():
        yield invalid_value(path, field, "must be non-empty if specified")
    if _LINE_END.search(field):
        yield invalid_value(path, field, "must not contain line breaks")
    try:
        field_path(field, schema)
    except ValueError:
        yield invalid_value(path, field, "must be a valid path")


def _compiled(schema: JSONObject, path: str, context: _Context) -> Iterator[FieldError]:
    for nested_path, nested in _levels(schema, path):
        if not has_rules(nested):
            continue
        within = context.uncorrelatable
        if nested_path.endswith(".items") and text(schema, "x-kubernetes-list-type") != "map":
            within = within or path
        cardinality = multiplied(context.cardinality, schema)
        yield from _compiled(nested, nested_path, _Context(context.budget, context.faulty, cardinality, within, False))
    rules = items(schema, "x-kubernetes-validations")
    # Where the schema is faulty, complaints about expressions would only confuse.
    if not rules or any(field.startswith(path) for field in context.faulty):
        return
    resource = context.root or schema.get("x-kubernetes-embedded-resource") is True
    type_ = declared(schema, resource=resource)
    if type_ is None:
        message = "failed to construct type information for x-kubernetes-validations rules"
        detail = f"internal error: {message}: unable to convert structural schema to CEL declarations"
        yield FieldError("InternalError", f"{path}.x-kubernetes-validations", None, detail)
        return
    extent = Extent(with_object_meta(schema) if resource else schema)
    for index, rule in enumerate(rules):
        at = f"{path}.x-kubernetes-validations[{index}]"
        yield from _expressions(mapping(rule), type_, extent, at, context)


def _expressions(
    rule: JSONObject, type_: CelType, extent: Extent, path: str, context: _Context
) -> Iterator[FieldError]:
    program: Program | None = None
    try:
        expression, program = rule_expression(text(rule, "rule"), rule, type_, BOOL)
    except RuleError as error:
        yield about_rule(f"{path}.rule", rule, str(error))
    else:
        count = extent.cardinality if context.cardinality is None else context.cardinality
        cost = limited(worst_cost(expression.tree, extent) * count)
        yield from context.budget.spend(f"{path}.rule", "rule", cost)
        if text(rule, "messageExpression"):
            yield from _message(rule, type_, extent, f"{path}.messageExpression", context)
    if program is not None and "oldSelf" in program.uses:
        if context.uncorrelatable:
            within = context.uncorrelatable
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
            yield invalid_value(f"{path}.rule", rule.get("rule"), detail)
    elif rule.get("optionalOldSelf") is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield invalid_value(f"{path}.optionalOldSelf", rule.get("optionalOldSelf"), detail)


def _message(rule: JSONObject, type_: CelType, extent: Extent, path: str, context: _Context) -> Iterator[FieldError]:
    try:
        expression, _ = rule_expression(text(rule, "messageExpression"), rule, type_, STRING)
    except RuleError as error:
        yield about_rule(path, rule, str(error))
        return
    yield from context.budget.spend(path, "messageExpression", worst_cost(expression.tree, extent))
