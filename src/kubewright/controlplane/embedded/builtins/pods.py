"""Pods: what they begin with, what of them may change, and how long they may take to end."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.quantity import Quantity
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import forbidden_field, invalid_value, required
from kubewright.controlplane.embedded.builtins.containers import validate_images
from kubewright.controlplane.embedded.builtins.metadata import validate_content
from kubewright.controlplane.embedded.builtins.names import between, dns_subdomain
from kubewright.controlplane.embedded.builtins.placement import validate_tolerations
from kubewright.controlplane.embedded.builtins.pod_spec import validate_pod_spec, validate_pod_template
from kubewright.controlplane.embedded.builtins.values import Errors, matching, number, objects, quantity, unchanged
from kubewright.controlplane.embedded.registry.resources import Strategy

_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_TOLERATED_SECONDS = 300
_MAX_LENGTH = 2**31 - 1


def quality_of_service(spec: JSONObject) -> str:
    """BestEffort without requests and limits, Guaranteed when all limits are set and requested, else Burstable."""
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    guaranteed = True
    level = mapping(spec, "resources")
    containers = [level] if level else []
    if not level:
        containers = [
            mapping(container, "resources")
            for kind in ("containers", "initContainers")
            for _, container in objects(spec, kind)
        ]
    for resources in containers:
        for total, kind in ((requests, "requests"), (limits, "limits")):
            for name, amount in _counted(mapping(resources, kind)).items():
                total[name] = total[name] + amount if name in total else amount
        guaranteed = guaranteed and len(_counted(mapping(resources, "limits"))) == 2
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _counted(amounts: JSONObject) -> dict[str, Quantity]:
    found = {name: quantity(amounts[name]) for name in ("cpu", "memory") if name in amounts}
    return {name: amount for name, amount in found.items() if amount > Quantity(0)}


def _prepare_create(pod: JSONObject) -> None:
    spec = inside(pod, "spec")
    status: JSONObject = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if items(spec, "schedulingGates"):
        gated: JSONObject = {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": mapping(pod, "metadata").get("creationTimestamp"),
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        status["conditions"] = [gated]
    pod["status"] = status
    if not spec.get("priorityClassName"):
        spec.setdefault("priority", 0)
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _tolerate_unready_nodes(spec)


def _tolerate_unready_nodes(spec: JSONObject) -> None:
    """Every pod tolerates a node that is not ready or unreachable for five minutes, unless it sets its own."""
    tolerations = list(items(spec, "tolerations"))
    for condition in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{condition}"
        if not any(_tolerates(toleration, key) for toleration in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
            )
    if tolerations:
        spec["tolerations"] = tolerations


def _tolerates(toleration: JSONValue, key: str) -> bool:
    return text(toleration, "key") in ("", key) and text(toleration, "effect") in ("", "NoExecute")


def _prepare_update(new: JSONObject, old: JSONObject) -> None:
    _tolerate_unready_nodes(inside(new, "spec"))


def _prepare_status(new: JSONObject, old: JSONObject) -> None:
    metadata, before = inside(new, "metadata"), mapping(old, "metadata")
    if "ownerReferences" in before:
        metadata["ownerReferences"] = before["ownerReferences"]
    else:
        metadata.pop("ownerReferences", None)
    if "qosClass" in mapping(old, "status"):
        inside(new, "status").setdefault("qosClass", mapping(old, "status")["qosClass"])


def _validate(pod: JSONObject) -> Errors:
    spec = mapping(pod, "spec")
    errors = validate_pod_spec(spec, "spec") + validate_images(spec, "spec")
    if items(spec, "ephemeralContainers"):
        errors.append(forbidden_field("spec.ephemeralContainers", "cannot be set on create"))
    if text(spec, "nodeName") and items(spec, "schedulingGates"):
        complaint = "cannot be set until all schedulingGates have been cleared"
        errors.append(forbidden_field("spec.nodeName", complaint))
    return errors


def _validate_update(new: JSONObject, old: JSONObject) -> Errors:
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    errors = validate_content(new)
    if spec == before:
        return errors
    errors += validate_pod_spec(spec, "spec") + validate_images(spec, "spec")
    for kind in ("containers", "initContainers"):
        if len(items(spec, kind)) != len(items(before, kind)):
            errors.append(forbidden_field(f"spec.{kind}", "pod updates may not add or remove containers"))
            return errors
        errors += _images(spec, kind)
    deadline, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    where = "spec.activeDeadlineSeconds"
    if isinstance(deadline, int):
        if not 0 <= deadline <= _MAX_LENGTH:
            return [*errors, invalid_value(where, deadline, between(0, _MAX_LENGTH))]
        if isinstance(earlier, int) and earlier < deadline:
            return [*errors, invalid_value(where, deadline, "must be less than or equal to previous value")]
    elif earlier is not None:
        errors.append(invalid_value(where, None, "must not update from a positive integer to nil value"))
    errors += _only_added_tolerations(spec, before)
    known = [text(gate, "name") for _, gate in objects(before, "schedulingGates")]
    for index, gate in objects(spec, "schedulingGates"):
        if text(gate, "name") not in known:
            complaint = f"only deletion is allowed, but found new scheduling gate '{text(gate, 'name')}'"
            errors.append(forbidden_field(f"spec.schedulingGates[{index}].name", complaint))
    munged = _without_updatable(spec, before)
    if munged != before:
        complaint = f"pod updates may not change fields other than {_UPDATABLE}\n{difference(before, munged)}"
        errors.append(forbidden_field("spec", complaint))
    return errors


def _images(spec: JSONObject, kind: str) -> Errors:
    """Images may change, so that they are validated on update, too."""
    errors: Errors = []
    for index, container in objects(spec, kind):
        where, image = f"spec.{kind}[{index}].image", text(container, "image")
        if not image:
            errors.append(required(where))
        elif image != image.strip():
            errors.append(invalid_value(where, image, "must not have leading or trailing whitespace"))
    return errors


def _without_updatable(spec: JSONObject, before: JSONObject) -> JSONObject:
    """The new specification with everything that may change as it was."""
    munged = copied_object(spec)
    for kind in ("containers", "initContainers"):
        for (_, container), (_, earlier) in zip(objects(munged, kind), objects(before, kind), strict=True):
            container["image"] = text(earlier, "image")
    gated = bool(items(before, "schedulingGates"))
    fields = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    fields += ["nodeSelector", "affinity"] if gated else []
    if number(before.get("terminationGracePeriodSeconds")) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fields.append("terminationGracePeriodSeconds")
    for field in fields:
        if field in before:
            munged[field] = before[field]
        else:
            munged.pop(field, None)
    return munged


def _only_added_tolerations(spec: JSONObject, before: JSONObject) -> Errors:
    def without_seconds(toleration: JSONObject) -> JSONObject:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    kept = [without_seconds(toleration) for _, toleration in objects(spec, "tolerations")]
    if any(without_seconds(toleration) not in kept for _, toleration in objects(before, "tolerations")):
        complaint = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden_field("spec.tolerations", complaint)]
    return validate_tolerations(spec.get("tolerations"), "spec.tolerations")


def difference(old: JSONValue, new: JSONValue) -> str:
    """What changed, as a unified diff of both as indented JSON."""

    def lines(value: JSONValue) -> list[str]:
        return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1).decode().splitlines()

    return "\n".join(list(difflib.unified_diff(lines(old), lines(new), lineterm=""))[2:]) + "\n"


def _validate_status(new: JSONObject, old: JSONObject) -> Errors:
    errors: Errors = []
    status, before = mapping(new, "status"), mapping(old, "status")
    nominated = text(status, "nominatedNodeName")
    if nominated and nominated != text(before, "nominatedNodeName"):
        errors += matching("status.nominatedNodeName", nominated, dns_subdomain)
    errors += unchanged("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    if text(mapping(new, "spec"), "restartPolicy") == "Always":
        return errors
    ended = {
        text(container, "name")
        for _, container in objects(before, "containerStatuses")
        if "terminated" in mapping(container, "state")
    }
    on_failure = text(mapping(new, "spec"), "restartPolicy") == "OnFailure"
    failed = {
        text(container, "name")
        for _, container in objects(before, "containerStatuses")
        if number(mapping(container, "state", "terminated").get("exitCode")) != 0
    }
    for index, container in objects(status, "containerStatuses"):
        name = text(container, "name")
        if name in ended and not (on_failure and name in failed) and "terminated" not in mapping(container, "state"):
            where = f"status.containerStatuses[{index}].state"
            errors.append(forbidden_field(where, "may not be transitioned to non-terminated state"))
    return errors


def _grace(pod: JSONObject, requested: int | None) -> int:
    if not text(pod, "spec", "nodeName") or text(pod, "status", "phase") in ("Failed", "Succeeded"):
        return 0
    seconds = number(mapping(pod, "spec").get("terminationGracePeriodSeconds")) if requested is None else requested
    return 1 if seconds < 0 else seconds


def _fields(pod: JSONObject) -> Mapping[str, str]:
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    addresses = [text(entry, "ip") for _, entry in objects(status, "podIPs")]
    return {
        "spec.nodeName": text(spec, "nodeName"),
        "spec.host": text(spec, "nodeName"),  # what it was called before v1
        "spec.restartPolicy": text(spec, "restartPolicy"),
        "spec.schedulerName": text(spec, "schedulerName"),
        "spec.serviceAccountName": text(spec, "serviceAccountName"),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") is True else "false",
        "status.phase": text(status, "phase"),
        "status.podIP": addresses[0] if addresses else text(status, "podIP"),
        "status.nominatedNodeName": text(status, "nominatedNodeName"),
    }


POD = Strategy(
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate=_validate,
    validate_update=_validate_update,
    validate_status=_validate_status,
    has_generation=True,
    selectable_fields=_fields,
    selectable=frozenset((*_fields({}), "status.podIPs")),
    returns_deleted_object=True,
    graceful_deletion=_grace,
)


def _validate_template(obj: JSONObject) -> Errors:
    return validate_pod_template(obj.get("template"), "template")


POD_TEMPLATE = Strategy(
    validate=_validate_template,
    validate_update=lambda new, old: _validate_template(new),
    has_generation=True,
    changes_generation=lambda new, old: new.get("template") != old.get("template"),
    returns_deleted_object=True,
)
