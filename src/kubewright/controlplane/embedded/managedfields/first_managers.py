"""The field managers of the objects that a new cluster has: the server, and a controller of its own.

Without them, the first apply to such an object would add a manager that no real cluster has. Only for the kinds that
users change: to compute them for all would make the start of the server noticeably longer.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.managedfields import track_update
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.tracking import nothing_of

_GROUPS = frozenset(("", "rbac.authorization.k8s.io", "scheduling.k8s.io"))
# What the server filled in itself after it had been sent the object, and so has no manager.
_FILLED_IN = {
    "Namespace": ("finalizers",),
    "Service": ("clusterIPs", "ipFamilies"),
}


def first_managers(obj: JSONObject, resource: ResourceType, now: str) -> list[JSONValue]:
    """The `managedFields` of one of the first objects, which has none yet; none for a kind that users do not change."""
    kind, api_version = resource.gvk.kind, resource.gvk.api_version
    if resource.gvk.group not in _GROUPS:
        return []
    sent: JSONObject = {**obj, "metadata": {**mapping(obj, "metadata")}}
    sent.pop("status", None)
    if kind in _FILLED_IN:
        sent["spec"] = {name: value for name, value in mapping(obj, "spec").items() if name not in _FILLED_IN[kind]}
    aggregated: list[JSONValue] = []
    if "aggregationRule" in sent:
        del sent["rules"]
        aggregated.append(
            {
                "manager": "clusterrole-aggregation-controller",
                "operation": "Apply",
                "apiVersion": api_version,
                "time": now,
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:rules": {}},
            }
        )
    tracked = track_update(
        None,
        sent,
        manager="kube-apiserver",
        api_version=api_version,
        subresource="",
        time=now,
        structure=resource.structure,
        empty=nothing_of(resource.gvk),
    )
    return [*aggregated, *tracked]
