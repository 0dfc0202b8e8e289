"""What runs an operator, and what is around its pods.

The pods are within the Pod Security Standard "restricted", which the namespace enforces: they run as a user that is not
root, with a read-only file system but for /tmp, without capabilities, and with the seccomp profile of the runtime.
"""

from __future__ import annotations

import math
from typing import Final

from kubewright.api.apps.v1 import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from kubewright.api.batch.v1 import CronJob, CronJobSpec, JobSpec, JobTemplateSpec
from kubewright.api.core.v1 import (
    Capabilities,
    Container,
    ContainerPort,
    EmptyDirVolumeSource,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    Namespace,
    PodSecurityContext,
    PodSpec,
    PodTemplateSpec,
    Probe,
    SeccompProfile,
    SecurityContext,
    Service,
    ServicePort,
    ServiceSpec,
    SleepAction,
    TopologySpreadConstraint,
    Volume,
    VolumeMount,
)
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.api.networking.v1 import NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort, NetworkPolicySpec
from kubewright.api.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from kubewright.api.quantity import Quantity
from kubewright.deployment.operator import CLEANUP, HEALTH_PORT, METRICS_PORT, USER, WEBHOOK_PORT, Operator
from kubewright.deployment.request_cleanup import RequestCleanup
from kubewright.manager.health import TIMEOUT
from kubewright.manager.serving import CLOSE_GRACE

_POD_SECURITY: Final = "pod-security.kubernetes.io"
# A pod that ends is called until every API server knows: it goes on serving webhooks for so long.
_ENDPOINT_SECONDS: Final = 5
# For what the manager does after its grace time: to release the lease, to send the last events.
_RELEASE_SECONDS: Final = 5
# One clean-up has an hour, or what is left is for the next.
_CLEANUP_SECONDS: Final = 3600


def namespace(operator: Operator) -> Namespace:
    """The namespace, which admits no pods beyond "restricted"."""
    metadata = operator.cluster_metadata(operator.namespace)
    metadata.labels |= {f"{_POD_SECURITY}/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    return Namespace(metadata=metadata)


def deployment(operator: Operator) -> Deployment:
    """The Deployment. Its pods have the time that the manager takes to stop in order."""
    selector = LabelSelector(match_labels=operator.selector)
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={**operator.labels, **operator.selector}),
        spec=PodSpec(
            service_account_name=operator.name,
            containers=[_container(operator)],
            security_context=_pod_security(),
            termination_grace_period_seconds=_termination_seconds(operator),
            topology_spread_constraints=[
                TopologySpreadConstraint(
                    max_skew=1,
                    topology_key="kubernetes.io/hostname",
                    when_unsatisfiable="ScheduleAnyway",
                    label_selector=selector,
                )
            ],
            volumes=[Volume(name="tmp", empty_dir=EmptyDirVolumeSource(size_limit=Quantity("64Mi")))],
        ),
    )
    # Old pods serve until new ones are ready, also where there is only one.
    strategy = DeploymentStrategy(
        type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_unavailable=0, max_surge=1)
    )
    spec = DeploymentSpec(replicas=operator.replicas, selector=selector, strategy=strategy, template=template)
    return Deployment(metadata=operator.metadata(), spec=spec)


def cleanup_job(operator: Operator, cleanup: RequestCleanup) -> CronJob:
    """The CronJob that deletes finished requests, one run at a time."""
    container = Container(
        name="cleanup",
        image=operator.image,
        command=cleanup.command,
        resources=operator.resources,
        security_context=_container_security(),
        termination_message_policy="FallbackToLogsOnError",
    )
    pod = PodSpec(
        service_account_name=f"{operator.name}{CLEANUP}",
        containers=[container],
        restart_policy="Never",
        security_context=_pod_security(),
    )
    # Not the labels by which the Services and budgets of the operator select its pods.
    template = PodTemplateSpec(metadata=ObjectMeta(labels=operator.labels), spec=pod)
    job = JobSpec(backoff_limit=2, active_deadline_seconds=_CLEANUP_SECONDS, template=template)
    spec = CronJobSpec(
        schedule=cleanup.schedule,
        concurrency_policy="Forbid",
        successful_jobs_history_limit=1,
        failed_jobs_history_limit=3,
        job_template=JobTemplateSpec(spec=job),
    )
    return CronJob(metadata=operator.metadata(CLEANUP), spec=spec)


