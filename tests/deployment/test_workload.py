from __future__ import annotations

import msgspec
import pytest
from tests.deployment.ferries import ferries

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import (
    Capabilities,
    Container,
    PodSecurityContext,
    ResourceRequirements,
    SeccompProfile,
    SecurityContext,
)
from kubewright.api.quantity import Quantity
from kubewright.deployment import Operator, objects_of
from kubewright.deployment.workload import (
    deployment,
    disruption_budget,
    metrics_service,
    namespace,
    network_policy,
    webhook_service,
)
from kubewright.manager.flags import read_flags
from kubewright.manager.health import TIMEOUT
from kubewright.manager.manager import GRACE
from kubewright.manager.serving import CLOSE_GRACE

PLAIN = Operator(name="plain", image="plain:1", arguments=["--namespace=ops"])


def container(operator: Operator) -> Container:
    return deployment(operator).spec.template.spec.containers[0]


@pytest.mark.parametrize("operator", [ferries(), PLAIN], ids=["webhooks", "no webhooks"])
def test_the_arguments_are_flags_and_serve_at_the_ports(operator: Operator) -> None:
    flags, _ = read_flags(operator.name, None, container(operator).args)
    ports = {port.name: f":{port.container_port}" for port in container(operator).ports}
    assert flags.leader_elect
    assert flags.metrics_secure
    served = {"health": flags.health_address, "metrics": flags.metrics_address}
    if operator.webhooks:
        served["webhook"] = flags.webhook_address
        assert flags.webhook_service == webhook_service(operator).metadata.name
    else:
        assert flags.webhook_service is None
        assert flags.namespace == ["ops"]
    assert served == ports


@pytest.mark.parametrize("operator", [ferries(), PLAIN], ids=["webhooks", "no webhooks"])
def test_services_probes_and_the_network_policy_name_ports_that_are_there(operator: Operator) -> None:
    manager = container(operator)
    ports = {port.name: port.container_port for port in manager.ports}
    for probe in (manager.liveness_probe, manager.readiness_probe):
        assert probe is not None
        assert probe.http_get is not None
        assert probe.http_get.port == "health"
    services = [metrics_service(operator), *([webhook_service(operator)] if operator.webhooks else [])]
    assert {port.target_port for service in services for port in service.spec.ports} == {*ports} - {"health"}
    [rule] = network_policy(operator).spec.ingress
    assert [port.port for port in rule.ports] == [*ports.values()]


def test_everything_that_selects_pods_selects_those_of_the_deployment() -> None:
    operator = ferries()
    made = deployment(operator)
    labels = made.spec.template.metadata.labels
    budget, policy = disruption_budget(operator).spec.selector, network_policy(operator).spec.pod_selector
    assert budget is not None
    selectors = [
        made.spec.selector.match_labels,
        budget.match_labels,
        policy.match_labels,
        metrics_service(operator).spec.selector,
        webhook_service(operator).spec.selector,
    ]
    assert all(selector and selector.items() <= labels.items() for selector in selectors)


@pytest.mark.parametrize("grace", [GRACE, 120.5])
def test_a_pod_has_the_time_that_its_manager_takes_to_stop(grace: float) -> None:
    for operator in (ferries(), PLAIN):
        given = msgspec.structs.replace(operator, grace=grace)
        seconds, stop = (
            deployment(given).spec.template.spec.termination_grace_period_seconds,
            container(given).lifecycle,
        )
        assert (stop is None) == (not given.webhooks)
        slept = stop.pre_stop.sleep.seconds if stop and stop.pre_stop and stop.pre_stop.sleep else 0
        assert seconds is not None
        assert seconds > slept + grace + (CLOSE_GRACE if given.webhooks else 0)


@pytest.mark.parametrize("operator", [ferries(), PLAIN], ids=["webhooks", "no webhooks"])
def test_pods_are_not_root_and_are_confined(operator: Operator) -> None:
    pod, manager = deployment(operator).spec.template.spec, container(operator)
    assert pod.security_context == PodSecurityContext(
        run_as_non_root=True,
        run_as_user=65532,
        run_as_group=65532,
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
    assert manager.security_context == SecurityContext(
        allow_privilege_escalation=False,
        capabilities=Capabilities(drop=["ALL"]),
        read_only_root_filesystem=True,
    )
    assert (pod.host_network, pod.host_pid, pod.host_ipc, manager.command) == (None, None, None, [])
    assert pod.service_account_name == operator.name
    enforced = namespace(operator).metadata.labels
    assert {enforced[f"pod-security.kubernetes.io/{mode}"] for mode in ("enforce", "audit", "warn")} == {"restricted"}


def test_pods_have_resources_and_no_limit_of_cpu() -> None:
    """A replica that is throttled loses its lease."""
    assert to_json(container(PLAIN).resources) == {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"memory": "512Mi"},
    }
    given = ResourceRequirements(limits={"memory": Quantity("1Gi")})
    assert container(msgspec.structs.replace(PLAIN, resources=given)).resources == given


def test_probes_ask_what_the_manager_serves_and_wait_longer_than_it_does() -> None:
    manager = container(PLAIN)
    assert manager.liveness_probe is not None
    assert manager.readiness_probe is not None
    paths = [probe.http_get and probe.http_get.path for probe in (manager.liveness_probe, manager.readiness_probe)]
    assert paths == ["/healthz", "/readyz"]
    for probe in (manager.liveness_probe, manager.readiness_probe):
        assert (probe.timeout_seconds or 0) > TIMEOUT


def test_one_replica_leads_and_the_others_are_drained_one_at_a_time() -> None:
    spec, budget = deployment(PLAIN).spec, disruption_budget(PLAIN)
    assert spec.replicas == 2
    assert {"--leader-elect", f"--lease-name={PLAIN.name}"} <= {*container(PLAIN).args}
    assert (budget.metadata.namespace, budget.spec.max_unavailable) == (PLAIN.namespace, 1)
    assert budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
    rolling = spec.strategy.rolling_update
    assert rolling is not None
    assert (rolling.max_unavailable, rolling.max_surge) == (0, 1)


def test_the_network_policy_closes_every_port_but_those_that_are_served() -> None:
    policy = network_policy(PLAIN)
    assert policy.metadata.namespace == PLAIN.namespace
    assert policy.spec.policy_types == ["Ingress"]
    [rule] = policy.spec.ingress
    assert [(port.port, port.protocol) for port in rule.ports] == [(8081, "TCP"), (8443, "TCP")]


def test_everything_around_the_pods_is_deployed() -> None:
    kinds = {obj.kind for obj in objects_of(ferries())}
    assert kinds >= {"Namespace", "ServiceAccount", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}


def test_a_container_writes_to_tmp_only() -> None:
    manager = container(PLAIN)
    assert manager.security_context is not None
    assert manager.security_context.read_only_root_filesystem
    [volume] = deployment(PLAIN).spec.template.spec.volumes
    assert volume.empty_dir is not None
    assert [(mount.name, mount.mount_path) for mount in manager.volume_mounts] == [(volume.name, "/tmp")]
