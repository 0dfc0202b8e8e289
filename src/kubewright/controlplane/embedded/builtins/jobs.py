"""Jobs and cron jobs."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import invalid_value, not_supported, required
from kubewright.controlplane.embedded.builtins.cron import schedule_complaint
from kubewright.controlplane.embedded.builtins.label_selectors import matches, validate_selector
from kubewright.controlplane.embedded.builtins.metadata import (
    validate_annotations,
    validate_change,
    validate_content,
    validate_labels,
)
from kubewright.controlplane.embedded.builtins.names import dns_label
from kubewright.controlplane.embedded.builtins.pod_spec import validate_pod_template
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    not_negative_fields,
    number,
    objects,
    one_of,
    sorted_or_null,
    unchanged,
)
from kubewright.controlplane.embedded.registry.resources import Strategy

_PREFIX = "batch.kubernetes.io/"
_CONTROLLER, _NAME = "controller-uid", "job-name"
_MAX_PARALLEL = 100_000
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def _prepare(job: JSONObject) -> None:
    """Without `manualSelector`, the pods of a job are labelled with its name and uid and selected by the uid."""
    spec = inside(job, "spec")
    if spec.get("manualSelector") is True:
        return
    name, uid = text(job, "metadata", "name"), text(job, "metadata", "uid")
    labels = inside(spec, "template", "metadata", "labels")
    for prefix in ("", _PREFIX):
        labels.setdefault(f"{prefix}{_NAME}", name)
        labels.setdefault(f"{prefix}{_CONTROLLER}", uid)
    inside(spec, "selector", "matchLabels").setdefault(f"{_PREFIX}{_CONTROLLER}", uid)
    metadata = inside(job, "metadata")
    own = mapping(metadata, "labels")
    if not own or own is labels:
        # Labels that defaulting took from the template are the very same map in Go, and so get these as well.
        metadata["labels"] = dict(labels)


def _validate(job: JSONObject) -> Errors:
    spec = mapping(job, "spec")
    errors = _generated_selector(job) + _spec(spec, "spec") + _selection(spec)
    completions = number(spec.get("completions"))
    if spec.get("completionMode") == "Indexed" and completions > 0:
        name = text(job, "metadata", "name")
        host = f"{name}-{completions - 1}"
        if dns_label(host):
            complaint = f"will not able to create pod with invalid DNS label: {host}"
            errors.append(invalid_value("metadata.name", name, complaint))
    return errors


def _generated_selector(job: JSONObject) -> Errors:
    spec = mapping(job, "spec")
    if spec.get("manualSelector") is True:
        return []
    selector = mapping(spec, "selector")
    if not selector:
        return []
    uid, name = text(job, "metadata", "uid"), text(job, "metadata", "name")
    labels = mapping(spec, "template", "metadata", "labels")
    errors: Errors = []
    for key, expected in ((_CONTROLLER, uid), (_NAME, name)):
        for prefix in ("", _PREFIX):
            found = labels.get(f"{prefix}{key}")
            if found is not None and found != expected:
                where = f"spec.template.metadata.labels[{prefix}{key}]"
                errors.append(invalid_value(where, sorted_or_null(labels), f"must be '{expected}'"))
    generated: list[JSONObject] = [{"matchLabels": {f"{prefix}{_CONTROLLER}": uid}} for prefix in (_PREFIX, "")]
    if selector not in generated:
        errors.append(invalid_value("spec.selector", selector, "`selector` not auto-generated"))
    return errors


def _selection(spec: JSONObject) -> Errors:
    selector, labels = spec.get("selector"), mapping(spec, "template", "metadata", "labels")
    errors = validate_selector(selector, "spec.selector")
    if not isinstance(selector, dict):
        errors.append(required("spec.selector"))
    elif errors or matches(selector, labels):
        return errors
    complaint = "`selector` does not match template `labels`"
    return [*errors, invalid_value("spec.template.metadata.labels", sorted_or_null(labels), complaint)]


def _spec(spec: JSONObject, path: str) -> Errors:
    errors = not_negative_fields(
        path,
        spec,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        errors.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    errors += _completion_mode(spec, path)
    if "podReplacementPolicy" in spec:
        where = f"{path}.podReplacementPolicy"
        policy = spec["podReplacementPolicy"]
        if "podFailurePolicy" in spec:
            errors += one_of(where, policy, ("Failed",))
        else:
            errors += one_of(where, policy, ("Failed", "TerminatingOrFailed"))
    errors += validate_pod_template(spec.get("template"), f"{path}.template")
    policy = mapping(spec, "template", "spec").get("restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if policy in ("Always", None):
        errors.append(required(where, 'valid values: "OnFailure", "Never"'))
    elif policy not in ("OnFailure", "Never"):
        errors.append(not_supported(where, policy, ["OnFailure", "Never"]))
    elif "podFailurePolicy" in spec and policy != "Never":
        complaint = 'only "Never" is supported when podFailurePolicy is specified'
        errors.append(invalid_value(where, policy, complaint))
    return errors


def _completion_mode(spec: JSONObject, path: str) -> Errors:
    mode = spec.get("completionMode", "NonIndexed")
    errors = one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        if "completions" not in spec:
            errors.append(required(f"{path}.completions", "when completion mode is Indexed"))
        if number(spec.get("parallelism")) > _MAX_PARALLEL:
            complaint = f"must be less than or equal to {_MAX_PARALLEL} when completion mode is Indexed"
            errors.append(invalid_value(f"{path}.parallelism", spec.get("parallelism"), complaint))
    elif mode == "NonIndexed":
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if field in spec:
                errors.append(invalid_value(f"{path}.{field}", spec[field], "requires indexed completion mode"))
    return errors


def _validate_update(new: JSONObject, old: JSONObject) -> Errors:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    errors = [*validate_content(new), *_validate(new), *validate_change(new, old)]
    errors += _spec(spec, "spec") + _selection(spec)
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        errors += unchanged("spec.completions", completions, before.get("completions"))
    elif completions not in (None, before.get("completions"), spec.get("parallelism")):
        errors.append(
            invalid_value("spec.completions", completions, "can only be modified in tandem with spec.parallelism")
        )
    errors += unchanged("spec.selector", spec.get("selector"), before.get("selector"))
    errors += _template_changes(spec, before, old)
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        errors += unchanged(f"spec.{field}", spec.get(field), before.get(field))
    return errors


def _template_changes(spec: JSONObject, before: JSONObject, old: JSONObject) -> Errors:
    """A template stays as it is; but of a suspended job, what its pods need and where they run may change."""
    template, earlier = mapping(spec, "template"), mapping(before, "template")
    status = mapping(old, "status")
    may_change = (
        before.get("suspend") is True
        and not number(status.get("active"))
        and ("startTime" not in status or _is_suspended(status))
    )
    if not may_change:
        return unchanged("spec.template", template, earlier)
    earlier = copied_object(earlier)
    pods, pods_before = mapping(template, "spec"), inside(earlier, "spec")
    for field in ("nodeSelector", "tolerations", "schedulingGates", "affinity"):
        if field in pods:
            pods_before[field] = pods[field]
        else:
            pods_before.pop(field, None)
    for kind in ("containers", "initContainers"):
        containers, known = list(objects(pods, kind)), list(objects(pods_before, kind))
        if len(containers) == len(known):
            for (_, container), (_, container_before) in zip(containers, known, strict=True):
                if container.get("name") == container_before.get("name") and "resources" in container:
                    container_before["resources"] = container["resources"]
    return unchanged("spec.template.spec", pods, pods_before)


def _is_suspended(status: JSONObject) -> bool:
    return any(
        text(condition, "type") == "Suspended" and text(condition, "status") == "True"
        for _, condition in objects(status, "conditions")
    )


def _prepare_status(new: JSONObject, old: JSONObject) -> None:
    """A stored job without labels is read with those of its template."""
    labels = mapping(new, "spec", "template", "metadata", "labels")
    if labels and not mapping(new, "metadata", "labels"):
        inside(new, "metadata")["labels"] = dict(labels)


def _validate_status(new: JSONObject, old: JSONObject) -> Errors:
    status, before = mapping(new, "status"), mapping(old, "status")
    errors = not_negative_fields("status", status, "active", "succeeded", "failed", "ready", "terminating")
    for field in ("failed", "succeeded"):
        elastic = field == "succeeded" and _is_elastic(mapping(new, "spec"))
        if number(status.get(field)) < number(before.get(field)) and not elastic:
            complaint = f"cannot decrease the {field} counter"
            errors.append(invalid_value(f"status.{field}", number(status.get(field)), complaint))
    started, suspended = before.get("startTime"), mapping(new, "spec").get("suspend") is True
    if started is not None and status.get("startTime") != started and not suspended and not _resumes(status, before):
        complaint = "field is immutable for unsuspended job once set"
        errors.append(invalid_value("status.startTime", status.get("startTime"), complaint))
    return errors


def _resumes(status: JSONObject, before: JSONObject) -> bool:
    return _is_suspended(before) and any(
        text(condition, "type") == "Suspended" and text(condition, "status") == "False"
        for _, condition in objects(status, "conditions")
    )


def _is_elastic(spec: JSONObject) -> bool:
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")


def _fields(job: JSONObject) -> Mapping[str, str]:
    return {"status.successful": str(number(mapping(job, "status").get("succeeded")))}


JOB = Strategy(
    prepare_create=_prepare,
    validate=_validate,
    prepare_status=_prepare_status,
    validate_update=_validate_update,
    validate_status=_validate_status,
    has_generation=True,
    selectable_fields=_fields,
    selectable=frozenset(_fields({})),
    default_propagation="Orphan",
)


def _validate_cron_job(cron_job: JSONObject, old: JSONObject | None = None) -> Errors:
    spec, before = mapping(cron_job, "spec"), mapping(old, "spec")
    schedule, zone = text(spec, "schedule"), spec.get("timeZone")
    errors: Errors = []
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        if complaint := schedule_complaint(schedule):
            errors.append(invalid_value("spec.schedule", schedule, complaint))
        if "TZ" in schedule:
            if "TZ" not in text(before, "schedule"):
                complaint = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
                errors.append(invalid_value("spec.schedule", schedule, complaint))
            elif zone is not None:
                complaint = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
                errors.append(invalid_value("spec.schedule", schedule, complaint))
    errors += not_negative_fields("spec", spec, "startingDeadlineSeconds")
    if isinstance(zone, str) and zone != before.get("timeZone"):
        errors += _time_zone(zone, "spec.timeZone")
    errors += one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    metadata = mapping(spec, "jobTemplate", "metadata")
    errors += validate_labels(mapping(metadata, "labels"), "spec.jobTemplate.labels")
    errors += validate_annotations(mapping(metadata, "annotations"), "spec.jobTemplate.annotations")
    errors += _spec(mapping(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec")
    errors += not_negative_fields("spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    name = text(cron_job, "metadata", "name")
    if len(name) > 52 and old is None:
        errors.append(invalid_value("metadata.name", name, "must be no more than 52 characters"))
    return errors


def _time_zone(zone: str, path: str) -> Errors:
    if not zone:
        return [invalid_value(path, zone, "timeZone must be nil or non-empty string")]
    parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in parts):
        return [invalid_value(path, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        complaint = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid_value(path, zone, complaint)]
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return [invalid_value(path, zone, f"unknown time zone {zone}")]
    return []


CRON_JOB = Strategy(validate=_validate_cron_job, validate_update=_validate_cron_job, has_generation=True)
