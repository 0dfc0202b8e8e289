"""Deployments, replica sets, daemon sets, stateful sets, replication controllers and controller revisions."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied, inside, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.builtins.label_selectors import is_empty, matches, validate_selector
from kubewright.controlplane.embedded.builtins.metadata import validate_labels
from kubewright.controlplane.embedded.builtins.names import dns_label
from kubewright.controlplane.embedded.builtins.pod_spec import validate_pod_template
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    StructError,
    amount_or_percentage,
    is_zero,
    matching,
    not_more_than_all,
    not_negative_fields,
    number,
    objects,
    one_of,
    sorted_or_null,
    unchanged,
)
from kubewright.controlplane.embedded.registry.resources import Strategy

_NO_MATCH = "`selector` does not match template `labels`"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_STATEFUL_SET_UPDATES = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_STATEFUL_SET_UPDATABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def _selector(spec: JSONObject, kind: str) -> Errors:
    """The errors of a selector that is required and must not be empty."""
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        return [required("spec.selector")]
    errors = validate_selector(selector, "spec.selector")
    if is_empty(selector):
        errors.append(invalid_value("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return errors


def _selects_template(spec: JSONObject) -> Errors:
    """Pods made from the template must be found by the selector again."""
    selector, labels = spec.get("selector"), mapping(spec, "template", "metadata", "labels")
    if isinstance(selector, dict) and (is_empty(selector) or matches(selector, labels)):
        return []
    return [invalid_value("spec.template.metadata.labels", sorted_or_null(labels), _NO_MATCH)]


def _runs_for_ever(spec: JSONObject, controller: str) -> Errors:
    template = mapping(spec, "template", "spec")
    errors: Errors = []
    if template.get("restartPolicy") != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", template.get("restartPolicy"), ["Always"]))
    if "activeDeadlineSeconds" in template:
        complaint = f"activeDeadlineSeconds in {controller} is not Supported"
        errors.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", complaint))
    return errors


def _template(spec: JSONObject, kind: str) -> Errors:
    """Selector and template of a replica set, and so of a deployment."""
    errors = _selector(spec, kind)
    selector = spec.get("selector")
    if validate_selector(selector, ""):
        return [*errors, invalid_value("spec.selector", selector, "invalid label selector")]
    errors += _selects_template(spec)
    errors += validate_pod_template(spec.get("template"), "spec.template")
    return errors + _runs_for_ever(spec, "ReplicaSet")


def _internal_strategy(strategy: JSONObject) -> JSONValue:
    return {"Type": strategy.get("type", ""), "RollingUpdate": strategy.get("rollingUpdate")}


def _unknown_strategy(strategy: JSONObject, path: str, supported: str) -> FieldError:
    return StructError("FieldValueNotSupported", path, _internal_strategy(strategy), supported)


def _validate_deployment(deployment: JSONObject) -> Errors:
    spec = mapping(deployment, "spec")
    errors = not_negative_fields("spec", spec, "replicas")
    errors += _template(spec, "deployment")
    errors += _deployment_strategy(mapping(spec, "strategy"), "spec.strategy")
    errors += not_negative_fields("spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int) and deadline <= number(spec.get("minReadySeconds")):
        complaint = "must be greater than minReadySeconds"
        errors.append(invalid_value("spec.progressDeadlineSeconds", deadline, complaint))
    return errors


def _deployment_strategy(strategy: JSONObject, path: str) -> Errors:
    kind = strategy.get("type")
    if kind == "Recreate":
        if "rollingUpdate" not in strategy:
            return []
        complaint = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden_field(f"{path}.rollingUpdate", complaint)]
    if kind != "RollingUpdate":
        return [_unknown_strategy(strategy, path, 'supported values: "Recreate", "RollingUpdate"')]
    rolling = mapping(strategy, "rollingUpdate")
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    where = f"{path}.rollingUpdate.maxUnavailable"
    errors = amount_or_percentage(where, unavailable)
    errors += amount_or_percentage(f"{path}.rollingUpdate.maxSurge", surge)
    if is_zero(unavailable) and is_zero(surge):
        errors.append(invalid_value(where, unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + not_more_than_all(where, unavailable)


def _same_selector(new: JSONObject, old: JSONObject) -> Errors:
    return unchanged("spec.selector", mapping(new, "spec").get("selector"), mapping(old, "spec").get("selector"))


def _keep_labels(new: JSONObject, old: JSONObject) -> None:
    """Reports on a deployment's status leave its labels alone."""
    metadata, labels = inside(new, "metadata"), mapping(old, "metadata").get("labels")
    if labels is None:
        metadata.pop("labels", None)
    else:
        metadata["labels"] = labels


