"""What the server makes of a pod before it is stored, and where nothing is stored any more."""

from __future__ import annotations

import asyncio
import re

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import (
    ConfigMap,
    LocalObjectReference,
    Namespace,
    ObjectReference,
    Pod,
    ServiceAccount,
)
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.scheduling.v1 import PriorityClass
from kubewright.client import Client, MergePatch
from kubewright.client.errors import APIError, Forbidden, NotFound

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def pod(name: str = "a", spec: dict[str, JSONValue] | None = None, **more: JSONValue) -> Pod:
    fields: JSONValue = {"containers": [{"name": "main", "image": "busybox"}], **(spec or {}), **more}
    return from_json(Pod, {"metadata": {"name": name}, "spec": fields})


def tolerations(found: Pod) -> list[tuple[str | None, str | None, int | None]]:
    return [(one.key, one.effect, one.toleration_seconds) for one in found.spec.tolerations]


async def test_a_pod_gets_a_priority_and_five_minutes_on_a_node_that_is_not_ready(client: Client) -> None:
    created = await client.create(pod())

    assert (created.spec.priority, created.spec.preemption_policy) == (0, "PreemptLowerPriority")
    assert created.spec.priority_class_name in (None, "")
    assert tolerations(created) == [(key, "NoExecute", 300) for key in TOLERATED]


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"operator": "Exists"}, ()),
        ({"operator": "Exists", "effect": "NoExecute"}, ()),
        ({"operator": "Exists", "effect": "NoSchedule"}, TOLERATED),
        ({"key": TOLERATED[0], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, TOLERATED[1:]),
        ({"key": "mine", "operator": "Exists"}, TOLERATED),
    ],
)
async def test_the_own_tolerations_of_a_pod_are_kept(client: Client, given: JSONValue, added: tuple[str, ...]) -> None:
    created = await client.create(pod(tolerations=[given]), dry_run=True)

    assert [key for key, _, _ in tolerations(created)[1:]] == list(added)


async def test_the_name_of_a_priority_class_stands_for_its_value(client: Client, namespace: str) -> None:
    mine = PriorityClass(metadata=ObjectMeta(name=namespace), value=42, preemption_policy="Never")
    mine = await client.create(mine)
    try:
        async with asyncio.timeout(60):
            # The real server knows of it from an informer, which is a little behind.
            while True:
                try:
                    created = await client.create(pod(priorityClassName=namespace))
                    break
                except Forbidden:
                    await asyncio.sleep(0.01)
        system = await client.create(pod("b", priorityClassName="system-node-critical"), dry_run=True)
    finally:
        await client.delete(mine)

    assert (created.spec.priority, created.spec.preemption_policy) == (42, "Never")
    assert (system.spec.priority, system.spec.preemption_policy) == (2_000_001_000, "PreemptLowerPriority")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "nothing"}, "no PriorityClass with name nothing was found"),
        (
            {"priority": 7},
            "the integer value of priority (7) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
        (
            {"serviceAccountName": "nobody"},
            'error looking up service account NAMESPACE/nobody: serviceaccount "nobody" not found',
        ),
    ],
)
async def test_a_pod_that_is_not_admitted_gets_the_reason(
    client: Client, namespace: str, spec: dict[str, JSONValue], why: str
) -> None:
    with pytest.raises(Forbidden) as refused:
        await client.create(pod(spec=spec))

    assert refused.value.status.message == f'pods "a" is forbidden: {why.replace("NAMESPACE", namespace)}'
    assert refused.value.status.details is not None
    assert (refused.value.status.details.kind, refused.value.status.details.name) == ("pods", "a")


