"""All built-in kinds that a server of Kubernetes v1.36 serves by default, each with its rules.

`RULES` has the rules of each kind (kinds that need something of the server, such as its time, are added by
`built_in_resources`). What all kinds have in common is added by `_completed`: decoding and defaults,
and that the specification and the status are each changed through their own endpoint only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from kubewright.api.builtin import MODULES
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.api.scheme import built_in_kinds
from kubewright.api.time import now
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.builtins import (
    admission_policies,
    autoscaling,
    autoscaling_v1,
    certificates,
    cluster,
    config,
    endpoints,
    events,
    jobs,
    networking,
    pods,
    policy,
    rbac,
    services,
    storage,
    webhooks,
    workloads,
)
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.boot import boot_objects as boot_objects
from kubewright.controlplane.embedded.builtins.component_statuses import ComponentStatuses
from kubewright.controlplane.embedded.builtins.metadata import (
    validate_change,
    validate_finalizer_domains,
    validate_metadata_change,
)
from kubewright.controlplane.embedded.builtins.typecheck import empty_field, normalizer
from kubewright.controlplane.embedded.builtins.values import Errors, unchanged
from kubewright.controlplane.embedded.builtins.warnings import WARNINGS
from kubewright.controlplane.embedded.builtins.without_effect import effect_warnings
from kubewright.controlplane.embedded.registry.converted import Conversion
from kubewright.controlplane.embedded.registry.resources import ResourceType, Strategy

_GENERATION = Strategy(has_generation=True)
_FIXED_SPEC = Strategy(
    validate_update=lambda new, old: unchanged("spec", new.get("spec"), old.get("spec")), returns_deleted_object=True
)


def _slice_fields(obj: JSONObject) -> Mapping[str, str]:
    return {"spec.driver": text(obj, "spec", "driver"), "spec.nodeName": text(obj, "spec", "nodeName")}


_RESOURCE_SLICE = Strategy(
    has_generation=True,
    returns_deleted_object=True,
    selectable_fields=_slice_fields,
    selectable=frozenset(_slice_fields({})),
)

RULES: Mapping[str, Strategy] = {
    "v1 ConfigMap": config.CONFIG_MAP,
    "v1 Endpoints": endpoints.ENDPOINTS,
    "v1 Event": events.CORE_EVENT,
    "v1 LimitRange": config.LIMIT_RANGE,
    "v1 Namespace": cluster.NAMESPACE,
    "v1 Node": cluster.NODE,
    "v1 PersistentVolumeClaim": storage.PERSISTENT_VOLUME_CLAIM,
    "v1 Pod": pods.POD,
    "v1 PodTemplate": pods.POD_TEMPLATE,
    "v1 ReplicationController": workloads.REPLICATION_CONTROLLER,
    "v1 ResourceQuota": config.RESOURCE_QUOTA,
    "v1 Secret": config.SECRET,
    "v1 ServiceAccount": config.SERVICE_ACCOUNT,
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy": admission_policies.MUTATING_POLICY,
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding": admission_policies.MUTATING_POLICY_BINDING,
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": webhooks.WEBHOOK_CONFIGURATION,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": admission_policies.VALIDATING_POLICY,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": admission_policies.VALIDATING_POLICY_BINDING,
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": webhooks.WEBHOOK_CONFIGURATION,
    "apiextensions.k8s.io/v1 CustomResourceDefinition": Strategy(has_generation=True, unconditional_update=False),
    "apiregistration.k8s.io/v1 APIService": Strategy(unconditional_update=False),
    "apps/v1 ControllerRevision": workloads.CONTROLLER_REVISION,
    "apps/v1 DaemonSet": workloads.DAEMON_SET,
    "apps/v1 Deployment": workloads.DEPLOYMENT,
    "apps/v1 ReplicaSet": workloads.REPLICA_SET,
    "apps/v1 StatefulSet": workloads.STATEFUL_SET,
    "autoscaling/v1 HorizontalPodAutoscaler": autoscaling_v1.AUTOSCALER_V1,
    "autoscaling/v2 HorizontalPodAutoscaler": autoscaling.AUTOSCALER,
    "batch/v1 CronJob": jobs.CRON_JOB,
    "batch/v1 Job": jobs.JOB,
    "coordination.k8s.io/v1 Lease": cluster.LEASE,
    "discovery.k8s.io/v1 EndpointSlice": networking.ENDPOINT_SLICE,
    "events.k8s.io/v1 Event": events.NEWER_EVENT,
    "flowcontrol.apiserver.k8s.io/v1 FlowSchema": _GENERATION,
    "flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration": _GENERATION,
    "networking.k8s.io/v1 IPAddress": networking.IP_ADDRESS,
    "networking.k8s.io/v1 Ingress": networking.INGRESS,
    "networking.k8s.io/v1 IngressClass": networking.INGRESS_CLASS,
    "networking.k8s.io/v1 NetworkPolicy": networking.NETWORK_POLICY,
    "networking.k8s.io/v1 ServiceCIDR": networking.SERVICE_CIDR,
    "node.k8s.io/v1 RuntimeClass": cluster.RUNTIME_CLASS,
    "policy/v1 PodDisruptionBudget": policy.POD_DISRUPTION_BUDGET,
    "rbac.authorization.k8s.io/v1 ClusterRole": rbac.CLUSTER_ROLE,
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": rbac.CLUSTER_ROLE_BINDING,
    "rbac.authorization.k8s.io/v1 Role": rbac.ROLE,
    "rbac.authorization.k8s.io/v1 RoleBinding": rbac.ROLE_BINDING,
    "resource.k8s.io/v1 DeviceClass": Strategy(has_generation=True, returns_deleted_object=True),
    "resource.k8s.io/v1 ResourceClaim": _FIXED_SPEC,
    "resource.k8s.io/v1 ResourceClaimTemplate": _FIXED_SPEC,
    "resource.k8s.io/v1 ResourceSlice": _RESOURCE_SLICE,
    "scheduling.k8s.io/v1 PriorityClass": cluster.PRIORITY_CLASS,
    "storage.k8s.io/v1 CSIDriver": storage.CSI_DRIVER,
    "storage.k8s.io/v1 CSINode": storage.CSI_NODE,
    "storage.k8s.io/v1 CSIStorageCapacity": storage.CSI_STORAGE_CAPACITY,
    "storage.k8s.io/v1 StorageClass": storage.STORAGE_CLASS,
    "storage.k8s.io/v1 VolumeAttachment": storage.VOLUME_ATTACHMENT,
    "storage.k8s.io/v1 VolumeAttributesClass": storage.VOLUME_ATTRIBUTES_CLASS,
}

# Views of another kind or version: where they are stored, and how they get there and back.
_STORED_AS: Mapping[str, GroupVersionKind] = {
    "events.k8s.io/v1 Event": GroupVersionKind("", "v1", "Event"),
    "autoscaling/v1 HorizontalPodAutoscaler": GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
}
CONVERSIONS: Mapping[str, tuple[Conversion, Conversion]] = {
    "events.k8s.io/v1 Event": (events.to_core, events.from_core),
    "autoscaling/v1 HorizontalPodAutoscaler": (autoscaling_v1.to_storage, autoscaling_v1.from_storage),
}

# Sent to a subresource of another kind, so that there is no collection of them.
_ONLY_BODIES = frozenset(("authentication.k8s.io/v1 TokenRequest", "autoscaling/v1 Scale", "policy/v1 Eviction"))
_QUESTIONS = frozenset(("authentication.k8s.io", "authorization.k8s.io"))
_VERBS: Mapping[str, frozenset[str]] = {
    "v1 Binding": frozenset(("create",)),
    "v1 ComponentStatus": frozenset(("get", "list")),
    "v1 Namespace": frozenset(("create", "delete", "get", "list", "patch", "update", "watch")),
}
# Kinds that are checked as if they were new before their metadata is compared: their own rules do both.
_WHOLE_FIRST = frozenset(
    (
        "batch/v1 Job",
        "v1 Namespace",
        "rbac.authorization.k8s.io/v1 ClusterRole",
        "rbac.authorization.k8s.io/v1 ClusterRoleBinding",
        "rbac.authorization.k8s.io/v1 Role",
        "rbac.authorization.k8s.io/v1 RoleBinding",
    )
)
# Groups whose kinds take finalizers without a domain, as custom resources do.
_ANY_FINALIZER = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    )
)
# Nodes register with the status they have; these set their own.
_KEEPS_STATUS = frozenset(("v1 Node", "v1 Pod", "v1 Namespace"))


def go_type(gvk: GroupVersionKind) -> str:
    """What `typecheck` calls a kind: `apps/v1#Deployment`."""
    group = gvk.group.partition(".")[0] or "core"
    return f"{group}/{gvk.version}#{gvk.kind}"


def body_resource(cls: type[Object]) -> ResourceType:
    """A kind that is only the body of a request, such as TokenRequest: what one needs to read it."""
    return _resource(cls, {})


def built_in_resources(
    allocator: Allocator | None = None,
    *,
    now: Callable[[], datetime] = now,
    rules: Mapping[str, Strategy] | None = None,
) -> list[ResourceType]:
    """One resource type per served kind and version.

    `allocator` gives services their addresses. `rules` (keyed as `RULES`) replace those of single kinds.
    """
    chosen = {
        **RULES,
        "certificates.k8s.io/v1 CertificateSigningRequest": certificates.certificate_signing_request_strategy(now),
        "v1 PersistentVolume": storage.persistent_volume_strategy(now),
        "v1 Service": services.service_strategy(allocator or Allocator()),
        **(rules or {}),
    }
    return [_resource(cls, chosen) for cls in _served_kinds()]


_DEPRECATIONS = {
    "v1 ComponentStatus": "v1 ComponentStatus is deprecated in v1.19+",
    "v1 Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}


def _served_kinds() -> Sequence[type[Object]]:
    """Beta versions are off by default."""
    found: list[type[Object]] = []
    for api_version in MODULES:
        if "beta" not in api_version:
            kinds = built_in_kinds(api_version)
            found += [cls for cls in kinds if str(resource_info(cls).gvk) not in _ONLY_BODIES]
    return found


def _resource(cls: type[Object], rules: Mapping[str, Strategy]) -> ResourceType:
    info = resource_info(cls)
    name = f"{info.gvk.api_version} {info.gvk.kind}"
    verbs = frozenset(("create",)) if info.gvk.group in _QUESTIONS else _VERBS.get(name)
    resource = ResourceType(
        gvk=info.gvk,
        plural=info.plural,
        singular=info.singular,
        namespaced=info.namespaced is True,
        list_kind=f"{info.gvk.kind}List",
        short_names=info.short_names,
        categories=info.categories,
        subresources=info.subresources,
        structure=structure_of(cls),
        strategy=_completed(name, info, rules.get(name, Strategy())),
        storage=_STORED_AS.get(name),
        deprecation=_DEPRECATIONS.get(name, ""),
        view=(lambda store, settled, is_fresh: ComponentStatuses(store)) if name == "v1 ComponentStatus" else None,
    )
    return resource if verbs is None else replace(resource, verbs=verbs)


def _completed(name: str, info: ResourceInfo, rules: Strategy) -> Strategy:
    normalize = normalizer(go_type(info.gvk))
    empty_status = empty_field(go_type(info.gvk), "status") if info.has_status else None

    def default(new: JSONObject) -> None:
        normalize(new)
        rules.default(new)

    def prepare_create(new: JSONObject) -> None:
        if empty_status is not None and name not in _KEEPS_STATUS:
            new["status"] = empty_status()
        rules.prepare_create(new)

    def prepare_update(new: JSONObject, old: JSONObject) -> None:
        if empty_status is not None:
            _take(new, old, "status")
        rules.prepare_update(new, old)

    def prepare_status(new: JSONObject, old: JSONObject) -> None:
        for field in {*new, *old} - {"apiVersion", "kind", "metadata", "status"}:
            _take(new, old, field)
        rules.prepare_status(new, old)

    of_kubernetes = rules.warnings or WARNINGS.get(name)

    def warnings(new: JSONObject, old: JSONObject | None) -> Sequence[str]:
        return [*(of_kubernetes(new, old) if of_kubernetes is not None else ()), *effect_warnings(name, new)]

    by_domain = info.gvk.group not in _ANY_FINALIZER
    changes = validate_change if by_domain else validate_metadata_change

    def validate(new: JSONObject) -> Errors:
        return [*(validate_finalizer_domains(new) if by_domain else ()), *rules.validate(new)]

    def validate_update(new: JSONObject, old: JSONObject) -> Errors:
        return [*changes(new, old), *rules.validate_update(new, old)]

    return replace(
        rules,
        warnings=warnings,
        default=default,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        prepare_status=prepare_status,
        validate=validate,
        validate_update=rules.validate_update if name in _WHOLE_FIRST else validate_update,
        validate_status=lambda new, old: [*changes(new, old), *rules.validate_status(new, old)],
    )


def _take(new: JSONObject, old: JSONObject, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