DEPLOYMENT = Strategy(
    prepare_status=_keep_labels,
    validate=_validate_deployment,
    validate_update=lambda new, old: _validate_deployment(new) + _same_selector(new, old),
    has_generation=True,
    # Annotations are copied to replica sets, and so are part of what the controller has to bring about.
    changes_generation=lambda new, old: (
        new.get("spec") != old.get("spec")
        or mapping(new, "metadata", "annotations") != mapping(old, "metadata", "annotations")
    ),
)


def _validate_replica_set(replica_set: JSONObject) -> Errors:
    spec = mapping(replica_set, "spec")
    return not_negative_fields("spec", spec, "replicas", "minReadySeconds") + _template(spec, "deployment")


REPLICA_SET = Strategy(
    validate=_validate_replica_set,
    validate_update=lambda new, old: _validate_replica_set(new) + _same_selector(new, old),
    has_generation=True,
)


def _prepare_daemon_set(daemon_set: JSONObject) -> None:
    inside(daemon_set, "metadata", "annotations")[_TEMPLATE_GENERATION] = "1"


def _update_daemon_set(new: JSONObject, old: JSONObject) -> None:
    before = text(old, "metadata", "annotations", _TEMPLATE_GENERATION)
    generation = bounded_integer(before) if before.isdigit() else 0
    changed = mapping(new, "spec").get("template") != mapping(old, "spec").get("template")
    inside(new, "metadata", "annotations")[_TEMPLATE_GENERATION] = str(generation + changed)


