"""The Pod Security Standards: what the labels of a namespace refuse and warn of, word for word."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.conformance.asking import Answer, Ask

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.testing.namespaces import unique_name

PREFIX = "pod-security.kubernetes.io/"
NAMESPACES = "/api/v1/namespaces"
MERGE = "application/merge-patch+json"
RESTRICTED: JSONObject = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}

Labelled = Callable[..., Awaitable[str]]


@pytest.fixture
async def labelled(ask: Ask, request: pytest.FixtureRequest) -> AsyncIterator[Labelled]:
    """`await labelled(enforce="baseline")`: a namespace with such labels, in which pods are admitted."""
    made: list[str] = []

    async def make(**modes: str) -> str:
        name = unique_name(request.node.name)
        labels: JSONObject = {f"{PREFIX}{mode.replace('_', '-')}": level for mode, level in modes.items()}
        await ask("POST", NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        made.append(name)
        return name

    yield make
    for name in made:
        await ask("DELETE", f"{NAMESPACES}/{name}")


def pod(context: JSONValue = None, *, name: str = "a", second: JSONValue = None, **spec: JSONValue) -> JSONObject:
    containers: list[JSONValue] = [{"name": "main", "image": "busybox", "securityContext": context or {}}]
    if second is not None:
        containers.append({"name": "side", "image": "busybox", **(second if isinstance(second, dict) else {})})
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "automountServiceAccountToken": False, **spec},
    }


async def answers(ask: Ask, namespace: str, *pods: JSONObject) -> list[tuple[int, str, list[str]]]:
    found: list[Answer] = []
    for each in pods:
        found.append(await ask("POST", f"{NAMESPACES}/{namespace}/pods?dryRun=All", each))
    return [(one.code, str(one.body.get("message", "")), one.warnings) for one in found]


def refused(standard: str, why: str) -> tuple[int, str, list[str]]:
    return 403, f'pods "a" is forbidden: violates PodSecurity "{standard}": {why}', []


async def test_a_baseline_namespace_refuses_what_reaches_the_node(ask: Ask, labelled: Labelled) -> None:
    namespace = await labelled(enforce="baseline")
    probe: JSONValue = {"readinessProbe": {"tcpSocket": {"port": 1, "host": "10.0.0.1"}}}
    found = await answers(
        ask,
        namespace,
        pod({"privileged": True}),
        pod(hostNetwork=True, hostPID=True),
        pod({"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "CHOWN"]}}),
        pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "hostPath": {"path": "/"}}]),
        pod(second={"ports": [{"containerPort": 80, "hostPort": 80}]}),
        pod(second=probe),
        pod({"seLinuxOptions": {"type": "spc_t", "user": "u"}}, securityContext={"seLinuxOptions": {"role": "r"}}),
        pod({"seccompProfile": {"type": "Unconfined"}}, securityContext={"seccompProfile": {"type": "Unconfined"}}),
        pod({"appArmorProfile": {"type": "Unconfined"}}),
        pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        pod({"privileged": True}, hostIPC=True),
    )
    baseline = "baseline:latest"

    assert found == [
        refused(baseline, 'privileged (container "main" must not set securityContext.privileged=true)'),
        refused(baseline, "host namespaces (hostNetwork=true, hostPID=true)"),
        refused(
            baseline,
            'non-default capabilities (container "main" must not include "NET_ADMIN", "SYS_ADMIN" in '
            "securityContext.capabilities.add)",
        ),
        refused(baseline, 'hostPath volumes (volumes "v", "w")'),
        refused(baseline, 'hostPort (container "side" uses hostPort 80)'),
        refused(baseline, 'probe or lifecycle host (container "side" uses probe or lifecycle host "10.0.0.1")'),
        refused(
            baseline,
            'seLinuxOptions (pod and container "main" set forbidden securityContext.seLinuxOptions: type "spc_t"; '
            "user may not be set; role may not be set)",
        ),
        refused(
            baseline,
            'seccompProfile (pod and container "main" must not set securityContext.seccompProfile.type to '
            '"Unconfined")',
        ),
        refused(
            baseline,
            'forbidden AppArmor profile (container "main" must not set AppArmor profile type to "Unconfined")',
        ),
        refused(baseline, "forbidden sysctls (kernel.msgmax)"),
        refused(
            baseline,
            "host namespaces (hostIPC=true), "
            'privileged (container "main" must not set securityContext.privileged=true)',
        ),
    ]


async def test_a_restricted_namespace_requires_what_is_safe(ask: Ask, labelled: Labelled) -> None:
    namespace = await labelled(enforce="restricted", enforce_version="v1.30")
    found = await answers(
        ask,
        namespace,
        pod(RESTRICTED),
        pod(),
        pod({**RESTRICTED, "runAsUser": 0, "runAsNonRoot": False}),
        pod({**RESTRICTED, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
        pod(RESTRICTED, volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}]),
    )
    restricted = "restricted:v1.30"

    assert found == [
        (201, "", []),
        refused(
            restricted,
            'allowPrivilegeEscalation != false (container "main" must set '
            "securityContext.allowPrivilegeEscalation=false), "
            'unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]), '
            'runAsNonRoot != true (pod or container "main" must set securityContext.runAsNonRoot=true), '
            'seccompProfile (pod or container "main" must set securityContext.seccompProfile.type to '
            '"RuntimeDefault" or "Localhost")',
        ),
        refused(
            restricted,
            'runAsNonRoot != true (container "main" must not set securityContext.runAsNonRoot=false), '
            'runAsUser=0 (container "main" must not set runAsUser=0)',
        ),
        refused(
            restricted,
            'unrestricted capabilities (container "main" must not include "CHOWN" in securityContext.capabilities.add)',
        ),
        refused(restricted, 'restricted volume types (volume "v" uses restricted volume type "hostPath")'),
    ]


async def test_warnings_come_for_pods_and_for_templates(ask: Ask, labelled: Labelled) -> None:
    namespace = await labelled(warn="baseline", audit="restricted")
    forbidding = await labelled(enforce="baseline")
    host: JSONValue = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostPID=True)["spec"]}
    deployment: JSONObject = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": host},
    }
    path = "/apis/apps/v1/namespaces/{}/deployments?dryRun=All"
    warned = await answers(ask, namespace, pod(hostPID=True))
    templates = [await ask("POST", path.format(each), deployment) for each in (namespace, forbidding)]
    warning = '299 - "would violate PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)"'

    assert warned == [(201, "", [warning])]
    assert [(one.code, one.warnings) for one in templates] == [(201, [warning])] * 2


async def test_labels_are_checked_and_existing_pods_reported(ask: Ask, labelled: Labelled) -> None:
    namespace = await labelled()
    for name in ("a", "b"):
        created = await ask("POST", f"{NAMESPACES}/{namespace}/pods", pod(name=name, hostPID=True))
        assert created.code == 201, created.body
    wrong: JSONObject = {f"{PREFIX}enforce": "strict", f"{PREFIX}warn-version": "1.2"}
    refusal = await ask("PATCH", f"{NAMESPACES}/{namespace}", {"metadata": {"labels": wrong}}, MERGE)
    stricter = await ask(
        "PATCH", f"{NAMESPACES}/{namespace}", {"metadata": {"labels": {f"{PREFIX}enforce": "baseline"}}}, MERGE
    )

    assert refusal.refusal == (
        422,
        "Invalid",
        f'Namespace "{namespace}" is invalid: [metadata.labels[{PREFIX}enforce]: Invalid value: "strict": '
        f"must be one of privileged, baseline, restricted, metadata.labels[{PREFIX}warn-version]: "
        'Invalid value: "1.2": must be "latest" or "v1.x"]',
    )
    assert (stricter.code, stricter.warnings) == (
        200,
        [
            f'299 - "existing pods in namespace \\"{namespace}\\" violate the new PodSecurity enforce level '
            '\\"baseline:latest\\""',
            '299 - "a (and 1 other pod): host namespaces"',
        ],
    )
