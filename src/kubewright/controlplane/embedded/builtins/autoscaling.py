"""Horizontal pod autoscalers. Both versions are stored as autoscaling/v2; see `autoscaling_v1` for the other."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.markers import JSONObject
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.names import path_segment
from kubewright.controlplane.embedded.builtins.values import Errors, number, objects, one_of, present, quantity
from kubewright.controlplane.embedded.registry.resources import Strategy

SOURCES: Mapping[str, str] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_MAX_WINDOW = 3600
_MAX_PERIOD = 1800


def validate_autoscaler(autoscaler: JSONObject) -> Errors:
    """What is wrong with an autoscaler of autoscaling/v2."""
    spec = mapping(autoscaler, "spec")
    lowest, highest = spec.get("minReplicas"), number(spec.get("maxReplicas"))
    errors: Errors = []
    if isinstance(lowest, int) and lowest < 1:
        errors.append(invalid_value("spec.minReplicas", lowest, "must be greater than or equal to 1"))
    if highest == 0:
        errors.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif highest < 0:
        errors.append(invalid_value("spec.maxReplicas", highest, "must be greater than or equal to 1"))
    if isinstance(lowest, int) and highest < lowest:
        errors.append(invalid_value("spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`"))
    errors += _target(mapping(spec, "scaleTargetRef"), "spec.scaleTargetRef")
    for index, metric in objects(spec, "metrics"):
        errors += _metric(metric, f"spec.metrics[{index}]")
    if lowest == 0 and not any(text(metric, "type") in ("Object", "External") for metric in items(spec, "metrics")):
        complaint = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden_field("spec.metrics", complaint))
    for direction in ("scaleUp", "scaleDown"):
        rules = mapping(spec, "behavior").get(direction)
        if isinstance(rules, dict):
            errors += _rules(rules, f"spec.behavior.{direction}")
    return errors


def _target(reference: JSONObject, path: str) -> Errors:
    errors = present(f"{path}.kind", text(reference, "kind"), path_segment)
    errors += present(f"{path}.name", text(reference, "name"), path_segment)
    api_version = text(reference, "apiVersion")
    if "/" not in api_version and (api_version != "v1" or text(reference, "kind") != "ReplicationController"):
        errors.append(invalid_value(f"{path}.apiVersion", api_version, "apiVersion must specify API group"))
    return errors


def _metric(metric: JSONObject, path: str) -> Errors:
    kind = text(metric, "type")
    if not kind:
        return [required(f"{path}.type", "must specify a metric source type")]
    errors = one_of(f"{path}.type", kind, tuple(SOURCES))
    if errors:
        return errors
    field = SOURCES[kind]
    given = [name for name in SOURCES.values() if name in metric]
    if field not in metric:
        errors.append(required(f"{path}.{field}", "must populate information for the given metric source"))
    for name in given:
        if name != field:
            complaint = "must populate the given metric source only"
            errors.append(forbidden_field(f"{path}.{name}", complaint))
    if field in metric:
        errors += _source(kind, mapping(metric, field), f"{path}.{field}")
    return errors


def _source(kind: str, source: JSONObject, path: str) -> Errors:
    errors: Errors = []
    target = mapping(source, "target")
    where = f"{path}.target"
    if kind in ("Resource", "ContainerResource"):
        if not text(source, "name"):
            errors.append(required(f"{path}.name", "must specify a resource name"))
        errors += _amounts(target, where)
        if "averageUtilization" not in target and "averageValue" not in target:
            complaint = "must set either a target raw value or a target utilization"
            errors.append(required(f"{where}.averageUtilization", complaint))
        if "averageUtilization" in target and "averageValue" in target:
            complaint = "may not set both a target raw value and a target utilization"
            errors.append(forbidden_field(f"{where}.averageValue", complaint))
        return errors
    if not text(source, "metric", "name"):
        errors.append(required(f"{path}.metric.name", "must specify a metric name"))
    errors += _amounts(target, where)
    if kind == "Pods" and "averageValue" not in target:
        errors.append(required(f"{where}.averageValue", "must specify a positive target averageValue"))
    elif kind != "Pods" and "value" not in target and "averageValue" not in target:
        complaint = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{where}.averageValue", complaint))
    return errors


def _amounts(target: JSONObject, path: str) -> Errors:
    errors: Errors = []
    kind = text(target, "type")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(invalid_value(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if field in target and quantity(target[field]) <= Quantity(0):
            errors.append(invalid_value(f"{path}.{field}", target[field], "must be positive"))
    if "averageUtilization" in target and number(target["averageUtilization"]) < 1:
        errors.append(
            invalid_value(f"{path}.averageUtilization", target["averageUtilization"], "must be greater than 0")
        )
    return errors


def _rules(rules: JSONObject, path: str) -> Errors:
    errors: Errors = []
    window = rules.get("stabilizationWindowSeconds")
    where = f"{path}.stabilizationWindowSeconds"
    if isinstance(window, int) and window < 0:
        errors.append(invalid_value(where, window, "must be greater than or equal to zero"))
    elif isinstance(window, int) and window > _MAX_WINDOW:
        errors.append(invalid_value(where, window, f"must be less than or equal to {_MAX_WINDOW}"))
    if "selectPolicy" in rules:
        errors += one_of(f"{path}.selectPolicy", rules["selectPolicy"], ("Disabled", "Max", "Min"))
    if not items(rules, "policies"):
        errors.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in objects(rules, "policies"):
        here = f"{path}.policies[{index}]"
        errors += one_of(f"{here}.type", policy.get("type"), ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            if number(policy.get(field)) <= 0:
                errors.append(invalid_value(f"{here}.{field}", policy.get(field), "must be greater than zero"))
        if number(policy.get("periodSeconds")) > _MAX_PERIOD:
            complaint = f"must be less than or equal to {_MAX_PERIOD}"
            errors.append(invalid_value(f"{here}.periodSeconds", policy.get("periodSeconds"), complaint))
    return errors


AUTOSCALER = Strategy(validate=validate_autoscaler, validate_update=lambda new, old: validate_autoscaler(new))
