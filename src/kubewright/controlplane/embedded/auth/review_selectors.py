"""The selectors that an access review may carry. RBAC ignores them, but they are validated."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.apimachinery.selectors import parse_field_selector, parse_label_selector
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.names import label_value, qualified_name

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_KINDS = ("fieldSelector", "labelSelector")
_PATH = "spec.resourceAttributes"


def selector_errors(attributes: JSONObject) -> Iterator[FieldError]:
    """What is wrong with the form of the selectors in `resourceAttributes`."""
    for kind in _KINDS:
        selector, path = at(attributes, kind), f"{_PATH}.{kind}"
        if not isinstance(selector, dict):
            continue
        raw, requirements = text(selector, "rawSelector"), items(selector, "requirements")
        if raw and requirements:
            yield invalid_value(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
        if not raw and not requirements:
            yield required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")
        for index, requirement in enumerate(requirements):
            yield from _requirement_errors(kind, requirement, f"{path}.requirements[{index}]")


def evaluation_error(attributes: JSONObject) -> str:
    """What of the selectors is not understood, and therefore ignored; empty when all of it is."""
    messages = []
    for kind in _KINDS:
        raw, requirements = text(attributes, kind, "rawSelector"), items(attributes, kind, "requirements")
        understood = [_is_understood(kind, requirement) for requirement in requirements]
        if not all(understood) or (raw and not _parses(kind, raw)):
            extent = "partially ignored" if any(understood) else "ignored"
            messages.append(f"{_PATH}.{kind} {extent} due to parse error")
    return "; ".join(messages)


def _requirement_errors(kind: str, requirement: JSONValue, path: str) -> Iterator[FieldError]:
    key, operator, values = text(requirement, "key"), text(requirement, "operator"), items(requirement, "values")
    if kind == "fieldSelector" and not key:
        yield required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield forbidden_field(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    if kind == "labelSelector":
        for problem in qualified_name(key):
            yield invalid_value(f"{path}.key", key, problem)
        for index, value in enumerate(values):
            for problem in label_value(value if isinstance(value, str) else ""):
                yield invalid_value(f"{path}.values[{index}]", value, problem)


def _is_understood(kind: str, requirement: JSONValue) -> bool:
    operator = text(requirement, "operator")
    if kind == "labelSelector":
        return operator in _OPERATORS
    return operator in ("In", "NotIn") and len(items(requirement, "values")) == 1


def _parses(kind: str, raw: str) -> bool:
    try:
        (parse_field_selector if kind == "fieldSelector" else parse_label_selector)(raw)
    except StatusError:
        return False
    return True
