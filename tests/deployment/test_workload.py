from __future__ import annotations

import msgspec
import pytest
from tests.deployment.ferries import ferries

from kubewright.api.core.v1 import Container
from kubewright.deployment import Operator
from kubewright.deployment.workload import (
    deployment,
    disruption_budget,
    metrics_service,
    network_policy,
    webhook_service,
)
from kubewright.manager.flags import read_flags
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


def test_a_container_writes_to_tmp_only() -> None:
    manager = container(PLAIN)
    assert manager.security_context is not None
    assert manager.security_context.read_only_root_filesystem
    [volume] = deployment(PLAIN).spec.template.spec.volumes
    assert volume.empty_dir is not None
    assert [(mount.name, mount.mount_path) for mount in manager.volume_mounts] == [(volume.name, "/tmp")]
