"""Validation rules of a schema, compiled once and applied to objects: `x-kubernetes-validations`.

The order is the one of the document. What a rule finds wrong with a value that an update left alone is tolerated
(ratcheting), unless the rule is about the change itself (`oldSelf`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import FieldError, FieldErrorType
from kubewright.controlplane.embedded.cel.correlated_value import CorrelatedValue
from kubewright.controlplane.embedded.cel.cost.estimate import worst_cost
from kubewright.controlplane.embedded.cel.cost.extent import Extent
from kubewright.controlplane.embedded.cel.cost.metering import CostExceeded, Meter
from kubewright.controlplane.embedded.cel.cost.spending import Exhausted, NeedsMeter, Spending
from kubewright.controlplane.embedded.cel.declarations import declared
from kubewright.controlplane.embedded.cel.expressions import Expression, checked
from kubewright.controlplane.embedded.cel.faults import WithoutValue
from kubewright.controlplane.embedded.cel.field_path import field_path
from kubewright.controlplane.embedded.cel.program import InstantiationError, Program
from kubewright.controlplane.embedded.cel.source import ExpressionError
from kubewright.controlplane.embedded.cel.types import BOOL, STRING, CelType, optional_of
from kubewright.controlplane.embedded.cel.values import NONE, EvaluationError, NoSuchOverload, Optional
from kubewright.controlplane.embedded.cel.views import Convert, converter, with_object_meta

_MAX_MESSAGE_LENGTH = 5 * 1024
_OUT_OF_BUDGET = "due to running out of cost budget, no further validation rules will be run"
_NOTHING_LEFT = f"validation failed {_OUT_OF_BUDGET}"
_REASONS: Mapping[str, FieldErrorType] = {
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueRequired": "FieldValueRequired",
    "FieldValueDuplicate": "FieldValueDuplicate",
}


class _Rule:
    """One rule, ready to run, or the reason why it cannot."""

    def __init__(self, source: JSONObject, schema: JSONObject) -> None:
        self.source = source
        self.default_message = text(source, "message").strip() or text(source, "rule").strip()
        self.field_path = _shown_path(text(source, "fieldPath"), schema)
        self.program: Program | None = None
        self.message: Program | None = None
        self.expressions: list[Expression] = []
        self.worst = 0
        """The most that a run, message included, can cost."""
        self._metered: list[Program] = []
        self._meter = Meter()
        self.failure = ""
        self.optional_old_self = source.get("optionalOldSelf") is True
        self.uses_old_self = False
        self.runs_without_old = True

    @classmethod
    def of(cls, source: JSONObject, schema: JSONObject, type_: CelType) -> _Rule:
        """A rule of a schema; one that does not compile fails whenever it is applied, an empty one does nothing."""
        rule = cls(source, schema)
        if not text(source, "rule").strip():
            return rule
        try:
            expression, rule.program = rule_expression(text(source, "rule"), source, type_, BOOL)
        except RuleError as error:
            rule.failure = str(error)
            return rule
        rule.uses_old_self = "oldSelf" in rule.program.uses
        rule.runs_without_old = rule.optional_old_self or not rule.uses_old_self
        if text(source, "messageExpression"):
            # A message that does not compile is refused with the definition; here the plain one stands in for it.
            with suppress(RuleError):
                message, rule.message = rule_expression(text(source, "messageExpression"), source, type_, STRING)
                rule.expressions.append(message)
        rule.expressions.insert(0, expression)
        extent = Extent(schema)
        rule.worst = sum(worst_cost(expression.tree, extent) for expression in rule.expressions)
        return rule

    def metered(self, values: tuple[object, object], *, message: bool = False) -> tuple[object, int]:
        """The result of the rule, or of its message, with what it cost; an error is a result, too."""
        if not self._metered:
            self._metered = [expression.metered(self._meter) for expression in self.expressions]
        self._meter.spent = 0
        try:
            result = self._metered[1 if message else 0].run(*values)
        except (EvaluationError, CostExceeded) as error:
            return error, self._meter.spent
        return result, self._meter.spent


def _shown_path(path: str, schema: JSONObject) -> str:
    try:
        return field_path(path, schema).shown
    except ValueError:
        return ""


class CompiledRules:
    """All rules of a schema."""

    def __init__(self, root: _Level) -> None:
        self._root = root

    def validate(self, new: JSONValue, old: JSONValue = None, at: str = "") -> list[FieldError]:
        """What the rules find wrong with an object, or with its change from `old`. `at` is where it is."""
        change = CorrelatedValue(new, old, self._root.schema)
        errors: list[FieldError] = []
        try:
            self._root.apply(at, change, errors, Spending(metered=False))
        except NeedsMeter:
            errors = []
            with suppress(Exhausted):
                self._root.apply(at, change, errors, Spending(metered=True))
        return errors


def compile_rules(schema: JSONObject, *, resource: bool = True) -> CompiledRules | None:
    """The rules anywhere in the schema of a resource, or of a part of one; None when there are none."""
    level = _Level.of(schema, resource=resource)
    return None if level is None else CompiledRules(level)


def has_rules(schema: JSONObject) -> bool:
    """Whether a schema has rules, at its root or below."""
    if schema.get("x-kubernetes-validations"):
        return True
    nested = [schema.get("items"), schema.get("additionalProperties"), *mapping(schema, "properties").values()]
    return any(isinstance(child, dict) and has_rules(child) for child in nested)


def variables(type_: CelType, rule: JSONObject) -> dict[str, CelType]:
    """What a rule may name."""
    old = optional_of(type_) if rule.get("optionalOldSelf") is True else type_
    return {"self": type_, "oldSelf": old}


class RuleError(Exception):
    """A rule or message that does not compile, worded as the server words it."""


def rule_expression(source: str, rule: JSONObject, type_: CelType, wanted: CelType) -> tuple[Expression, Program]:
    """An expression of a rule, which must be of the wanted type."""
    prefix = "" if wanted == BOOL else "messageExpression "
    try:
        expression = checked(source, variables(type_, rule))
    except ExpressionError as error:
        raise RuleError(f"{prefix}compilation failed: {error}") from None
    if expression.type != wanted:
        raise RuleError(
            "cel expression must evaluate to a bool" if wanted == BOOL else f"{prefix}must evaluate to a string"
        )
    try:
        return expression, expression.program()
    except InstantiationError as error:
        raise RuleError(f"{prefix or 'program '}instantiation failed: {error}") from None


class _Level:
    """The rules of one node of the schema, and those below it."""

    def __init__(self, schema: JSONObject, rules: Sequence[_Rule], convert: Convert) -> None:
        self.schema = schema
        self._rules = rules
        self._looks_back = any(rule.uses_old_self for rule in rules)
        self._convert = convert
        self._type = text(schema, "type")
        self._items: _Level | None = None
        self._values: _Level | None = None
        self._properties: dict[str, _Level] = {}

    @classmethod
    def of(cls, schema: JSONObject, *, resource: bool) -> _Level | None:
        """None where there is nothing to apply, or where rules cannot see."""
        rules = items(schema, "x-kubernetes-validations")
        if not has_rules(schema):
            return None
        compiled: list[_Rule] = []
        if rules:
            type_ = declared(schema, resource=resource)
            if type_ is None:
                return None
            compiled = [_Rule.of(mapping(rule), schema, type_) for rule in rules]
        level = cls(schema, compiled, converter(with_object_meta(schema) if resource else schema))
        nested = schema.get("items")
        if isinstance(nested, dict):
            level._items = cls.of(nested, resource=_is_embedded(nested))
        nested = schema.get("additionalProperties")
        if isinstance(nested, dict):
            level._values = cls.of(nested, resource=_is_embedded(nested))
        for name, property_ in mapping(schema, "properties").items():
            child = cls.of(mapping(property_), resource=_is_embedded(mapping(property_)))
            if child is not None:
                level._properties[name] = child
        return level

    def apply(self, path: str, change: CorrelatedValue, errors: list[FieldError], spending: Spending) -> None:
        """Runs the rules on a value and on what is in it."""
        new = change.new
        if new is None:
            return
        if self._rules:
            self._run(path or "<nil>", change, errors, spending)
        if isinstance(new, list):
            if self._items is not None:
                for index, item in enumerate(new):
                    self._items.apply(f"{path}[{index}]", change.item(item), errors, spending)
        elif isinstance(new, dict):
            for name, value in new.items():
                level = self._properties.get(name)
                if level is not None:
                    shown = f"{path}.{name}" if path else name
                    level.apply(shown, self._member(path, name, value, change), errors, spending)
                elif self._values is not None:
                    self._values.apply(f"{path}[{name}]", change.member(name, value), errors, spending)

    def _member(self, path: str, name: str, value: JSONValue, change: CorrelatedValue) -> CorrelatedValue:
        if not path and name in ("apiVersion", "kind"):
            # Both objects were converted to the same version: these say nothing about what was sent.
            return change.unrelated(value, change.old.get(name) if isinstance(change.old, dict) else None)
        return change.member(name, value)

    def _run(self, path: str, change: CorrelatedValue, errors: list[FieldError], spending: Spending) -> None:
        if not spending.left:
            errors.append(FieldError("FieldValueInvalid", path, self._type, _NOTHING_LEFT))
            raise Exhausted
        value: object = None
        old: object = None
        unreadable: EvaluationError | None = None
        try:
            value = self._convert(change.new)
            if self._looks_back and change.old is not None:
                old = self._convert(change.old)
        except EvaluationError as failure:
            # A stored value that no longer fits its schema, left alone by the update.
            unreadable = failure
        for rule in self._rules:
            if rule.failure:
                detail = f"rule compile error: {rule.failure}"
                errors.append(FieldError("FieldValueInvalid", path, self._type, detail))
            elif rule.program is not None and (change.old is not None or rule.runs_without_old):
                past = old
                if rule.optional_old_self:
                    past = NONE if change.old is None else Optional(True, old)
                if unreadable is not None:
                    errors.append(self._failure(path, rule, unreadable))
                    continue
                spending.expect(rule.worst)
                error = self._applied(rule, rule.program, path, change, (value, past), spending)
                if error is not None:
                    errors.append(error)
                if spending.left < 0:
                    raise Exhausted

    def _applied(
        self,
        rule: _Rule,
        program: Program,
        path: str,
        change: CorrelatedValue,
        values: tuple[object, object],
        spending: Spending,
    ) -> FieldError | None:
        if spending.metered:
            result, cost = rule.metered(values)
            if not spending.pay(cost):
                return self._end(spending, path, _NOTHING_LEFT)
        else:
            try:
                result = program.run(*values)
            except EvaluationError as error:
                result = error
        if result is True:
            return None
        if isinstance(result, CostExceeded):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            return self._end(spending, path, f"'{result}': {why}: {rule.default_message}")
        if isinstance(result, EvaluationError):
            return self._failure(path, rule, result)
        if rule.field_path:
            path = f"{path}.{rule.field_path}" if path != "<nil>" else rule.field_path
        detail = text(rule.source, "message").strip() or f"failed rule: {rule.default_message}"
        if rule.message is not None:
            if spending.metered:
                message, cost = rule.metered(values, message=True)
                if not spending.pay(cost):
                    return self._end(spending, path, f"messageExpression evaluation failed {_OUT_OF_BUDGET}")
                if isinstance(message, CostExceeded):
                    why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
                    default_message = f"{why}: {quoted(text(rule.source, 'messageExpression'))}"
                    return self._end(spending, path, default_message)
            else:
                message = _evaluated(rule.message, values)
            detail = _message(message) or detail
        found = self._error(text(rule.source, "reason"), path, change.new, detail)
        return replace(found, tolerated=True) if not rule.uses_old_self and change.is_untouched else found

    def _end(self, spending: Spending, path: str, detail: str) -> FieldError:
        spending.left = -1
        return FieldError("FieldValueInvalid", path, self._type, detail)

    def _failure(self, path: str, rule: _Rule, error: EvaluationError) -> FieldError:
        detail = f"{error} evaluating rule: {rule.default_message}"
        if isinstance(error, NoSuchOverload):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            detail = f"'{error}': {why}: {rule.default_message}"
        return FieldError("FieldValueInvalid", path, self._type, detail)

    def _error(self, reason: str, path: str, new: JSONValue, detail: str) -> FieldError:
        type_ = _REASONS.get(reason, "FieldValueInvalid")
        if type_ in ("FieldValueForbidden", "FieldValueRequired"):
            return FieldError(type_, path, None, detail)
        if type_ == "FieldValueDuplicate":
            detail = ""
        if self._type in ("object", "array"):
            return WithoutValue(type_, path, None, detail)
        return FieldError(type_, path, new, detail)


def _is_embedded(schema: JSONObject) -> bool:
    return schema.get("x-kubernetes-embedded-resource") is True


def _evaluated(program: Program, values: tuple[object, object]) -> object:
    try:
        return program.run(*values)
    except EvaluationError as error:
        return error


def _message(message: object) -> str:
    """The text of a message; empty when it is not usable as one."""
    if not isinstance(message, str):
        return ""
    message = message.strip()
    return "" if len(message.encode()) > _MAX_MESSAGE_LENGTH or "\n" in message else message
