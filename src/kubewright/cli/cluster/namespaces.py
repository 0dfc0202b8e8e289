"""Whether a namespace can go with the operator: with it goes everything in it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubewright.api.apps.v1 import DaemonSet, Deployment, StatefulSet
from kubewright.api.batch.v1 import CronJob, Job
from kubewright.api.core.v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount
from kubewright.api.dynamic import metadata_only
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.deployment import Operator

_KUBERNETES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
# What would be missed. Kubernetes has two of these in every namespace.
_KINDS: Final[tuple[type[Object], ...]] = (
    Deployment,
    StatefulSet,
    DaemonSet,
    CronJob,
    Job,
    Pod,
    PersistentVolumeClaim,
    Secret,
    ConfigMap,
    Service,
    ServiceAccount,
)
_EVERYWHERE: Final = {ConfigMap: "kube-root-ca.crt", ServiceAccount: "default"}


async def reason_to_keep(client: Client, operator: Operator, namespace: str, own: Collection[ObjectKey]) -> str:
    """Why a namespace is not deleted: it is Kubernetes' own, or has what is not of the operator. Empty if it can go.

    `own` are the objects there that the operator has made itself.
    """
    if namespace in _KUBERNETES:
        return "it is Kubernetes' own"
    for kind in _KINDS:
        for found in await client.list(metadata_only(kind), namespace=namespace):
            name = found.metadata.name
            is_labelled = operator.labels.items() <= found.metadata.labels.items()
            is_owned = bool(found.metadata.owner_references)
            if not (is_labelled or is_owned or found.key in own or _EVERYWHERE.get(kind) == name):
                return f"it has the {kind.__name__} {name}, which is not of this operator"
    return ""
