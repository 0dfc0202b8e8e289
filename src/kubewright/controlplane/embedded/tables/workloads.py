"""Rows of what makes pods: workloads, their scaling and their protection."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.tables.durations import human_duration, instant, since
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    boolean,
    integer,
    name_of,
    number,
    wide,
)
from kubewright.controlplane.embedded.tables.selectors import labels_text, selector_or_none, selector_text

_NONE = "<none>"
_UNSET = "<unset>"
_CONTAINERS = (wide("Containers"), wide("Images"))
_TEMPLATE = (*_CONTAINERS, wide("Selector"))


def _containers(obj: JSONObject, *path: str) -> Cells:
    """Names and images of the containers of the pod template at a path."""
    found = items(obj, *path, "spec", "containers")
    return [",".join(text(container, key) for container in found) for key in ("name", "image")]


def _deployment(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        age_of(obj, now),
        *_containers(obj, "spec", "template"),
        selector_text(at(obj, "spec", "selector")),
    ]


def _replicas(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
        age_of(obj, now),
        *_containers(obj, "spec", "template"),
    ]


def _scale(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), number(obj, "spec", "replicas"), number(obj, "status", "replicas"), age_of(obj, now)]


def _replica_set(obj: JSONObject, now: float) -> Cells:
    return [*_replicas(obj, now), selector_or_none(at(obj, "spec", "selector"))]


def _replication_controller(obj: JSONObject, now: float) -> Cells:
    return [*_replicas(obj, now), labels_text(at(obj, "spec", "selector"))]


def _stateful_set(obj: JSONObject, now: float) -> Cells:
    ready = f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"
    return [name_of(obj), ready, age_of(obj, now), *_containers(obj, "spec", "template")]


def _daemon_set(obj: JSONObject, now: float) -> Cells:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        name_of(obj),
        *(number(obj, "status", count) for count in counts),
        labels_text(at(obj, "spec", "template", "spec", "nodeSelector")),
        age_of(obj, now),
        *_containers(obj, "spec", "template"),
        selector_or_none(at(obj, "spec", "selector")),
    ]


def _job(obj: JSONObject, now: float) -> Cells:
    return [
        name_of(obj),
        _job_status(obj),
        _completions(obj),
        _job_duration(obj, now),
        age_of(obj, now),
        *_containers(obj, "spec", "template"),
        selector_or_none(at(obj, "spec", "selector")),
    ]


def _completions(obj: JSONObject) -> str:
    succeeded, completions = number(obj, "status", "succeeded"), at(obj, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: JSONObject, now: float) -> str:
    start, end = instant(at(obj, "status", "startTime")), instant(at(obj, "status", "completionTime"))
    if start is None:
        return ""
    return human_duration((now if end is None else end) - start)


def _job_status(obj: JSONObject) -> str:
    reached: dict[str, bool] = {}
    for condition in items(obj, "status", "conditions"):
        reached.setdefault(text(condition, "type"), text(condition, "status") == "True")
    for name in ("Complete", "Failed"):
        if reached.get(name):
            return name
    if text(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    later = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((name for name in later if reached.get(name)), "Running")


def _cron_job(obj: JSONObject, now: float) -> Cells:
    suspend, last = at(obj, "spec", "suspend"), at(obj, "status", "lastScheduleTime")
    return [
        name_of(obj),
        text(obj, "spec", "schedule"),
        text(obj, "spec", "timeZone") or _NONE,
        _UNSET if suspend is None else str(bool(suspend)),
        len(items(obj, "status", "active")),
        _NONE if last is None else since(last, now),
        age_of(obj, now),
        *_containers(obj, "spec", "jobTemplate", "spec", "template"),
        selector_or_none(at(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def _controller_revision(obj: JSONObject, now: float) -> Cells:
    owners = items(obj, "metadata", "ownerReferences")
    owner = next((owner for owner in owners if at(owner, "controller") is True), None)
    controller = _NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = text(owner, "kind")
        controller = f"{(f'{kind}.{group}' if group else kind).lower()}/{text(owner, 'name')}"
    return [name_of(obj), controller, number(obj, "revision"), age_of(obj, now)]


def _pod_template(obj: JSONObject, now: float) -> Cells:
    return [name_of(obj), *_containers(obj, "template"), labels_text(at(obj, "template", "metadata", "labels"))]


def _disruption_budget(obj: JSONObject, now: float) -> Cells:
    bounds = (at(obj, "spec", "minAvailable"), at(obj, "spec", "maxUnavailable"))
    allowed = number(obj, "status", "disruptionsAllowed")
    return [name_of(obj), *("N/A" if bound is None else str(bound) for bound in bounds), allowed, age_of(obj, now)]


def _autoscaler(obj: JSONObject, now: float) -> Cells:
    least = at(obj, "spec", "minReplicas")
    return [
        name_of(obj),
        f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}",
        _metrics(obj),
        _UNSET if least is None else str(least),
        number(obj, "spec", "maxReplicas"),
        number(obj, "status", "currentReplicas"),
        age_of(obj, now),
    ]


def _metrics(obj: JSONObject) -> str:
    wanted, found = items(obj, "spec", "metrics"), items(obj, "status", "currentMetrics")
    shown = [_metric(metric, found[index] if index < len(found) else None) for index, metric in enumerate(wanted)]
    processor = at(obj, "spec", "targetCPUUtilizationPercentage")  # autoscaling/v1
    if processor is not None:
        current = at(obj, "status", "currentCPUUtilizationPercentage")
        shown.append(f"cpu: {'<unknown>' if current is None else f'{current}%'}/{processor}%")
    if len(shown) > 2:
        return f"{', '.join(shown[:2])} + {len(shown) - 2} more..."
    return ", ".join(shown) or _NONE


# The field of each type of metric; what is measured per pod is shown after the name of what is measured.
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(metric: JSONValue, found: JSONValue) -> str:
    type_ = text(metric, "type")
    if type_ not in _SOURCES:
        return "<unknown type>"
    source = mapping(metric, _SOURCES[type_])
    target, current = mapping(source, "target"), mapping(found, _SOURCES[type_], "current")
    prefix = f"{text(source, 'name')}: " if type_ in ("Resource", "ContainerResource") else ""
    if prefix and "averageValue" not in target:
        wanted = target.get("averageUtilization")
        return f"{prefix}{_percent(current.get('averageUtilization'), '<unknown>')}/{_percent(wanted, '<auto>')}"
    if type_ == "Pods" or prefix:
        return f"{prefix}{_quantity(current, 'averageValue')}/{_quantity(target, 'averageValue')}"
    if "averageValue" in target:
        return f"{_quantity(current, 'averageValue')}/{_quantity(target, 'averageValue')} (avg)"
    return f"{_quantity(current, 'value')}/{_quantity(target, 'value')}"


def _quantity(values: JSONObject, name: str) -> str:
    found = values.get(name)
    return "<unknown>" if found is None else str(found)


def _percent(value: JSONValue, otherwise: str) -> str:
    return otherwise if value is None else f"{value}%"


_REPLICAS = (NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, *_TEMPLATE)

PRINTERS: dict[tuple[str, str], Printer] = {
    ("", "podtemplates"): Printer(
        (NAME, PrinterColumn("Containers"), PrinterColumn("Images"), PrinterColumn("Pod Labels")), _pod_template
    ),
    ("", "replicationcontrollers"): Printer(_REPLICAS, _replication_controller),
    ("apps", "controllerrevisions"): Printer(
        (NAME, PrinterColumn("Controller"), PrinterColumn("Revision"), AGE), _controller_revision
    ),
    ("apps", "daemonsets"): Printer(
        (
            NAME,
            integer("Desired"),
            integer("Current"),
            integer("Ready"),
            integer("Up-to-date"),
            integer("Available"),
            PrinterColumn("Node Selector"),
            AGE,
            *_TEMPLATE,
        ),
        _daemon_set,
    ),
    ("apps", "deployments"): Printer(
        (NAME, PrinterColumn("Ready"), PrinterColumn("Up-to-date"), PrinterColumn("Available"), AGE, *_TEMPLATE),
        _deployment,
    ),
    ("apps", "replicasets"): Printer(_REPLICAS, _replica_set),
    ("apps", "statefulsets"): Printer((NAME, PrinterColumn("Ready"), AGE, *_CONTAINERS), _stateful_set),
    ("autoscaling", "scales"): Printer((PrinterColumn("Name"), integer("Desired"), integer("Available"), AGE), _scale),
    ("autoscaling", "horizontalpodautoscalers"): Printer(
        (
            NAME,
            PrinterColumn("Reference"),
            PrinterColumn("Targets"),
            PrinterColumn("MinPods"),
            PrinterColumn("MaxPods"),
            PrinterColumn("Replicas"),
            AGE,
        ),
        _autoscaler,
    ),
    ("batch", "cronjobs"): Printer(
        (
            NAME,
            PrinterColumn("Schedule"),
            PrinterColumn("Timezone"),
            boolean("Suspend"),
            integer("Active"),
            PrinterColumn("Last Schedule"),
            AGE,
            *_TEMPLATE,
        ),
        _cron_job,
    ),
    ("batch", "jobs"): Printer(
        (NAME, PrinterColumn("Status"), PrinterColumn("Completions"), PrinterColumn("Duration"), AGE, *_TEMPLATE), _job
    ),
    ("policy", "poddisruptionbudgets"): Printer(
        (NAME, PrinterColumn("Min Available"), PrinterColumn("Max Unavailable"), integer("Allowed Disruptions"), AGE),
        _disruption_budget,
    ),
}
