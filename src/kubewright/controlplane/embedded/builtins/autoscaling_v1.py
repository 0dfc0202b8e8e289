"""autoscaling/v1: the CPU target has a field of its own, everything else v2 knows is kept in annotations."""

from __future__ import annotations

import json

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.builtins.autoscaling import SOURCES, validate_autoscaler
from kubewright.controlplane.embedded.builtins.values import Errors, objects
from kubewright.controlplane.embedded.registry.resources import Strategy

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _BEHAVIOR = f"{_PREFIX}metrics", f"{_PREFIX}behavior"
_CURRENT, _CONDITIONS = f"{_PREFIX}current-metrics", f"{_PREFIX}conditions"
_CPU_DEFAULT = 80
# How v1 calls the members of a v2 target, by the kind of source.
_TARGETS = {
    "Resource": {"averageUtilization": "targetAverageUtilization", "averageValue": "targetAverageValue"},
    "ContainerResource": {"averageUtilization": "targetAverageUtilization", "averageValue": "targetAverageValue"},
    "Pods": {"averageValue": "targetAverageValue"},
    "Object": {"value": "targetValue", "averageValue": "averageValue"},
    "External": {"value": "targetValue", "averageValue": "targetAverageValue"},
}
_TYPES = {"averageUtilization": "Utilization", "averageValue": "AverageValue", "value": "Value"}


def to_storage(autoscaler: JSONObject) -> JSONObject:
    """An autoscaler of autoscaling/v1 as autoscaling/v2 has it."""
    new = copied_object(autoscaler)
    if "apiVersion" in new:
        new["apiVersion"] = "autoscaling/v2"
    spec, annotations = inside(new, "spec"), mapping(new, "metadata", "annotations")
    metrics = [_metric_from_v1(metric) for _, metric in objects(_parsed(annotations.pop(_METRICS, None)))]
    behavior = _parsed(annotations.pop(_BEHAVIOR, None))
    if isinstance(behavior, dict):
        spec["behavior"] = behavior
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None or not metrics:
        target: JSONObject = {"type": "Utilization", "averageUtilization": _CPU_DEFAULT if cpu is None else cpu}
        metrics.insert(0, {"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec["metrics"] = list[JSONValue](metrics)
    status = inside(new, "status")
    current = status.pop("currentCPUUtilizationPercentage", None)
    status.setdefault("currentMetrics", None)
    if current is not None:
        used: JSONObject = {"averageUtilization": current, "averageValue": "0"}
        status["currentMetrics"] = [{"type": "Resource", "resource": {"name": "cpu", "current": used}}]
    conditions = _parsed(annotations.pop(_CONDITIONS, None))
    if isinstance(conditions, list):
        status["conditions"] = conditions
    annotations.pop(_CURRENT, None)
    if not annotations:
        mapping(new, "metadata").pop("annotations", None)
    if not status.get("currentReplicas"):
        status.pop("currentReplicas", None)
    return new


def from_storage(autoscaler: JSONObject) -> JSONObject:
    """An autoscaler of autoscaling/v2 as autoscaling/v1 has it."""
    old = copied_object(autoscaler)
    if "apiVersion" in old:
        old["apiVersion"] = "autoscaling/v1"
    spec, status = inside(old, "spec"), inside(old, "status")
    others: list[JSONObject] = []
    for _, metric in objects(spec.pop("metrics", None)):
        utilization = mapping(metric, "resource", "target").get("averageUtilization")
        is_cpu = text(metric, "type") == "Resource" and text(metric, "resource", "name") == "cpu"
        if is_cpu and utilization is not None and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = utilization
        else:
            others.append(_metric_to_v1(metric))
    annotations: JSONObject = dict(mapping(old, "metadata", "annotations"))
    if others:
        annotations[_METRICS] = _written(list[JSONValue](others))
    if "behavior" in spec:
        annotations[_BEHAVIOR] = _written(spec.pop("behavior"))
    if "conditions" in status:
        annotations[_CONDITIONS] = _written(status.pop("conditions"))
    for _, metric in objects(status, "currentMetrics"):
        current = mapping(metric, "resource", "current").get("averageUtilization")
        if text(metric, "resource", "name") == "cpu" and current is not None:
            status["currentCPUUtilizationPercentage"] = current
    status.pop("currentMetrics", None)
    status.setdefault("currentReplicas", 0)
    if annotations:
        inside(old, "metadata")["annotations"] = annotations
    return old


def _parsed(written: JSONValue) -> JSONValue:
    if not isinstance(written, str):
        return None
    try:
        found: JSONValue = json.loads(written)
    except json.JSONDecodeError:
        return None
    return found


def _written(value: JSONValue) -> str:
    return json.dumps(value, separators=(",", ":"))


def _metric_to_v1(metric: JSONObject) -> JSONObject:
    kind = text(metric, "type")
    source = mapping(metric, SOURCES.get(kind, ""))
    target = mapping(source, "target")
    flat: JSONObject = {name: source[name] for name in ("name", "container") if name in source}
    selector = mapping(source, "metric").get("selector")
    if text(source, "metric", "name"):
        flat["metricName"] = text(source, "metric", "name")
    if selector is not None:
        flat["metricSelector" if kind == "External" else "selector"] = selector
    if kind == "Object":
        flat["target"] = source.get("describedObject")
    flat.update({old: target[new] for new, old in _TARGETS.get(kind, {}).items() if new in target})
    return {"type": kind, SOURCES.get(kind, "resource"): flat}


def _metric_from_v1(metric: JSONObject) -> JSONObject:
    kind = text(metric, "type")
    flat = mapping(metric, SOURCES.get(kind, ""))
    source: JSONObject = {name: flat[name] for name in ("name", "container") if name in flat}
    if "metricName" in flat:
        inside(source, "metric")["name"] = flat["metricName"]
    selector = flat.get("metricSelector", flat.get("selector"))
    if selector is not None:
        inside(source, "metric")["selector"] = selector
    if kind == "Object":
        source["describedObject"] = flat.get("target")
    for new, old in _TARGETS.get(kind, {}).items():
        if old in flat:
            inside(source, "target").update({"type": _TYPES[new], new: flat[old]})
    return {"type": kind, SOURCES.get(kind, "resource"): source}


def _validate(autoscaler: JSONObject) -> Errors:
    return validate_autoscaler(to_storage(autoscaler))


AUTOSCALER_V1 = Strategy(validate=_validate, validate_update=lambda new, old: _validate(new))