def metrics_service(operator: Operator) -> Service:
    """For what reads metrics: over TLS, with a token whose role permits `get` of /metrics."""
    return _service(operator, "-metrics", ServicePort(name="https", port=METRICS_PORT, target_port="metrics"))


def webhook_service(operator: Operator) -> Service:
    """For the API server, which calls port 443."""
    return _service(operator, "-webhook", ServicePort(name="https", port=443, target_port="webhook"))


def disruption_budget(operator: Operator) -> PodDisruptionBudget:
    """Nodes are drained one replica at a time, and not blocked by replicas that are not ready anyway."""
    spec = PodDisruptionBudgetSpec(
        max_unavailable=1,
        selector=LabelSelector(match_labels=operator.selector),
        unhealthy_pod_eviction_policy="AlwaysAllow",
    )
    return PodDisruptionBudget(metadata=operator.metadata(), spec=spec)


def network_policy(operator: Operator) -> NetworkPolicy:
    """Nothing but the ports that are served can be reached: API servers and the kubelet have no address known here."""
    ports = [NetworkPolicyPort(port=port, protocol="TCP") for port in _ports(operator).values()]
    spec = NetworkPolicySpec(
        pod_selector=LabelSelector(match_labels=operator.selector),
        policy_types=["Ingress"],
        ingress=[NetworkPolicyIngressRule(ports=ports)],
    )
    return NetworkPolicy(metadata=operator.metadata(), spec=spec)


def arguments(operator: Operator) -> list[str]:
    """The flags that its manager gets, before those of its own."""
    webhooks = (
        [f"--webhook-address=:{WEBHOOK_PORT}", f"--webhook-service={operator.webhook_service.name}"]
        if operator.webhooks
        else []
    )
    return [
        "--leader-elect",
        f"--lease-name={operator.name}",  # which its role names, whatever the program calls itself
        f"--health-address=:{HEALTH_PORT}",
        f"--metrics-address=:{METRICS_PORT}",
        "--metrics-secure",
        *webhooks,
    ]


def _container(operator: Operator) -> Container:
    return Container(
        name="manager",
        image=operator.image,
        args=[*arguments(operator), *operator.arguments],
        env=[*operator.env],
        env_from=[*operator.env_from],
        ports=[
            ContainerPort(name=name, container_port=port, protocol="TCP") for name, port in _ports(operator).items()
        ],
        # A manager that is stuck is restarted after a minute; one that cannot reach the API server is not.
        liveness_probe=_probe("/healthz", initial_delay=15, period=20),
        readiness_probe=_probe("/readyz", initial_delay=2, period=5),
        lifecycle=Lifecycle(pre_stop=LifecycleHandler(sleep=SleepAction(seconds=_ENDPOINT_SECONDS)))
        if operator.webhooks
        else None,
        resources=operator.resources,
        security_context=_container_security(),
        # What the last line on standard error says is in the status of the pod.
        termination_message_policy="FallbackToLogsOnError",
        volume_mounts=[VolumeMount(name="tmp", mount_path="/tmp")],  # noqa: S108  # an emptyDir
    )


def _pod_security() -> PodSecurityContext:
    return PodSecurityContext(
        run_as_non_root=True,
        run_as_user=USER,
        run_as_group=USER,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )


def _container_security() -> SecurityContext:
    return SecurityContext(
        allow_privilege_escalation=False, capabilities=Capabilities(drop=["ALL"]), read_only_root_filesystem=True
    )


def _ports(operator: Operator) -> dict[str, int]:
    served = {"health": HEALTH_PORT, "metrics": METRICS_PORT}
    return {**served, "webhook": WEBHOOK_PORT} if operator.webhooks else served


def _probe(path: str, *, initial_delay: int, period: int) -> Probe:
    return Probe(
        http_get=HTTPGetAction(path=path, port="health"),
        initial_delay_seconds=initial_delay,
        period_seconds=period,
        # A check that takes longer is answered as failed, with its name, which a timeout would hide.
        timeout_seconds=math.ceil(TIMEOUT) + 1,
    )


def _termination_seconds(operator: Operator) -> int:
    serving = _ENDPOINT_SECONDS + math.ceil(CLOSE_GRACE) if operator.webhooks else 0
    return math.ceil(operator.grace) + serving + _RELEASE_SECONDS


def _service(operator: Operator, suffix: str, port: ServicePort) -> Service:
    port.protocol = "TCP"
    return Service(metadata=operator.metadata(suffix), spec=ServiceSpec(ports=[port], selector=operator.selector))
