"""The controllers of a control plane, written with kubewright itself. Each runs by itself and can be left out."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.apps.v1 import Deployment, ReplicaSet
from kubewright.api.certificates.v1 import CertificateSigningRequest
from kubewright.api.core.v1 import Node, PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import VolumeAttributesClass
from kubewright.controlplane.controllers.aggregation import ClusterRoleAggregation
from kubewright.controlplane.controllers.certificate_requests import CertificateApprover, CertificateSigner
from kubewright.controlplane.controllers.deferred_controllers import deferred, holds_token, is_of_user, may_be_mirrored
from kubewright.controlplane.controllers.deployments import Deployments
from kubewright.controlplane.controllers.ephemeral_volumes import EphemeralVolumes
from kubewright.controlplane.controllers.garbage import GarbageCollector
from kubewright.controlplane.controllers.namespaces import Namespaces
from kubewright.controlplane.controllers.node_lifecycle import NodeLifecycle
from kubewright.controlplane.controllers.nodes import SimulatedNodes
from kubewright.controlplane.controllers.pod_gc import PodGarbageCollector
from kubewright.controlplane.controllers.pod_simulator import PodSimulator
from kubewright.controlplane.controllers.replica_sets import ReplicaSets
from kubewright.controlplane.controllers.resource_quotas import ResourceQuotas
from kubewright.controlplane.controllers.root_ca import RootCAPublisher
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.scheduler import Scheduler
from kubewright.controlplane.controllers.service_accounts import ServiceAccounts
from kubewright.controlplane.controllers.storage_protection import (
    AttributesClassProtection,
    ClaimProtection,
    VolumeProtection,
)
from kubewright.controlplane.controllers.taint_eviction import TaintEviction
from kubewright.controlplane.controllers.volume_binder import VolumeBinder
from kubewright.controlplane.controllers.volume_expander import VolumeExpander
from kubewright.controlplane.controllers.volume_provisioner import VolumeProvisioner

__all__ = ["CONTROLLERS", "STARTED_BY"]

CONTROLLERS: dict[str, Callable[..., BuiltInController]] = {
    ClusterRoleAggregation.name: ClusterRoleAggregation,
    GarbageCollector.name: GarbageCollector,
    Namespaces.name: Namespaces,
    RootCAPublisher.name: RootCAPublisher,
    ServiceAccounts.name: ServiceAccounts,
    Deployments.name: Deployments,
    SimulatedNodes.name: SimulatedNodes,
    PodSimulator.name: PodSimulator,
    ReplicaSets.name: ReplicaSets,
    Scheduler.name: Scheduler,
    CertificateApprover.name: CertificateApprover,
    CertificateSigner.name: CertificateSigner,
    ClaimProtection.name: ClaimProtection,
    VolumeProtection.name: VolumeProtection,
    AttributesClassProtection.name: AttributesClassProtection,
    "jobs": deferred("jobs", "jobs:Jobs", "batch/v1", "Job"),
    "ttl-after-finished": deferred("ttl-after-finished", "job_ttl:JobTTL", "batch/v1", "Job"),
    "cronjobs": deferred("cronjobs", "cron_jobs:CronJobs", "batch/v1", "CronJob"),
    "daemonsets": deferred("daemonsets", "daemon_sets:DaemonSets", "apps/v1", "DaemonSet"),
    "statefulsets": deferred("statefulsets", "stateful_sets:StatefulSets", "apps/v1", "StatefulSet"),
    "disruption": deferred("disruption", "disruption:DisruptionBudgets", "policy/v1", "PodDisruptionBudget"),
    "replication-controllers": deferred(
        "replication-controllers", "replication_controllers:ReplicationControllers", "v1", "ReplicationController"
    ),
    "endpoints": deferred("endpoints", "endpoints:EndpointsOfServices", "v1", "Service", is_of_user),
    "endpoint-slices": deferred("endpoint-slices", "endpoint_slices:EndpointSlices", "v1", "Service", is_of_user),
    "endpoint-mirroring": deferred(
        "endpoint-mirroring",
        "endpoint_mirroring:EndpointMirroring",
        "v1",
        "Endpoints",
        may_be_mirrored,
        plural="endpoints",
    ),
    "csrcleaner": deferred(
        "csrcleaner",
        "certificate_cleaner:CertificateCleaner",
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        namespaced=False,
    ),
    "serviceaccount-token": deferred(
        "serviceaccount-token", "service_account_tokens:ServiceAccountTokens", "v1", "Secret", holds_token
    ),
    VolumeBinder.name: VolumeBinder,
    VolumeExpander.name: VolumeExpander,
    VolumeProvisioner.name: VolumeProvisioner,
    EphemeralVolumes.name: EphemeralVolumes,
    ResourceQuotas.name: ResourceQuotas,
    NodeLifecycle.name: NodeLifecycle,
    TaintEviction.name: TaintEviction,
    PodGarbageCollector.name: PodGarbageCollector,
}
"""All of them by name. Each is made with a client and options of its own, and with a cache if it is to share one."""

STARTED_BY: dict[str, tuple[type[Object], ...]] = {
    Deployments.name: (Deployment,),
    ReplicaSets.name: (ReplicaSet,),
    Scheduler.name: (Pod,),
    PodSimulator.name: (Pod,),
    CertificateApprover.name: (CertificateSigningRequest,),
    CertificateSigner.name: (CertificateSigningRequest,),
    ClaimProtection.name: (PersistentVolumeClaim,),
    VolumeProtection.name: (PersistentVolume,),
    AttributesClassProtection.name: (VolumeAttributesClass,),
    VolumeBinder.name: (PersistentVolume, PersistentVolumeClaim),
    VolumeExpander.name: (PersistentVolumeClaim,),
    VolumeProvisioner.name: (PersistentVolumeClaim,),
    EphemeralVolumes.name: (Pod,),
    ResourceQuotas.name: (ResourceQuota,),
    NodeLifecycle.name: (Node,),
    TaintEviction.name: (Pod,),
    PodGarbageCollector.name: (Pod,),
}
"""The kinds without whose objects a controller has nothing to do: it may be started with the first of any of them.

Those that are not here work from the beginning.
"""
