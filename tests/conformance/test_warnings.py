"""Warnings about objects that are accepted: the same on every control plane."""

from __future__ import annotations

import pytest
from tests.conformance.asking import Ask

from kubewright.api.markers import JSONObject, JSONValue

CONTAINER: JSONObject = {"name": "main", "image": "web:1"}
CORE, APPS = "/api/v1/namespaces/NAMESPACE", "/apis/apps/v1/namespaces/NAMESPACE"
ZONE = "failure-domain.beta.kubernetes.io/zone"
USE_ZONE = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
WHOLE = "is invalid, must be an integer"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
MERGE = "application/merge-patch+json"


def pod(*, annotations: JSONObject | None = None, **spec: JSONValue) -> JSONObject:
    return {"metadata": {"name": "a", "annotations": annotations}, "spec": {"containers": [CONTAINER], **spec}}


def containers(**fields: JSONValue) -> JSONObject:
    return pod(containers=[{**CONTAINER, **fields}])


PODS: list[tuple[JSONObject, list[str]]] = [
    (
        containers(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "A", "value": "$(A)3"}]),
        ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
    ),
    (
        containers(ports=[{"containerPort": 80}, {"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]),
        [
            "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
            "spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[1]",
        ],
    ),
    (
        containers(resources={"requests": {"memory": "100m"}, "limits": {"memory": "1500m"}}),
        [
            f'spec.containers[0].resources.limits[memory]: fractional byte value "1500m" {WHOLE}',
            f'spec.containers[0].resources.requests[memory]: fractional byte value "100m" {WHOLE}',
        ],
    ),
    (pod(nodeSelector={ZONE: "x"}), [f"spec.nodeSelector[{ZONE}]: {USE_ZONE}"]),
    (
        pod(
            affinity={
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}]}
                },
                "podAffinity": {REQUIRED: [{"topologyKey": "x"}]},
            }
        ),
        [
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: {ZONE} is {USE_ZONE}",
            f"spec.affinity.podAffinity.{REQUIRED}[0].labelSelector: a null labelSelector results in matching no pod",
        ],
    ),
    (
        pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]),
        [
            f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is {USE_ZONE}",
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ],
    ),
    (
        pod(
            hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]}, {"ip": "1.2.3.4", "hostnames": ["b"]}],
            imagePullSecrets=[{"name": "a"}, {"name": "a"}, {"name": ""}],
        ),
        [
            'spec.hostAliases[1].ip: duplicate ip "1.2.3.4"',
            'spec.imagePullSecrets[1].name: duplicate name "a"',
            'spec.imagePullSecrets[2].name: invalid empty name ""',
        ],
    ),
    (
        pod(
            volumes=[
                {"name": "a", "gitRepo": {"repository": "x"}},
                {"name": "b", "glusterfs": {"endpoints": "a", "path": "b"}},
            ]
        ),
        [
            "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
            "spec.volumes[1].glusterfs: deprecated in v1.25, non-functional in v1.26+",
        ],
    ),
    (
        pod(annotations={"scheduler.alpha.kubernetes.io/critical-pod": ""}),
        [
            "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: "
            'non-functional in v1.16+; use the "priorityClassName" field instead'
        ],
    ),
]
OTHERS: list[tuple[str, JSONObject, list[str]]] = [
    (
        f"{CORE}/services",
        {
            "metadata": {"name": "a"},
            "spec": {"clusterIP": "None", "sessionAffinity": "ClientIP", "ports": [{"port": 80}]},
        },
        ["spec.SessionAffinity is ignored for headless services"],
    ),
    (
        f"{CORE}/services",
        {
            "metadata": {"name": "a"},
            "spec": {"externalIPs": ["1.2.3.4"], "trafficDistribution": "PreferClose", "ports": [{"port": 80}]},
        },
        [
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
        ],
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/NAMESPACE/ingresses",
        {
            "metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}},
            "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
        },
        ["annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"],
    ),
    (
        f"{CORE}/persistentvolumeclaims",
        {
            "metadata": {"name": "a", "annotations": {STORAGE_CLASS: "x"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
        },
        [
            f'metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead',
            'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
        ],
    ),
    (
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "a"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Recycle",
                "hostPath": {"path": "/x"},
            },
        },
        [
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        ],
    ),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": "a"},
            "provisioner": "example.com/a",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
        },
        [f"allowedTopologies[0].matchLabelExpressions[0].key: {USE_ZONE}"],
    ),
]