async def test_one_priority_class_is_that_of_pods_that_name_none(client: Client, namespace: str) -> None:
    default = await client.create(
        PriorityClass(metadata=ObjectMeta(name=f"{namespace}-default"), value=7, global_default=True)
    )
    other = PriorityClass(metadata=ObjectMeta(name=f"{namespace}-other"), value=8, global_default=True)

    async def admitted(with_class: str) -> Pod:
        async with asyncio.timeout(60):
            while True:
                found = await client.create(pod(), dry_run=True)
                if (found.spec.priority_class_name or "") == with_class:
                    return found
                await asyncio.sleep(0.01)

    try:
        found = await admitted(default.metadata.name)
        with pytest.raises(Forbidden) as refused:
            await client.create(other, dry_run=True)
        default.description = "still the default"
        await client.update(default)
    finally:
        await client.delete(default)
        await admitted("")

    assert found.spec.priority == 7
    assert refused.value.status.message == (
        f'priorityclasses.scheduling.k8s.io "{namespace}-other" is forbidden: PriorityClass {namespace}-default is '
        "already marked as default. Only one default can exist"
    )


async def test_what_an_update_leaves_out_of_a_pod_stays(client: Client) -> None:
    created = await client.create(pod())
    sent = pod()
    sent.metadata.labels = {"a": "b"}
    sent.spec.volumes = created.spec.volumes
    sent.spec.containers = created.spec.containers
    sent.spec.service_account_name = created.spec.service_account_name

    updated = await client.update(sent)

    assert updated.metadata.labels == {"a": "b"}
    assert updated.metadata.generation == created.metadata.generation == 1
    assert updated.spec == created.spec


async def test_the_token_of_the_service_account_is_mounted_into_every_container(client: Client) -> None:
    elsewhere: JSONValue = {"name": "empty", "mountPath": MOUNT_PATH}
    created = await client.create(
        pod(
            initContainers=[{"name": "init", "image": "busybox"}],
            containers=[
                {"name": "main", "image": "busybox"},
                {"name": "other", "image": "busybox", "volumeMounts": [elsewhere]},
            ],
            volumes=[{"name": "empty", "emptyDir": {}}],
        )
    )

    volume = created.spec.volumes[1]
    assert re.fullmatch("kube-api-access-[a-z0-9]{5}", volume.name)
    assert volume.projected is not None
    token, certificate, downward = volume.projected.sources
    assert token.service_account_token is not None
    assert token.service_account_token.expiration_seconds == 3607
    assert certificate.config_map is not None
    assert certificate.config_map.name == "kube-root-ca.crt"
    assert downward.downward_api is not None
    mounted = {
        container.name: [mount.name for mount in container.volume_mounts]
        for container in (*created.spec.init_containers, *created.spec.containers)
    }
    assert mounted == {"init": [volume.name], "main": [volume.name], "other": ["empty"]}
    assert created.spec.service_account_name == "default"


async def test_a_service_account_says_what_its_pods_get(client: Client) -> None:
    account = ServiceAccount(
        metadata=ObjectMeta(name="robot"),
        automount_service_account_token=False,
        image_pull_secrets=[LocalObjectReference(name="registry")],
    )
    await client.create(account)

    created = await client.create(pod(serviceAccountName="robot"))
    willing = await client.create(
        pod("b", serviceAccountName="robot", automountServiceAccountToken=True, imagePullSecrets=[{"name": "own"}])
    )

    assert created.spec.volumes == []
    assert [secret.name for secret in created.spec.image_pull_secrets] == ["registry"]
    assert len(willing.spec.volumes) == 1
    assert [secret.name for secret in willing.spec.image_pull_secrets] == ["own"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]},
            'volume with secret.secretName="other" is not allowed because service account strict '
            "does not reference that secret",
        ),
        (
            {
                "containers": [
                    {"name": "main", "image": "i", "envFrom": [{"secretRef": {"name": "mine"}}]},
                    {
                        "name": "second",
                        "image": "i",
                        "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}],
                    },
                ]
            },
            'container second with envVar E referencing secret.secretName="other" is not allowed because service '
            "account strict does not reference that secret",
        ),
        (
            {"imagePullSecrets": [{"name": "other"}]},
            'imagePullSecrets[0].name="other" is not allowed because service account strict '
            "does not reference that imagePullSecret",
        ),
    ],
)
async def test_a_service_account_may_allow_its_own_secrets_only(
    client: Client, spec: dict[str, JSONValue], why: str
) -> None:
    account = ServiceAccount(
        metadata=ObjectMeta(name="strict", annotations={"kubernetes.io/enforce-mountable-secrets": "true"}),
        secrets=[ObjectReference(name="mine")],
    )
    await client.create(account)

    with pytest.raises(Forbidden) as refused:
        await client.create(pod(spec=spec, serviceAccountName="strict"))
    allowed = await client.create(
        pod(serviceAccountName="strict", volumes=[{"name": "v", "secret": {"secretName": "mine"}}]), dry_run=True
    )

    assert refused.value.status.message == f'pods "a" is forbidden: {why}'
    assert allowed.metadata.name == "a"


