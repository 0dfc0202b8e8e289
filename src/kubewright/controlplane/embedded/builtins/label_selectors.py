"""The `LabelSelector` inside of objects: whether it is well-formed, and whether labels match it."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.selectors import OPERATORS, LabelMatcher, LabelRequirement
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.metadata import validate_labels
from kubewright.controlplane.embedded.builtins.names import label_value, qualified_name


def validate_selector(selector: JSONValue, path: str) -> list[FieldError]:
    """What is wrong with a selector; an absent one is fine."""
    if not isinstance(selector, dict):
        return []
    errors = validate_labels(mapping(selector, "matchLabels"), f"{path}.matchLabels")
    for index, expression in enumerate(items(selector, "matchExpressions")):
        errors += _expression(expression, f"{path}.matchExpressions[{index}]")
    return errors


def validate_operator(expression: JSONValue, path: str) -> list[FieldError]:
    """The errors of an expression's operator, and of whether it has values; the values themselves are not checked."""
    operator, values = text(expression, "operator"), items(expression, "values")
    if operator in ("In", "NotIn"):
        complaint = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{path}.values", complaint)]
    if operator in ("Exists", "DoesNotExist"):
        complaint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(f"{path}.values", complaint)] if values else []
    return [invalid_value(f"{path}.operator", operator, "not a valid selector operator")]


def _expression(expression: JSONValue, path: str) -> list[FieldError]:
    errors = validate_operator(expression, path)
    values, key = items(expression, "values"), text(expression, "key")
    errors += [invalid_value(f"{path}.key", key, wrong) for wrong in qualified_name(key)]
    for index, value in enumerate(values):
        errors += [invalid_value(f"{path}.values[{index}]", value, wrong) for wrong in label_value(str(value))]
    return errors


def is_empty(selector: JSONValue) -> bool:
    """Whether a selector is empty, and so matches everything."""
    return not mapping(selector, "matchLabels") and not items(selector, "matchExpressions")


def matches(selector: JSONValue, labels: JSONObject) -> bool:
    """Whether a selector selects labels."""
    return matcher_of(selector).matches(texts(labels))


def matcher_of(selector: JSONValue) -> LabelMatcher:
    """The matcher of a selector. Operators that validation refuses are read as `DoesNotExist`."""
    requirements = [
        LabelRequirement(key, "=", (value,)) for key, value in texts(mapping(selector, "matchLabels")).items()
    ]
    for expression in items(selector, "matchExpressions"):
        values = tuple(sorted(value for value in items(expression, "values") if isinstance(value, str)))
        operator = OPERATORS.get(text(expression, "operator"), "!")
        requirements.append(LabelRequirement(text(expression, "key"), operator, values))
    return LabelMatcher(requirements)


def texts(labels: JSONObject) -> dict[str, str]:
    """The labels that are text, as those of every valid object are."""
    return {key: value for key, value in labels.items() if isinstance(value, str)}