def shown(warnings: list[str]) -> list[str]:
    return ['299 - "{}"'.format(warning.replace('"', '\\"')) for warning in warnings]


@pytest.mark.parametrize(("body", "warnings"), PODS)
async def test_pods_are_warned_about(ask: Ask, body: JSONObject, warnings: list[str]) -> None:
    answer = await ask("POST", f"{CORE}/pods?dryRun=All", body)

    assert (answer.code, answer.warnings) == (201, shown(warnings))


@pytest.mark.parametrize(("path", "body", "warnings"), OTHERS)
async def test_other_kinds_are_warned_about(ask: Ask, path: str, body: JSONObject, warnings: list[str]) -> None:
    answer = await ask("POST", f"{path}?dryRun=All", body)

    assert (answer.code, answer.warnings) == (201, shown(warnings))


async def test_templates_of_pods_are_warned_about_when_they_change(ask: Ask) -> None:
    labels: JSONObject = {"app": "a"}
    template: JSONObject = {
        "metadata": {"labels": labels},
        "spec": {"containers": [CONTAINER], "nodeSelector": {ZONE: "x"}},
    }
    spec: JSONObject = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    created = await ask("POST", f"{APPS}/deployments", {"metadata": {"name": "a.b"}, "spec": spec})
    labelled = await ask("PATCH", f"{APPS}/deployments/a.b", {"metadata": {"labels": labels}}, MERGE)
    changed = await ask("PATCH", f"{APPS}/deployments/a.b", {"spec": {"minReadySeconds": 1}}, MERGE)

    name = (
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    )
    label = f"spec.template.spec.nodeSelector[{ZONE}]: {USE_ZONE}"
    assert created.warnings == shown([name, label])
    assert labelled.warnings == []
    assert changed.warnings == shown([label])


@pytest.mark.usefixtures("widgets")
async def test_finalizers_without_a_domain_are_warned_about_when_they_are_added(ask: Ask) -> None:
    path = "/apis/example.com/v1/namespaces/NAMESPACE/widgets"
    widget: JSONObject = {"apiVersion": "example.com/v1", "kind": "Widget"}

    def finalized(*finalizers: str) -> JSONObject:
        return {"metadata": {"finalizers": [*finalizers]}}

    created = await ask(
        "POST", path, {**widget, "metadata": {"name": "a", "finalizers": ["b", "a.b", "a", "a.b/c", "orphan"]}}
    )
    kept = await ask("PATCH", f"{path}/a", {"metadata": {"labels": {"a": "b"}}}, MERGE)
    patched = await ask("PATCH", f"{path}/a", finalized("b", "c", "c"), MERGE)
    status = await ask("PATCH", f"{path}/a/status", {**finalized("d"), "status": {"a": "b"}}, MERGE)
    malformed = await ask("PATCH", f"{path}/a", finalized("not a name"), MERGE)
    applied = await ask(
        "PATCH",
        f"{path}/b?fieldManager=t",
        {**widget, "metadata": {"name": "b", "finalizers": ["e"]}},
        "application/apply-patch+yaml",
    )
    for name in ("a", "b"):
        await ask("PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}}, MERGE)

    def refusal(*finalizers: str) -> list[str]:
        return shown(
            [
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name'
                f"{' including a path (/)' if '.' in finalizer else ''} "
                "to avoid accidental conflicts with other finalizer writers"
                for finalizer in finalizers
            ]
        )

    assert created.warnings == refusal("a", "a.b", "b")
    assert (kept.code, kept.warnings) == (200, [])
    assert patched.warnings == refusal("c")
    assert (status.code, status.warnings) == (200, [])
    assert (malformed.code, malformed.warnings) == (422, [])
    assert (applied.code, applied.warnings) == (201, refusal("e"))


async def test_a_kind_of_kubernetes_that_takes_any_finalizer_is_not_warned_about(ask: Ask) -> None:
    body: JSONObject = {"metadata": {"name": "a", "finalizers": ["a"]}}
    lease = await ask("POST", "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases?dryRun=All", body)
    config_map = await ask("POST", f"{CORE}/configmaps?dryRun=All", body)

    assert (lease.code, lease.warnings) == (201, [])
    assert (config_map.code, config_map.warnings) == (422, [])