async def test_a_pod_may_come_right_after_its_namespace(admin: Client, namespace: str) -> None:
    """The service account is made by a controller, which the server gives a moment."""
    created = await admin.create(Namespace(metadata=ObjectMeta(name=f"{namespace}-x")))
    inside = admin.in_namespace(created.metadata.name)

    found = await inside.create(pod())

    assert found.spec.service_account_name == "default"
    await admin.delete(created)


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(admin: Client, namespace: str) -> None:
    nowhere = admin.in_namespace(f"{namespace}-none")

    for thing in (ConfigMap(metadata=ObjectMeta(name="a")), pod()):
        with pytest.raises(NotFound) as refused:
            await nowhere.create(thing)
        assert refused.value.status.message == f'namespaces "{namespace}-none" not found'


async def test_nothing_is_created_in_a_namespace_that_is_going(admin: Client, namespace: str) -> None:
    created = await admin.create(Namespace(metadata=ObjectMeta(name=f"{namespace}-going")))
    inside = admin.in_namespace(created.metadata.name)
    held = await inside.create(ConfigMap(metadata=ObjectMeta(name="held", finalizers=["example.com/hold"])))
    await admin.delete(created)
    why = f"unable to create new content in namespace {created.metadata.name} because it is being terminated"

    refusals: list[APIError] = []
    for thing in (
        ConfigMap(metadata=ObjectMeta(name="late")),
        ConfigMap(metadata=ObjectMeta(generate_name="late-")),
        ConfigMap(),
    ):
        with pytest.raises(Forbidden) as refused:
            await inside.create(thing)
        refusals.append(refused.value)

    assert [refusal.status.message for refusal in refusals] == [
        f'configmaps "late" is forbidden: {why}',
        f'configmaps "late-" is forbidden: {why}',
        f'configmaps "Unknown" is forbidden: {why}',
    ]
    details = refusals[0].status.details
    assert details is not None
    assert [(cause.reason, cause.message, cause.field) for cause in details.causes or ()] == [
        ("NamespaceTerminating", f"namespace {created.metadata.name} is being terminated", "metadata.namespace")
    ]
    # Meanwhile the controller of namespaces deletes it, which changes its revision.
    written = await inside.patch(held, MergePatch({"data": {"still": "written"}}))
    assert written.data == {"still": "written"}
    await inside.patch(held, MergePatch({"metadata": {"finalizers": None}}))


async def test_nothing_is_created_below_an_object_of_a_namespace_that_is_going(admin: Client, namespace: str) -> None:
    """Tokens, evictions and bindings are creations too: `kubectl drain` knows of this refusal."""
    created = await admin.create(Namespace(metadata=ObjectMeta(name=f"{namespace}-going")))
    inside = admin.in_namespace(created.metadata.name)
    account = await inside.create(ServiceAccount(metadata=ObjectMeta(name="robot", finalizers=["example.com/hold"])))
    going = pod()
    going.metadata.finalizers = ["example.com/hold"]
    going = await inside.create(going)
    await admin.delete(created)
    try:
        for attempt in (inside.token("robot"), inside.evict("a")):
            with pytest.raises(Forbidden, match="because it is being terminated"):
                await attempt
    finally:
        for thing in (account, going):
            latest = await inside.find(type(thing), thing.metadata.name)
            if latest is not None:
                latest.metadata.finalizers = []
                await inside.update(latest)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_the_first_namespaces_cannot_be_deleted(admin: Client, name: str) -> None:
    with pytest.raises(Forbidden) as refused:
        await admin.delete(Namespace, name, dry_run=True)

    assert refused.value.status.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
