"""Warnings about objects that are accepted. `WARNINGS` has them by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.builtins.pod_warnings import (
    NODE_LABELS,
    VOLUMES,
    claim_warnings,
    name_warnings,
    node_term_warnings,
    pod_warnings,
    template_warnings,
)
from kubewright.controlplane.embedded.builtins.values import number, objects

Warn = Callable[[JSONObject, JSONObject | None], Sequence[str]]

_INGRESS_CLASS = "kubernetes.io/ingress.class"
_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


def _templated(*path: str, names: bool = True) -> Warn:
    """For a kind that has a template of pods at `path`: when it is new, or another generation."""
    prefix = "".join(f"{step}." for step in path)

    def warnings(new: JSONObject, old: JSONObject | None) -> list[str]:
        if old is not None and at(new, "metadata", "generation") == at(old, "metadata", "generation"):
            return []
        named = name_warnings(new) if names and old is None else []
        return [*named, *template_warnings(mapping(new, *path), prefix)]

    return warnings


def _stateful_set(new: JSONObject, old: JSONObject | None) -> list[str]:
    warnings = [*_templated("spec", "template", names=False)(new, old)]
    for index, claim in objects(new, "spec", "volumeClaimTemplates"):
        warnings += claim_warnings(mapping(claim, "spec"), f"spec.volumeClaimTemplates[{index}]")
    if number(at(new, "spec", "revisionHistoryLimit")) < 0:
        warnings.append(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
        )
    return warnings


def _service(new: JSONObject, old: JSONObject | None) -> list[str]:
    spec, warnings = mapping(new, "spec"), list[str]()
    is_headless = text(spec, "type") == "ClusterIP" and text(spec, "clusterIP") == "None"
    is_elsewhere = text(spec, "type") == "ExternalName"
    addresses = items(spec, "externalIPs")
    if is_headless:
        if text(spec, "loadBalancerIP"):
            warnings.append("spec.loadBalancerIP is ignored for headless services")
        if addresses:
            warnings.append("spec.externalIPs is ignored for headless services")
        if text(spec, "sessionAffinity") != "None":
            warnings.append("spec.SessionAffinity is ignored for headless services")
    if addresses and not is_headless and not is_elsewhere:
        warnings.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if addresses and is_elsewhere:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if text(spec, "externalName") and not is_elsewhere:
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if text(spec, "trafficDistribution") == "PreferClose":
        warnings.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return warnings


def _ingress(new: JSONObject, old: JSONObject | None) -> list[str]:
    is_set = _INGRESS_CLASS in mapping(new, "metadata", "annotations")
    if old is not None or not is_set or "ingressClassName" in mapping(new, "spec"):
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def _storage_class_annotation(new: JSONObject) -> list[str]:
    if _STORAGE_CLASS not in mapping(new, "metadata", "annotations"):
        return []
    return [f'metadata.annotations[{_STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead']


def _claim(new: JSONObject, old: JSONObject | None) -> list[str]:
    return [*_storage_class_annotation(new), *claim_warnings(mapping(new, "spec"), "spec")]


def _volume(new: JSONObject, old: JSONObject | None) -> list[str]:
    spec, warnings = mapping(new, "spec"), _storage_class_annotation(new)
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle":
        warnings.append(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    for index, term in objects(spec, "nodeAffinity", "required", "nodeSelectorTerms"):
        warnings += node_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    warnings += [f"spec.{name}: {why}" for name, why in VOLUMES.items() if name in spec]
    return warnings


def _storage_class(new: JSONObject, old: JSONObject | None) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {NODE_LABELS[text(expression, 'key')]}"
        for index, term in objects(new, "allowedTopologies")
        for position, expression in objects(term, "matchLabelExpressions")
        if text(expression, "key") in NODE_LABELS
    ]


def _service_account(new: JSONObject, old: JSONObject | None) -> list[str]:
    if _MOUNTABLE_SECRETS not in mapping(new, "metadata", "annotations"):
        return []
    if _MOUNTABLE_SECRETS in mapping(old or {}, "metadata", "annotations"):
        return []
    return [
        f"metadata.annotations[{_MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
        "prefer separate namespaces to isolate access to mounted secrets"
    ]


WARNINGS: Mapping[str, Warn] = {
    "v1 PersistentVolume": _volume,
    "v1 PersistentVolumeClaim": _claim,
    "v1 Pod": pod_warnings,
    "v1 PodTemplate": _templated("template", names=False),
    "v1 ReplicationController": _templated("spec", "template"),
    "v1 Service": _service,
    "v1 ServiceAccount": _service_account,
    "apps/v1 DaemonSet": _templated("spec", "template", names=False),
    "apps/v1 Deployment": _templated("spec", "template"),
    "apps/v1 ReplicaSet": _templated("spec", "template"),
    "apps/v1 StatefulSet": _stateful_set,
    "batch/v1 CronJob": _templated("spec", "jobTemplate", "spec", "template"),
    "batch/v1 Job": _templated("spec", "template"),
    "networking.k8s.io/v1 Ingress": _ingress,
    "storage.k8s.io/v1 StorageClass": _storage_class,
}
