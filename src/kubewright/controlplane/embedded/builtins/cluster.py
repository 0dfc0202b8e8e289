"""Namespaces, nodes, leases, and the classes of priority and runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.metadata import (
    NOT_QUALIFIED,
    STANDARD_FINALIZERS,
    validate_change,
    validate_content,
)
from kubewright.controlplane.embedded.builtins.names import dns_label, first_complaint, qualified_name
from kubewright.controlplane.embedded.builtins.placement import EFFECTS, validate_tolerations
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    StructError,
    matching,
    network,
    not_negative_fields,
    number,
    objects,
    one_of,
    present,
    unchanged,
)
from kubewright.controlplane.embedded.registry.resources import Strategy

_HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES: Mapping[str, int] = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}


def _prepare_namespace(namespace: JSONObject) -> None:
    namespace["status"] = {"phase": "Active"}
    # A name that was generated is known only now.
    inside(namespace, "metadata", "labels")["kubernetes.io/metadata.name"] = text(namespace, "metadata", "name")
    finalizers = items(namespace, "spec", "finalizers")
    if "kubernetes" not in finalizers:
        inside(namespace, "spec")["finalizers"] = [*finalizers, "kubernetes"]


def _keep_finalizers(new: JSONObject, old: JSONObject) -> None:
    new["spec"] = dict(mapping(old, "spec"))


def _validate_namespace(namespace: JSONObject) -> Errors:
    errors: Errors = []
    for finalizer in map(str, items(namespace, "spec", "finalizers")):
        errors += _validate_finalizer("spec.finalizers", finalizer)
    return errors


def _validate_finalizer(path: str, finalizer: str) -> Errors:
    errors = [*matching(path, finalizer, qualified_name)]
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        errors.append(invalid_value(path, finalizer, NOT_QUALIFIED))
    return errors


def _namespace_fields(namespace: JSONObject) -> Mapping[str, str]:
    return {"status.phase": text(namespace, "status", "phase")}


def _begin_termination(namespace: JSONObject, now: str) -> None:
    inside(namespace, "metadata")["deletionTimestamp"] = now
    inside(namespace, "status")["phase"] = "Terminating"


def _validate_namespace_update(new: JSONObject, old: JSONObject) -> Errors:
    return [*validate_content(new), *_validate_namespace(new), *validate_change(new, old)]


def _validate_namespace_status(new: JSONObject, old: JSONObject) -> Errors:
    deleted = "deletionTimestamp" in mapping(new, "metadata")
    expected, state = ("Terminating", "not empty") if deleted else ("Active", "empty")
    phase = text(new, "status", "phase")
    if phase == expected:
        return []
    return [invalid_value("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` is {state}")]


def _keep_status(new: JSONObject, old: JSONObject) -> None:
    new["status"] = mapping(old, "status")


def _validate_finalizers(new: JSONObject, old: JSONObject) -> Errors:
    errors = [*validate_change(new, old)]
    for index, finalizer in enumerate(map(str, items(new, "spec", "finalizers"))):
        errors += _validate_finalizer(f"spec.finalizers[{index}]", finalizer)
    return errors


def finalizing(namespaces: Strategy) -> Strategy:
    """The rules of the endpoint `finalize`, by which alone the finalizers in the spec are changed."""
    return replace(namespaces, prepare_update=_keep_status, validate_update=_validate_finalizers)


NAMESPACE = Strategy(
    prepare_create=_prepare_namespace,
    prepare_update=_keep_finalizers,
    validate=_validate_namespace,
    validate_update=_validate_namespace_update,
    validate_status=_validate_namespace_status,
    begin_deletion=_begin_termination,
    terminates=True,
    validate_name=first_complaint(dns_label),
    selectable_fields=_namespace_fields,
    selectable=frozenset(_namespace_fields({})),
    returns_deleted_object=True,
)


def _prepare_node(node: JSONObject) -> None:
    """A node is not ready until its kubelet reports so; this taint keeps pods away until then."""
    taints = items(node, "spec", "taints")
    key = "node.kubernetes.io/not-ready"
    if not any(text(taint, "key") == key and text(taint, "effect") == "NoSchedule" for taint in taints):
        inside(node, "spec")["taints"] = [*taints, {"key": key, "effect": "NoSchedule"}]


def _validate_node(node: JSONObject) -> Errors:
    # Taints were annotations once; their errors still say so.
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in objects(node, "spec", "taints"):
        path = f"metadata.taints[{index}]"
        key, value, effect = (text(taint, field) for field in ("key", "value", "effect"))
        errors += matching(f"{path}.key", key, qualified_name)
        if not effect:
            errors.append(required(f"{path}.effect"))
        else:
            errors += one_of(f"{path}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            internal: JSONObject = {
                "Key": key,
                "Value": value,
                "Effect": effect,
                "TimeAdded": taint.get("timeAdded"),
            }
            complaint = "taints must be unique by key and effect pair"
            errors.append(StructError("FieldValueDuplicate", path, internal, complaint))
        seen.add((key, effect))
    for index, cidr in enumerate(items(node, "spec", "podCIDRs")):
        errors += network(f"spec.podCIDRs[{index}]", str(cidr))
    return errors


def _validate_node_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = _validate_node(new)
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if items(before, "podCIDRs") and items(before, "podCIDRs") != items(spec, "podCIDRs"):
        complaint = 'node updates may not change podCIDR except from "" to valid'
        errors.append(forbidden_field("spec.podCIDRs", complaint))
    if text(before, "providerID") and text(before, "providerID") != text(spec, "providerID"):
        complaint = 'node updates may not change providerID except from "" to valid'
        errors.append(forbidden_field("spec.providerID", complaint))
    return errors


def _node_fields(node: JSONObject) -> Mapping[str, str]:
    return {"spec.unschedulable": "true" if mapping(node, "spec").get("unschedulable") is True else "false"}


NODE = Strategy(
    prepare_create=_prepare_node,
    validate=_validate_node,
    validate_update=_validate_node_update,
    selectable_fields=_node_fields,
    selectable=frozenset(_node_fields({})),
)


def _validate_lease(lease: JSONObject) -> Errors:
    spec = mapping(lease, "spec")
    duration = spec.get("leaseDurationSeconds")
    errors: Errors = []
    if duration is not None and number(duration) <= 0:
        errors.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    return errors + not_negative_fields("spec", spec, "leaseTransitions")


def _without_strategy(lease: JSONObject, old: JSONObject | None = None) -> None:
    """Drops the fields of coordinated leader election, a feature that is off by default."""
    before = mapping(old or {}, "spec")
    for name in ("strategy", "preferredHolder"):
        if name not in before:
            mapping(lease, "spec").pop(name, None)


LEASE = Strategy(
    prepare_create=_without_strategy,
    prepare_update=_without_strategy,
    validate=_validate_lease,
    validate_update=lambda new, old: _validate_lease(new),
    create_on_update=True,
    unconditional_update=False,
)


def _validate_priority_class(priority_class: JSONObject) -> Errors:
    name, value = text(priority_class, "metadata", "name"), number(priority_class.get("value"))
    errors: Errors = []
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            why = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES.get(name)}"
            if name not in SYSTEM_PRIORITIES:
                why = f"{name} is not a known system priority class"
            complaint = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            errors.append(forbidden_field("metadata.name", complaint))
    elif value > _HIGHEST_USER_PRIORITY:
        complaint = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        errors.append(forbidden_field("value", complaint))
    if "preemptionPolicy" in priority_class:
        known = ("PreemptLowerPriority", "Never")
        errors += one_of("preemptionPolicy", priority_class["preemptionPolicy"], known)
    return errors


def _validate_priority_class_update(new: JSONObject, old: JSONObject) -> Errors:
    errors: Errors = []
    if new.get("value") != old.get("value"):
        errors.append(forbidden_field("value", "may not be changed in an update."))
    return errors + unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


PRIORITY_CLASS = Strategy(
    validate=_validate_priority_class,
    validate_update=_validate_priority_class_update,
    has_generation=True,
    changes_generation=lambda new, old: False,
)


def _validate_runtime_class(runtime_class: JSONObject) -> Errors:
    errors = present("handler", text(runtime_class, "handler"), dns_label)
    tolerations = mapping(runtime_class, "scheduling").get("tolerations")
    return errors + validate_tolerations(tolerations, "scheduling.tolerations")


RUNTIME_CLASS = Strategy(
    validate=_validate_runtime_class,
    validate_update=lambda new, old: unchanged("handler", new.get("handler"), old.get("handler")),
    create_on_update=True,
    unconditional_update=False,
)
