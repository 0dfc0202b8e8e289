"""The controllers of a control plane, written with kubewright itself. Each runs by itself and can be left out.

They are listed by where they are, and imported when they start: most control planes are started for a test, and see
neither a Job nor a StatefulSet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import cast

from kubewright.api.builtin import MODULES
from kubewright.api.resources import Object
from kubewright.cache import Cache, CacheEntry
from kubewright.client import Client
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.runtime import BuiltInController

__all__ = ["CONTROLLERS", "ListedController"]


def _any(entry: CacheEntry) -> bool:
    return True


def _is_of_user(service: CacheEntry) -> bool:
    """Whether a Service is another one than that of the API server, which is there from the beginning."""
    return service.key != ("default", "kubernetes")


def _may_be_mirrored(endpoints: CacheEntry) -> bool:
    """Whether Endpoints were written by a user."""
    labels = endpoints.label_names
    return (
        "endpointslice.kubernetes.io/skip-mirror" not in labels and "endpoints.kubernetes.io/managed-by" not in labels
    )


def _holds_token(secret: CacheEntry) -> bool:
    """Whether a Secret is, by its annotation, for the token of a service account."""
    return b'"kubernetes.io/service-account.name"' in secret.body


@dataclass(frozen=True, slots=True)
class ListedController:
    """A controller of this package."""

    path: str
    """`module:class`."""
    first: tuple[tuple[str, str], ...] = ()
    """The kinds, by apiVersion and kind, without whose objects it has nothing to do; none: it starts at once."""
    concerns: Callable[[CacheEntry], bool] = _any
    """Whether one of those objects is such that it has something to do."""

    def make(
        self,
        client: Client,
        options: Mapping[str, object] = MappingProxyType({}),
        *,
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> BuiltInController:
        """Import and make it, with options of its own, and with a cache if it is to share one."""
        module, _, name = self.path.partition(":")
        controller = getattr(import_module(f"{__package__}.{module}"), name)
        return cast("BuiltInController", controller(client, clock=clock, cache=cache, **options))

    def first_kinds(self) -> list[type[Object]]:
        """The classes of `first`."""
        return [getattr(import_module(MODULES[api_version]), kind) for api_version, kind in self.first]


_CERTIFICATE_REQUEST = ("certificates.k8s.io/v1", "CertificateSigningRequest")
_CLAIM = ("v1", "PersistentVolumeClaim")
_CRON_JOB = ("batch/v1", "CronJob")
_DAEMON_SET = ("apps/v1", "DaemonSet")
_DEPLOYMENT = ("apps/v1", "Deployment")
_DISRUPTION_BUDGET = ("policy/v1", "PodDisruptionBudget")
_ENDPOINTS = ("v1", "Endpoints")
_JOB = ("batch/v1", "Job")
_NODE = ("v1", "Node")
_POD = ("v1", "Pod")
_REPLICA_SET = ("apps/v1", "ReplicaSet")
_REPLICATION_CONTROLLER = ("v1", "ReplicationController")
_RESOURCE_QUOTA = ("v1", "ResourceQuota")
_SECRET = ("v1", "Secret")
_SERVICE = ("v1", "Service")
_STATEFUL_SET = ("apps/v1", "StatefulSet")
_VOLUME = ("v1", "PersistentVolume")
_VOLUME_ATTRIBUTES_CLASS = ("storage.k8s.io/v1", "VolumeAttributesClass")

CONTROLLERS: dict[str, ListedController] = {
    "clusterrole-aggregation": ListedController("aggregation:ClusterRoleAggregation"),
    "garbage-collector": ListedController("garbage:GarbageCollector"),
    "namespaces": ListedController("namespaces:Namespaces"),
    "root-ca": ListedController("root_ca:RootCAPublisher"),
    "serviceaccounts": ListedController("service_accounts:ServiceAccounts"),
    "nodes": ListedController("nodes:SimulatedNodes"),
    "node-lifecycle": ListedController("node_lifecycle:NodeLifecycle", (_NODE,)),
    "taint-eviction": ListedController("taint_eviction:TaintEviction", (_POD,)),
    "pod-garbage-collector": ListedController("pod_gc:PodGarbageCollector", (_POD,)),
    "scheduler": ListedController("scheduler:Scheduler", (_POD,)),
    "pod-simulator": ListedController("pod_simulator:PodSimulator", (_POD,)),
    "deployments": ListedController("deployments:Deployments", (_DEPLOYMENT,)),
    "replicasets": ListedController("replica_sets:ReplicaSets", (_REPLICA_SET,)),
    "replication-controllers": ListedController(
        "replication_controllers:ReplicationControllers", (_REPLICATION_CONTROLLER,)
    ),
    "statefulsets": ListedController("stateful_sets:StatefulSets", (_STATEFUL_SET,)),
    "daemonsets": ListedController("daemon_sets:DaemonSets", (_DAEMON_SET,)),
    "jobs": ListedController("jobs:Jobs", (_JOB,)),
    "ttl-after-finished": ListedController("job_ttl:JobTTL", (_JOB,)),
    "cronjobs": ListedController("cron_jobs:CronJobs", (_CRON_JOB,)),
    "disruption": ListedController("disruption:DisruptionBudgets", (_DISRUPTION_BUDGET,)),
    "endpoints": ListedController("endpoints:EndpointsOfServices", (_SERVICE,), _is_of_user),
    "endpoint-slices": ListedController("endpoint_slices:EndpointSlices", (_SERVICE,), _is_of_user),
    "endpoint-mirroring": ListedController("endpoint_mirroring:EndpointMirroring", (_ENDPOINTS,), _may_be_mirrored),
    "csrapproving": ListedController("certificate_requests:CertificateApprover", (_CERTIFICATE_REQUEST,)),
    "csrsigning": ListedController("certificate_requests:CertificateSigner", (_CERTIFICATE_REQUEST,)),
    "csrcleaner": ListedController("certificate_cleaner:CertificateCleaner", (_CERTIFICATE_REQUEST,)),
    "serviceaccount-token": ListedController("service_account_tokens:ServiceAccountTokens", (_SECRET,), _holds_token),
    "pvc-protection": ListedController("storage_protection:ClaimProtection", (_CLAIM,)),
    "pv-protection": ListedController("storage_protection:VolumeProtection", (_VOLUME,)),
    "vac-protection": ListedController("storage_protection:AttributesClassProtection", (_VOLUME_ATTRIBUTES_CLASS,)),
    "persistentvolume-binder": ListedController("volume_binder:VolumeBinder", (_VOLUME, _CLAIM)),
    "persistentvolume-expander": ListedController("volume_expander:VolumeExpander", (_CLAIM,)),
    "volume-provisioner": ListedController("volume_provisioner:VolumeProvisioner", (_CLAIM,)),
    "ephemeral-volume": ListedController("ephemeral_volumes:EphemeralVolumes", (_POD,)),
    "resourcequota": ListedController("resource_quotas:ResourceQuotas", (_RESOURCE_QUOTA,)),
}
"""All of them by name."""