def _validate_daemon_set(daemon_set: JSONObject) -> Errors:
    spec = mapping(daemon_set, "spec")
    selector = spec.get("selector")
    errors = validate_selector(selector, "spec.selector")
    if not errors:
        errors += _selects_template(spec)
    if isinstance(selector, dict) and is_empty(selector):
        errors.append(invalid_value("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += validate_pod_template(spec.get("template"), "spec.template")
    errors += _runs_for_ever(spec, "DaemonSet")
    errors += not_negative_fields("spec", spec, "minReadySeconds")
    errors += _daemon_set_strategy(mapping(spec, "updateStrategy"), "spec.updateStrategy")
    return errors + not_negative_fields("spec", spec, "revisionHistoryLimit")


def _daemon_set_strategy(strategy: JSONObject, path: str) -> Errors:
    if strategy.get("type") == "OnDelete":
        return []
    if strategy.get("type") != "RollingUpdate":
        return [_unknown_strategy(strategy, path, 'supported values: "RollingUpdate", "OnDelete"')]
    rolling = mapping(strategy, "rollingUpdate")
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    where = f"{path}.rollingUpdate"
    errors = amount_or_percentage(f"{where}.maxUnavailable", unavailable)
    errors += amount_or_percentage(f"{where}.maxSurge", surge)
    errors += not_more_than_all(f"{where}.maxUnavailable", unavailable)
    errors += not_more_than_all(f"{where}.maxSurge", surge)
    if not is_zero(unavailable) and not is_zero(surge):
        errors.append(invalid_value(f"{where}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif is_zero(unavailable) and is_zero(surge):
        errors.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


DAEMON_SET = Strategy(
    prepare_create=_prepare_daemon_set,
    prepare_update=_update_daemon_set,
    validate=_validate_daemon_set,
    validate_update=lambda new, old: _validate_daemon_set(new) + _same_selector(new, old),
    has_generation=True,
)


def _validate_stateful_set(stateful_set: JSONObject, *, on_update: bool = False) -> Errors:
    spec = mapping(stateful_set, "spec")
    policy = spec.get("podManagementPolicy")
    errors: Errors = []
    if policy not in ("OrderedReady", "Parallel"):
        complaint = "must be 'OrderedReady' or 'Parallel'"
        errors.append(invalid_value("spec.podManagementPolicy", policy, complaint))
    errors += _stateful_set_strategy(mapping(spec, "updateStrategy"), "spec.updateStrategy")
    for field, kept in mapping(spec, "persistentVolumeClaimRetentionPolicy").items():
        where = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        errors += one_of(where, kept, ("Retain", "Delete"))
    errors += not_negative_fields("spec", spec, "replicas", "minReadySeconds")
    errors += not_negative_fields("spec.ordinals", mapping(spec, "ordinals"), "start")
    if text(spec, "serviceName") and not on_update:
        errors += matching("spec.serviceName", text(spec, "serviceName"), dns_label)
    errors += _selector(spec, "statefulset")
    if validate_selector(spec.get("selector"), ""):
        errors.append(invalid_value("spec.selector", spec.get("selector"), ""))
    else:
        errors += _selects_template(spec)
        errors += validate_pod_template(_with_claims(spec), "spec.template")
    return errors + _runs_for_ever(spec, "StatefulSet")


def _with_claims(spec: JSONObject) -> JSONValue:
    """The template as its pods will be: the claims are volumes, and the names are the controller's."""
    template = copied(spec.get("template"))
    pod = inside(template, "spec") if isinstance(template, dict) else {}
    pod.pop("hostname", None)
    pod.pop("subdomain", None)
    claims = [text(claim, "metadata", "name") for _, claim in objects(spec, "volumeClaimTemplates")]
    if claims:
        others = [volume for _, volume in objects(pod, "volumes") if text(volume, "name") not in claims]
        volumes: list[JSONValue] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = [*volumes, *others]
    return template


def _stateful_set_strategy(strategy: JSONObject, path: str) -> Errors:
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete":
        if rolling is None:
            return []
        return [invalid_value(f"{path}.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")]
    if strategy.get("type") != "RollingUpdate":
        complaint = "must be 'RollingUpdate' or 'OnDelete'"
        return [StructError("FieldValueInvalid", path, _internal_strategy(strategy), complaint)]
    return not_negative_fields(f"{path}.rollingUpdate", mapping(rolling), "partition")


def _validate_stateful_set_update(new: JSONObject, old: JSONObject) -> Errors:
    errors = _validate_stateful_set(new, on_update=True)
    before = mapping(old, "spec")

    def fixed(spec: JSONObject) -> JSONObject:
        return {name: value for name, value in spec.items() if name not in _STATEFUL_SET_UPDATABLE}

    if fixed(mapping(new, "spec")) != fixed(before):
        errors.append(forbidden_field("spec", _STATEFUL_SET_UPDATES))
    return errors


STATEFUL_SET = Strategy(
    validate=_validate_stateful_set,
    validate_update=_validate_stateful_set_update,
    has_generation=True,
)


def _validate_replication_controller(controller: JSONObject) -> Errors:
    spec = mapping(controller, "spec")
    errors = not_negative_fields("spec", spec, "minReadySeconds")
    selector = mapping(spec, "selector")
    if not selector:
        errors.append(required("spec.selector"))
    errors += validate_labels(selector, "spec.selector")
    errors += not_negative_fields("spec", spec, "replicas")
    template = spec.get("template")
    if not isinstance(template, dict):
        return [*errors, required("spec.template")]
    labels = mapping(template, "metadata", "labels")
    if any(labels.get(key) != value for key, value in selector.items()):
        errors.append(invalid_value("spec.template.metadata.labels", sorted_or_null(labels), _NO_MATCH))
    errors += validate_pod_template(template, "spec.template")
    return errors + _runs_for_ever(spec, "ReplicationController")


def _replicas_fields(obj: JSONObject) -> dict[str, str]:
    return {"status.replicas": str(number(mapping(obj, "status").get("replicas")))}


REPLICATION_CONTROLLER = Strategy(
    validate=_validate_replication_controller,
    validate_update=lambda new, old: _validate_replication_controller(new),
    has_generation=True,
    default_propagation="Orphan",
    selectable_fields=_replicas_fields,
    selectable=frozenset(("status.replicas",)),
)


def _validate_revision(revision: JSONObject) -> Errors:
    data = revision.get("data")
    errors: Errors = []
    if data is None:
        errors.append(required("data", "data is mandatory"))
    elif not isinstance(data, dict):
        errors.append(required("data", "data must be a valid JSON object"))
    if number(revision.get("revision")) < 0:
        errors.append(invalid_value("revision", revision.get("revision"), "must be greater than or equal to 0"))
    return errors


CONTROLLER_REVISION = Strategy(
    validate=_validate_revision,
    validate_update=lambda new, old: _validate_revision(new) + unchanged("data", new.get("data"), old.get("data")),
)
