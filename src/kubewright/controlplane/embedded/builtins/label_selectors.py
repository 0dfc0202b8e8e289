"""The `LabelSelector` inside of objects: whether it is well-formed, and whether labels match it."""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.document import JSONObject, items, mapping, text
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


def _expression(expression: JSONValue, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values, key = text(expression, "operator"), items(expression, "values"), text(expression, "key")
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            complaint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden_field(f"{path}.values", complaint))
    else:
        errors.append(invalid_value(f"{path}.operator", operator, "not a valid selector operator"))
    errors += [invalid_value(f"{path}.key", key, wrong) for wrong in qualified_name(key)]
    for index, value in enumerate(values):
        errors += [invalid_value(f"{path}.values[{index}]", value, wrong) for wrong in label_value(str(value))]
    return errors


def is_empty(selector: JSONValue) -> bool:
    """Whether a selector asks for nothing, and so matches everything."""
    return not mapping(selector, "matchLabels") and not items(selector, "matchExpressions")


def matches(selector: JSONValue, labels: JSONObject) -> bool:
    """Whether labels are what a well-formed selector asks for."""
    if any(labels.get(key) != value for key, value in mapping(selector, "matchLabels").items()):
        return False
    return all(_satisfied(expression, labels) for expression in items(selector, "matchExpressions"))


def _satisfied(expression: JSONValue, labels: JSONObject) -> bool:
    key, operator = text(expression, "key"), text(expression, "operator")
    if operator == "In":
        return key in labels and labels[key] in items(expression, "values")
    if operator == "NotIn":
        return key not in labels or labels[key] not in items(expression, "values")
    return (key in labels) == (operator == "Exists")
