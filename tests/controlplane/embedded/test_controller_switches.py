"""Each controller can be disabled: its work is not done until it is run after all."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from kubewright.api.apps.v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubewright.api.batch.v1 import CronJob, Job, JobCondition
from kubewright.api.certificates.v1 import CertificateSigningRequest, CertificateSigningRequestCondition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import (
    ConfigMap,
    Endpoints,
    Event,
    Namespace,
    Node,
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
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.policy.v1 import PodDisruptionBudget
from kubewright.api.rbac.v1 import ClusterRole
from kubewright.api.resources import Object
from kubewright.api.storage.v1 import StorageClass, VolumeAttributesClass
from kubewright.api.time import now
from kubewright.client import Client, MergePatch
from kubewright.client.errors import AlreadyExists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.certificates import CertificateAuthority
from kubewright.controlplane.controllers import CONTROLLERS
from kubewright.controlplane.controllers.storage_class import DRIVER
from kubewright.controlplane.controllers.volume_matching import BIND_COMPLETED
from kubewright.controlplane.embedded.auth.tokens import TokenSigner

Question = Callable[[Client], Awaitable[bool]]

LABELS: JSONValue = {"app": "a"}
POD_SPEC: dict[str, JSONValue] = {"containers": [{"name": "main", "image": "busybox"}]}
DEPLOYMENT: dict[str, JSONValue] = {
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": POD_SPEC},
    },
}
ROLE: JSONValue = {
    "metadata": {"name": "whole"},
    "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]},
}
PART: JSONValue = {
    "metadata": {"name": "part", "labels": {"part": "yes"}},
    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
}
STORAGE: dict[type[Object], JSONValue] = {
    PersistentVolumeClaim: {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    PersistentVolume: {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}},
    },
    VolumeAttributesClass: {"metadata": {"name": "data"}, "driverName": "a.example.com", "parameters": {"a": "b"}},
}
SPACE: JSONValue = {"requests": {"storage": "1Gi"}}
MANUAL: dict[str, JSONValue] = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
SCRATCH: JSONValue = {
    "name": "scratch",
    "ephemeral": {"volumeClaimTemplate": {"spec": {**MANUAL, "storageClassName": "other", "resources": SPACE}}},
}
USERS = "kubernetes.io/kube-apiserver-client"
_SUBJECT = x509.Name(
    [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, "system:node:a"),
    ]
)
_REQUEST = x509.CertificateSigningRequestBuilder().subject_name(_SUBJECT)
ASKED = base64.b64encode(
    _REQUEST.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)
).decode()
NOBODY = OwnerReference(api_version="v1", kind="ConfigMap", name="x", uid="5d6a2f5c-0000-0000-0000-000000000000")


async def prepare(client: Client) -> None:
    """Something to do for every controller."""
    with suppress(AlreadyExists):
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
    await client.create(from_json(ClusterRole, ROLE))
    await client.create(from_json(ClusterRole, PART))
    await client.create(ConfigMap(metadata=ObjectMeta(name="garbage", namespace="default", owner_references=[NOBODY])))
    going = await client.create(Namespace(metadata=ObjectMeta(name="going")))
    await client.delete(going)
    await client.create(Namespace(metadata=ObjectMeta(name="new")))
    await client.create(from_json(Deployment, DEPLOYMENT))
    await client.create(from_json(ReplicaSet, {**DEPLOYMENT, "metadata": {"name": "b"}}))
    await client.create(from_json(Pod, {"metadata": {"name": "p"}, "spec": POD_SPEC}))
    await client.create(from_json(Pod, {"metadata": {"name": "placed"}, "spec": {**POD_SPEC, "nodeName": "node-1"}}))
    kubelets = "kubernetes.io/kube-apiserver-client-kubelet"
    for name, signer in (("kubelet", kubelets), ("user", USERS), ("denied", USERS)):
        given: JSONValue = {
            "metadata": {"name": name},
            "spec": {"request": ASKED, "signerName": signer, "usages": ["client auth", "digital signature"]},
        }
        await client.create(from_json(CertificateSigningRequest, given))
    user = await client.get(CertificateSigningRequest, "user")
    user.status.conditions = [CertificateSigningRequestCondition(type="Approved", status="True")]
    await client.subresource("approval").update(user)
    denied = await client.get(CertificateSigningRequest, "denied")
    before = now() - timedelta(hours=2)
    denied.status.conditions = [
        CertificateSigningRequestCondition(type="Denied", status="True", last_update_time=before)
    ]
    await client.subresource("approval").update(denied)
    annotations: JSONValue = {"kubernetes.io/service-account.name": "default"}
    token: JSONValue = {
        "metadata": {"name": "token", "annotations": annotations},
        "type": "kubernetes.io/service-account-token",
    }
    await client.create(from_json(Secret, token))
    old = {
        "metadata": {"name": "old"},
        "spec": {"template": {"metadata": {"labels": {"app": "old"}}, "spec": POD_SPEC}},
    }
    await client.create(from_json(ReplicationController, old))
    db: JSONValue = {"matchLabels": {"app": "db"}}
    template: JSONValue = {"metadata": {"labels": {"app": "db"}}, "spec": POD_SPEC}
    await client.create(
        from_json(StatefulSet, {"metadata": {"name": "db"}, "spec": {"selector": db, "template": template}})
    )
    log: JSONValue = {"matchLabels": {"app": "log"}}
    daemon: JSONValue = {"metadata": {"labels": {"app": "log"}}, "spec": POD_SPEC}
    await client.create(
        from_json(DaemonSet, {"metadata": {"name": "log"}, "spec": {"selector": log, "template": daemon}})
    )
    await client.create(from_json(Node, {"metadata": {"name": "extra"}}))
    nightly: JSONValue = {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}}
    cron = from_json(CronJob, {"metadata": {"name": "cron"}, "spec": {"schedule": "* * * * *", "jobTemplate": nightly}})
    cron.spec.suspend = True
    cron = await client.create(cron)
    cron.status.last_schedule_time = now() - timedelta(hours=1)
    cron = await client.status.update(cron)
    cron.spec.suspend = False
    await client.update(cron)
    budget: JSONValue = {"minAvailable": 1, "selector": db}
    await client.create(from_json(PodDisruptionBudget, {"metadata": {"name": "db"}, "spec": budget}))
    work = {"metadata": {"labels": {"app": "work"}}, "spec": {**POD_SPEC, "restartPolicy": "Never"}}
    await client.create(from_json(Job, {"metadata": {"name": "work"}, "spec": {"template": work}}))
    done = from_json(Job, {"metadata": {"name": "done"}, "spec": {"template": work, "ttlSecondsAfterFinished": 0}})
    # The controller of Jobs leaves it alone.
    done.spec.managed_by = "example.com/other"
    done = await client.create(done)
    done.status.start_time = now()
    for type_ in ("FailureTarget", "Failed"):
        done.status.conditions.append(JobCondition(type=type_, status="True", last_transition_time=now()))
    await client.status.update(done)
    for name, selector in (("web", LABELS), ("manual", {})):
        ports: JSONValue = [{"port": 80}]
        given = {"metadata": {"name": name}, "spec": {"selector": selector, "ports": ports}}
        await client.create(from_json(Service, given))
    addresses: JSONValue = [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]
    await client.create(from_json(Endpoints, {"metadata": {"name": "manual"}, "subsets": addresses}))
    for kind, stored in STORAGE.items():
        await client.delete(await client.create(from_json(kind, stored)))

    await prepare_storage(client)
    await prepare_nodes(client)
    await client.create(from_json(ResourceQuota, {"metadata": {"name": "few"}, "spec": {"hard": {"configmaps": "9"}}}))


async def prepare_nodes(client: Client) -> None:
    """A node without a kubelet, that is out of service, a pod that may not be there, and one that never ends."""
    taints: JSONValue = [
        {"key": "broken", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule"},
    ]
    await client.create(from_json(Node, {"metadata": {"name": "broken"}, "spec": {"taints": taints}}))
    spec: dict[str, JSONValue] = {**POD_SPEC, "nodeName": "broken"}
    await client.create(from_json(Pod, {"metadata": {"name": "intolerant"}, "spec": spec}))
    spec["tolerations"] = [{"operator": "Exists"}]
    await client.delete(await client.create(from_json(Pod, {"metadata": {"name": "stuck"}, "spec": spec})))


async def prepare_storage(client: Client) -> None:
    """A free volume, a claim to provide for, one that is bound and should grow, and a pod with an ephemeral volume."""
    for name, provisioner in (("manual", "example.com/none"), ("simulated", DRIVER)):
        given: JSONValue = {"metadata": {"name": name}, "provisioner": provisioner, "allowVolumeExpansion": True}
        await client.create(from_json(StorageClass, given))
    room: dict[str, JSONValue] = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}
    await client.create(from_json(PersistentVolume, {"metadata": {"name": "free"}, "spec": {**MANUAL, **room}}))
    wanted: JSONValue = {**MANUAL, "storageClassName": "simulated", "resources": SPACE}
    await client.create(from_json(PersistentVolumeClaim, {"metadata": {"name": "wanted"}, "spec": wanted}))
    spec: JSONValue = {**POD_SPEC, "volumes": [SCRATCH]}
    await client.create(from_json(Pod, {"metadata": {"name": "e"}, "spec": spec}))
    taken: JSONValue = {**MANUAL, "volumeName": "taken", "resources": SPACE}
    bound = await client.create(
        from_json(
            PersistentVolumeClaim,
            {"metadata": {"name": "grown", "annotations": {BIND_COMPLETED: "yes"}}, "spec": taken},
        )
    )
    reference: JSONValue = {"namespace": "default", "name": "grown", "uid": bound.metadata.uid}
    taken = {**MANUAL, **room, "claimRef": reference}
    await client.create(from_json(PersistentVolume, {"metadata": {"name": "taken"}, "spec": taken}))
    # As the binder would, if it has not done so.
    await client.status.patch(bound, MergePatch({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}))
    await client.patch(bound, MergePatch({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}))


async def rules_are_gathered(client: Client) -> bool:
    return bool((await client.get(ClusterRole, "whole")).rules)


async def garbage_is_gone(client: Client) -> bool:
    return await client.find(ConfigMap, "garbage") is None


async def namespace_is_gone(client: Client) -> bool:
    return await client.find(Namespace, "going") is None


async def certificate_is_there(client: Client) -> bool:
    return await client.find(ConfigMap, "kube-root-ca.crt", namespace="new") is not None


async def account_is_there(client: Client) -> bool:
    return await client.find(ServiceAccount, "default", namespace="new") is not None


async def deployment_has_a_replica_set(client: Client) -> bool:
    return len(await client.list(ReplicaSet)) == 2


async def replica_set_has_a_pod(client: Client) -> bool:
    return any(pod.metadata.generate_name == "b-" for pod in await client.list(Pod))


async def old_controller_has_a_pod(client: Client) -> bool:
    return bool(await client.list(Pod, labels={"app": "old"}))


async def stateful_set_has_a_pod(client: Client) -> bool:
    return await client.find(Pod, "db-0") is not None


async def budget_is_counted(client: Client) -> bool:
    return bool((await client.get(PodDisruptionBudget, "db")).status.conditions)


async def daemon_set_has_a_pod(client: Client) -> bool:
    return bool(await client.list(Pod, labels={"app": "log"}))


async def cron_job_has_a_job(client: Client) -> bool:
    return any(job.metadata.name.startswith("cron-") for job in await client.list(Job))


async def job_has_a_pod(client: Client) -> bool:
    return bool(await client.list(Pod, labels={"app": "work"}))


async def finished_job_is_gone(client: Client) -> bool:
    return await client.find(Job, "done") is None


async def node_is_there(client: Client) -> bool:
    return await client.find(Node, "node-1") is not None


async def pod_is_placed(client: Client) -> bool:
    return bool((await client.get(Pod, "p")).spec.node_name)


async def pod_runs(client: Client) -> bool:
    return (await client.get(Pod, "placed")).status.phase == "Running"


async def kubelet_is_approved(client: Client) -> bool:
    return bool((await client.get(CertificateSigningRequest, "kubelet")).status.conditions)


async def user_has_a_certificate(client: Client) -> bool:
    return bool((await client.get(CertificateSigningRequest, "user")).status.certificate)


async def denied_request_is_gone(client: Client) -> bool:
    return await client.find(CertificateSigningRequest, "denied") is None


async def secret_has_a_token(client: Client) -> bool:
    return "token" in (await client.get(Secret, "token")).data


async def volume_is_available(client: Client) -> bool:
    return (await client.get(PersistentVolume, "free")).status.phase == "Available"


async def growth_is_reported(client: Client) -> bool:
    return any(event.reason == "ExternalExpanding" for event in await client.list(Event))


async def volume_is_provisioned(client: Client) -> bool:
    claim = await client.get(PersistentVolumeClaim, "wanted")
    return await client.find(PersistentVolume, f"pvc-{claim.metadata.uid}") is not None


async def quota_is_counted(client: Client) -> bool:
    return bool((await client.get(ResourceQuota, "few")).status.used)


async def ephemeral_claim_is_there(client: Client) -> bool:
    return await client.find(PersistentVolumeClaim, "e-scratch") is not None


def is_gone(kind: type[Object]) -> Question:
    async def gone(client: Client) -> bool:
        return await client.find(kind, "data") is None

    return gone


async def service_has_endpoints(client: Client) -> bool:
    return await client.find(Endpoints, "web") is not None


async def bare_node_is_not_tainted(client: Client) -> bool:
    return not (await client.get(Node, "extra")).spec.taints


async def intolerant_pod_is_going(client: Client) -> bool:
    found = await client.find(Pod, "intolerant")
    return found is None or found.metadata.deletion_timestamp is not None


async def stuck_pod_is_gone(client: Client) -> bool:
    return await client.find(Pod, "stuck") is None


def has_a_slice(service: str) -> Question:
    async def found(client: Client) -> bool:
        return bool(await client.list(EndpointSlice, labels={"kubernetes.io/service-name": service}))

    return found


EFFECTS: dict[str, Question] = {
    "clusterrole-aggregation": rules_are_gathered,
    "garbage-collector": garbage_is_gone,
    "namespaces": namespace_is_gone,
    "root-ca": certificate_is_there,
    "serviceaccounts": account_is_there,
    "deployments": deployment_has_a_replica_set,
    "replicasets": replica_set_has_a_pod,
    "nodes": node_is_there,
    "scheduler": pod_is_placed,
    "pod-simulator": pod_runs,
    "csrapproving": kubelet_is_approved,
    "csrsigning": user_has_a_certificate,
    "csrcleaner": denied_request_is_gone,
    "serviceaccount-token": secret_has_a_token,
    "pvc-protection": is_gone(PersistentVolumeClaim),
    "pv-protection": is_gone(PersistentVolume),
    "vac-protection": is_gone(VolumeAttributesClass),
    "daemonsets": daemon_set_has_a_pod,
    "cronjobs": cron_job_has_a_job,
    "statefulsets": stateful_set_has_a_pod,
    "disruption": budget_is_counted,
    "jobs": job_has_a_pod,
    "ttl-after-finished": finished_job_is_gone,
    "replication-controllers": old_controller_has_a_pod,
    "endpoints": service_has_endpoints,
    "endpoint-slices": has_a_slice("web"),
    "endpoint-mirroring": has_a_slice("manual"),
    "persistentvolume-binder": volume_is_available,
    "persistentvolume-expander": growth_is_reported,
    "volume-provisioner": volume_is_provisioned,
    "ephemeral-volume": ephemeral_claim_is_there,
    "resourcequota": quota_is_counted,
    "node-lifecycle": bare_node_is_not_tainted,
    "taint-eviction": intolerant_pod_is_going,
    "pod-garbage-collector": stuck_pod_is_gone,
}


async def until(question: Question, client: Client) -> None:
    async with asyncio.timeout(30):
        while not await question(client):
            await asyncio.sleep(0.005)


def test_every_controller_is_known_here() -> None:
    assert EFFECTS.keys() == CONTROLLERS.keys()


@pytest.mark.parametrize("left_out", CONTROLLERS)
async def test_a_controller_that_is_left_out_does_nothing_until_it_is_run(left_out: str) -> None:
    others = CONTROLLERS.keys() - {left_out}
    async with ControlPlane.embedded(controllers=others) as plane, plane.client() as client:
        await prepare(client)
        # Those that need no other one have done their part, so that the missing one would have had its time too.
        for name in others & {"garbage-collector", "clusterrole-aggregation", "root-ca"}:
            await until(EFFECTS[name], client)
        assert not await EFFECTS[left_out](client)

        options: dict[str, dict[str, object]] = {
            "root-ca": {"ca_certificate": plane.ca_certificate},
            "csrsigning": {"authority": CertificateAuthority()},
            "serviceaccount-token": {"signer": TokenSigner.generate("a"), "ca_certificate": plane.ca_certificate},
        }
        controller = CONTROLLERS[left_out].make(client, options.get(left_out, {}))
        assert controller.name == left_out
        running = asyncio.create_task(controller.run())
        await until(EFFECTS[left_out], client)
        running.cancel()
        await asyncio.wait((running,))
