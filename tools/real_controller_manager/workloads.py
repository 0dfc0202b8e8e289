"""Objects of each kind that kube-controller-manager looks after, and what becomes of them when it does.

Each function gets a client of a namespace that takes pods, and one of the whole cluster. It returns when everything is
as it should be, and raises WaitTimeout or AssertionError otherwise. It may be called again in another namespace.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.autoscaling.v2 import HorizontalPodAutoscaler
from kubewright.api.batch.v1 import CronJob, Job
from kubewright.api.certificates.v1 import CertificateSigningRequest
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import (
    ConfigMap,
    Endpoints,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ReplicationController,
    ResourceQuota,
    Secret,
    Service,
    ServiceAccount,
)
from kubewright.api.discovery.v1 import EndpointSlice
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.policy.v1 import PodDisruptionBudget
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.api.time import now
from kubewright.client import Client, MergePatch
from kubewright.client.config.credentials import StaticCredentials, bearer
from kubewright.client.errors import Forbidden, TooManyRequests
from kubewright.client.wait import Expectation, Field, condition, deleted, established, exists

T = TypeVar("T", bound=Object)
Workload = Callable[[Client, Client], Awaitable[None]]

PATIENCE = 120.0

_LONG_AGO = timedelta(days=3)


def _template(app: str, **spec: JSONValue) -> JSONObject:
    containers: JSONValue = [{"name": "main", "image": "app:1", "ports": [{"containerPort": 80}]}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def _selecting(app: str, **spec: JSONValue) -> JSONObject:
    return {"selector": {"matchLabels": {"app": app}}, "template": _template(app), **spec}


async def _create(client: Client, kind: type[T], name: str, spec: JSONObject) -> T:
    return await client.create(from_json(kind, {"metadata": {"name": name}, "spec": spec}))


async def _roll(client: Client, obj: Object) -> None:
    image: JSONValue = [{"name": "main", "image": "app:2"}]
    await client.patch(obj, MergePatch({"spec": {"template": {"spec": {"containers": image}}}}))


async def _until(client: Client, obj: Object, **status: JSONValue) -> None:
    """Wait for fields of the status, of the present generation."""
    expected = Field("status.observedGeneration").satisfies(bool, "is set")
    for name, value in status.items():
        expected = expected & Field(f"status.{name}").equals(value)
    generation = (await client.get(obj)).metadata.generation
    await client.wait_for(obj, expected & _observed(generation or 0), timeout=PATIENCE)


def _observed(generation: int) -> Expectation:
    return Field("status.observedGeneration").satisfies(
        lambda seen: isinstance(seen, int) and seen >= generation, f"is at least {generation}"
    )


async def _eventually(holds: Callable[[], Awaitable[object]], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not await holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE:.0f} s: {what}")
        await asyncio.sleep(0.05)


async def deployments(client: Client, admin: Client) -> None:
    """Rolled and scaled, with a budget and an autoscaler, behind a Service."""
    web = await _create(client, Deployment, "web", _selecting("web", replicas=2))
    await _create(client, Service, "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]})
    budget = await _create(
        client, PodDisruptionBudget, "web", {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    )
    target: JSONValue = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    await _create(
        client, HorizontalPodAutoscaler, "web", {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5}
    )
    await _until(client, web, availableReplicas=2, updatedReplicas=2)
    await client.wait_for(budget, Field("status.currentHealthy").equals(2), timeout=PATIENCE)
    pod = (await client.list(Pod, labels={"app": "web"}))[0]
    try:
        await client.evict(pod)
    except TooManyRequests:
        pass
    else:
        raise AssertionError("a pod was evicted against a PodDisruptionBudget")
    await _roll(client, web)
    await _until(client, web, availableReplicas=2, updatedReplicas=2, replicas=2)
    await client.scale(web, replicas=3)
    await _until(client, web, availableReplicas=3, updatedReplicas=3, replicas=3)
    await client.wait_for(budget, Field("status.disruptionsAllowed").equals(1), timeout=PATIENCE)
    await _eventually(lambda: _ready_endpoints(client, "web", 3), "three endpoints of the Service web")
    sets = await client.list(ReplicaSet)
    assert sorted(one.status.replicas for one in sets if one.metadata.name.startswith("web-")) == [0, 3]


async def _ready_endpoints(client: Client, service: str, count: int) -> bool:
    slices = await client.list(EndpointSlice, labels={"kubernetes.io/service-name": service})
    ready = [one for slice_ in slices for one in slice_.endpoints if one.conditions.ready]
    written = await client.find(Endpoints, service)
    addresses = [one for subset in written.subsets for one in subset.addresses] if written is not None else []
    return len(ready) == len(addresses) == count


async def stateful_sets(client: Client, admin: Client) -> None:
    """With claims of the default class, scaled down, and the claims of what is gone deleted."""
    claim: JSONValue = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await _create(client, Service, "db", {"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 5432}]})
    spec = _selecting("db", replicas=2, serviceName="db", volumeClaimTemplates=[claim])
    spec["persistentVolumeClaimRetentionPolicy"] = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    db = await _create(client, StatefulSet, "db", spec)
    await _until(client, db, readyReplicas=2, updatedReplicas=2)
    volumes = []
    for number in (0, 1):
        found = await client.get(PersistentVolumeClaim, f"data-db-{number}")
        assert found.status.phase == "Bound"
        volumes.append(found.spec.volume_name or "")
    await _roll(client, db)
    await _until(client, db, readyReplicas=2, updatedReplicas=2)
    await client.scale(db, replicas=1)
    await _until(client, db, replicas=1, readyReplicas=1)
    await client.wait_for(PersistentVolumeClaim, "data-db-1", deleted, timeout=PATIENCE)
    await client.wait_for(PersistentVolume, volumes[1], deleted, timeout=PATIENCE)


async def daemon_sets(client: Client, admin: Client) -> None:
    """On every node, and rolled."""
    log = await _create(client, DaemonSet, "log", _selecting("log"))
    await client.wait_for(log, Field("status.numberAvailable").satisfies(bool, "is set"), timeout=PATIENCE)
    wanted = (await client.get(log)).status.desired_number_scheduled
    await _until(client, log, numberAvailable=wanted, updatedNumberScheduled=wanted)
    await _roll(client, log)
    await _until(client, log, numberAvailable=wanted, updatedNumberScheduled=wanted)


async def jobs(client: Client, admin: Client) -> None:
    """One that completes and is gone after a second, one that fails, and one of a CronJob."""
    once = _template("once", restartPolicy="Never")
    done = await _create(client, Job, "done", {"template": once, "completions": 3, "ttlSecondsAfterFinished": 1})
    failing: JSONObject = {**once, "metadata": {"annotations": {"simulate.kubewright.dev/exit-code": "1"}}}
    failed = await _create(client, Job, "failed", {"template": failing, "backoffLimit": 0})
    nightly: JSONObject = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": once}}}
    cron = await _create(client, CronJob, "nightly", nightly)
    before = f"{now() - _LONG_AGO:%Y-%m-%dT%H:%M:%SZ}"
    await client.status.patch(cron, MergePatch({"status": {"lastScheduleTime": before}}))
    await client.patch(cron, MergePatch({"spec": {"suspend": False}}))
    await client.wait_for(failed, condition("Failed"), timeout=PATIENCE)
    await client.wait_for(cron, Field("status.lastSuccessfulTime").satisfies(bool, "is set"), timeout=PATIENCE)
    await client.wait_for(done, deleted, timeout=PATIENCE)


async def old_controllers(client: Client, admin: Client) -> None:
    """A ReplicationController, and a pod with an ephemeral volume."""
    spec: JSONObject = {"replicas": 2, "selector": {"app": "old"}, "template": _template("old")}
    old = await _create(client, ReplicationController, "old", spec)
    await _until(client, old, readyReplicas=2)
    wanted: JSONValue = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    volume: JSONValue = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": wanted}}
    pod = await client.create(
        from_json(Pod, {"metadata": {"name": "one"}, "spec": {**_pod_spec(), "volumes": [volume]}})
    )
    await client.wait_for(pod, condition("Ready"), timeout=PATIENCE)
    await client.delete(pod)
    await client.wait_for(PersistentVolumeClaim, "one-scratch", deleted, timeout=PATIENCE)


def _pod_spec() -> JSONObject:
    return {"containers": [{"name": "main", "image": "app:1"}]}


async def quotas(client: Client, admin: Client) -> None:
    """Counted, enforced, and counted again when something goes."""
    quota = await _create(client, ResourceQuota, "few", {"hard": {"count/secrets": "1"}})
    used = Field('status.used["count/secrets"]')
    await client.wait_for(quota, used.equals("0"), timeout=PATIENCE)
    one = await client.create(Secret(metadata=ObjectMeta(name="one")))
    await client.wait_for(quota, used.equals("1"), timeout=PATIENCE)
    try:
        await client.create(Secret(metadata=ObjectMeta(name="two")))
    except Forbidden:
        pass
    else:
        raise AssertionError("a Secret was created beyond a ResourceQuota")
    await client.delete(one)
    await client.delete(quota)


async def namespaces(client: Client, admin: Client) -> None:
    """One that is filled and deleted."""
    name = f"{client.namespace}-more"
    namespace = await admin.create(Namespace(metadata=ObjectMeta(name=name)))
    inside = admin.in_namespace(name)
    await inside.wait_for(ServiceAccount, "default", exists, timeout=PATIENCE)
    await inside.wait_for(ConfigMap, "kube-root-ca.crt", exists, timeout=PATIENCE)
    web = await _create(inside, Deployment, "web", _selecting("web", replicas=2))
    await _until(inside, web, availableReplicas=2)
    held = ConfigMap(metadata=ObjectMeta(name="held", finalizers=["example.com/hold"]))
    held = await inside.create(held)
    await admin.delete(namespace)
    await admin.wait_for(namespace, condition("NamespaceFinalizersRemaining"), timeout=PATIENCE)
    await inside.patch(held, MergePatch({"metadata": {"finalizers": None}}))
    await admin.wait_for(namespace, deleted, timeout=PATIENCE)


async def custom_resources(client: Client, admin: Client) -> None:
    """A kind that comes and goes, whose objects own others."""
    group = f"{client.namespace}.example.com"
    names: JSONValue = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema: JSONValue = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version: JSONValue = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec: JSONObject = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = await _create(client, CustomResourceDefinition, f"widgets.{group}", spec)
    await client.wait_for(definition, established, timeout=PATIENCE)
    kind = Dynamic.of(f"{group}/v1", "Widget", plural="widgets", namespaced=True)
    owner = await client.create(from_json(kind, {"metadata": {"name": "owner"}}))
    reference: JSONValue = {"apiVersion": f"{group}/v1", "kind": "Widget", "name": "owner", "uid": owner.metadata.uid}
    for name in ("child", "other"):
        child = {"metadata": {"name": name, "ownerReferences": [reference]}}
        await client.create(from_json(ConfigMap, child) if name == "child" else from_json(kind, child))
    await client.delete(owner, propagation="Foreground")
    await client.wait_for(owner, deleted, timeout=PATIENCE)
    await client.wait_for(ConfigMap, "child", deleted, timeout=PATIENCE)
    await client.wait_for(kind, "other", deleted, timeout=PATIENCE)
    await client.create(from_json(kind, {"metadata": {"name": "last"}}))
    await client.delete(definition)
    await client.wait_for(definition, deleted, timeout=PATIENCE)


async def identities(client: Client, admin: Client) -> None:
    """A certificate that is signed, a token in a Secret, and roles that are gathered in another one."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    pem = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
    spec: JSONObject = {
        "request": base64.b64encode(pem).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    signed = await _create(client, CertificateSigningRequest, client.namespace, spec)
    approved: JSONValue = [{"type": "Approved", "status": "True", "reason": "Wanted", "message": ""}]
    await client.subresource("approval").patch(signed, MergePatch({"status": {"conditions": approved}}))
    await client.wait_for(signed, Field("status.certificate").satisfies(bool, "is set"), timeout=PATIENCE)
    await client.delete(signed)

    annotations = {"kubernetes.io/service-account.name": "default"}
    secret = await client.create(
        Secret(metadata=ObjectMeta(name="token", annotations=annotations), type="kubernetes.io/service-account-token")
    )
    filled = await client.wait_for(secret, Field("data.token").satisfies(bool, "is set"), timeout=PATIENCE)
    assert filled is not None
    credentials = StaticCredentials(bearer(base64.b64decode(filled.data["token"]).decode()))
    async with Client(replace(admin.config, credentials=credentials)) as robot:
        who = (await robot.create(SelfSubjectReview())).status.user_info.username
    assert who == f"system:serviceaccount:{client.namespace}:default", who

    label = f"{client.namespace}.example.com/part"
    whole: JSONObject = {
        "metadata": {"name": f"{client.namespace}-whole"},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
        "rules": [],
    }
    rule: JSONValue = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    part: JSONObject = {"metadata": {"name": f"{client.namespace}-part", "labels": {label: "true"}}, "rules": [rule]}
    roles = [await client.create(from_json(ClusterRole, one)) for one in (whole, part)]
    await client.wait_for(roles[0], Field("rules[0].verbs").equals(["get"]), timeout=PATIENCE)
    for role in roles:
        await client.delete(role)


WORKLOADS: tuple[Workload, ...] = (
    deployments,
    stateful_sets,
    daemon_sets,
    jobs,
    old_controllers,
    quotas,
    namespaces,
    custom_resources,
    identities,
)
