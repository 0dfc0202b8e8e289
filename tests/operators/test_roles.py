"""Each operator works with exactly the role that is rendered for it, and says which rule it lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import NamedTuple

import pytest
from operators import builtins, chaospod, devbox, podmanager, wukong
from operators import user as users
from operators.user.names import CREATOR, STATUS, SYSTEM_NAMESPACE, role_reference
from operators.user.request_guard import ENFORCED_AFTER, RECORD
from operators.user.request_policy import POLICY
from operators.wukong import simulators
from operators.wukong.cdi import DataVolume

from kubewright import Client, ControlPlane, Field, KubernetesError, Manager, NotFound, ObjectMeta, Permission, Quantity
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicyBinding
from kubewright.api.apps.v1 import ReplicaSet, ReplicaSetSpec
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Container, Namespace, PersistentVolumeClaim, Pod, PodSpec, PodTemplateSpec, Secret
from kubewright.api.meta import LabelSelector
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.client import MergePatch
from kubewright.client.wait import condition, deleted, exists
from kubewright.controlplane.definitions import DefinitionSource
from kubewright.deployment import Operator as Deployed
from kubewright.deployment import with_setup
from kubewright.manager import LeaderElection
from kubewright.manager.roles import declared_permissions, roles_of, rules_of
from kubewright.testing import Install, compare_permissions, recorded_permissions, restricted_client, run_virtual

TEMPLATE = PodTemplateSpec(
    metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="app", image="app:1")])
)
METADATA = ObjectMeta(name="it", namespace="default")


async def use_podmanager(user: Client) -> None:
    spec = podmanager.PodManagerSpec(image="app:1", replicas=2)
    created = await user.create(podmanager.PodManager(metadata=METADATA, spec=spec))
    await user.wait_for(created, Field("status.currentReplicas").equals(2))
    await user.delete(created)
    await user.wait_for(created, deleted)


async def use_chaospod(user: Client) -> None:
    spec = chaospod.ChaosPodSpec(template=TEMPLATE)
    await user.create(chaospod.ChaosPod(metadata=METADATA, spec=spec))
    first = await user.wait_for(Pod, "it", exists)
    assert first is not None
    another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, first.metadata.uid), "is another")
    await user.wait_for(Pod, "it", another)


async def use_builtins(user: Client) -> None:
    spec = builtins.PodSetSpec(replicas=2, template=TEMPLATE)
    created = await user.create(builtins.PodSet(metadata=METADATA, spec=spec))
    await user.wait_for(created, Field("status.replicas").equals(2))
    await user.patch(builtins.PodSet, "it", MergePatch({"spec": {"replicas": 1}}))
    await user.wait_for(created, Field("status.replicas").equals(1))
    replicas = ReplicaSetSpec(replicas=0, selector=LabelSelector(match_labels={"app": "web"}), template=TEMPLATE)
    replica_set = await user.create(ReplicaSet(metadata=METADATA, spec=replicas))
    await user.wait_for(replica_set, Field("metadata.labels.hello").equals("world"))


async def use_users(user: Client) -> None:
    # A workspace that was kept, in which its user had less.
    await user.create(Namespace(metadata=ObjectMeta(name="ns-it", annotations={CREATOR: "it"})))
    metadata = ObjectMeta(name="it", namespace="ns-it")
    await user.create(RoleBinding(metadata=metadata, role_ref=role_reference("Developer")))
    created = await user.create(users.User(metadata=ObjectMeta(name="it")))
    await user.wait_for(created, condition("Ready"))
    assert (await user.get(RoleBinding, "it", namespace="ns-it")).role_ref == role_reference("Owner")
    await user.delete(created)
    await user.wait_for(created, deleted)
    await use_requests(user)


async def use_requests(user: Client) -> None:
    for actions in (["Deny", "Audit"], ["Deny"]):  # each change of the policy that guards requests is recorded
        change = MergePatch({"spec": {"validationActions": [*actions]}})
        await user.patch(ValidatingAdmissionPolicyBinding, POLICY, change)
        await asyncio.sleep(ENFORCED_AFTER.total_seconds() + 1)  # until servers know it
    for name in ("alice", "bob"):
        labels = {STATUS: "Deleted"}
        await user.wait_for(
            await user.create(users.User(metadata=ObjectMeta(name=name, labels=labels))), condition("Ready")
        )
    finished = Field("status.phase").equals("Completed")
    for action, role in (("Grant", "Developer"), ("Grant", "Developer"), ("Update", "Owner"), ("Deprive", None)):
        spec = users.OperationrequestSpec(user="bob", namespace="ns-alice", action=action, role=role)  # type: ignore[arg-type]  # texts
        metadata = ObjectMeta(generate_name="it-", namespace=SYSTEM_NAMESPACE)
        await user.wait_for(await user.create(users.Operationrequest(metadata=metadata, spec=spec)), finished)
        change = MergePatch({"metadata": {"labels": None}})  # which the next request repairs
        with suppress(NotFound):
            await user.patch(RoleBinding, "bob-Developer", change, namespace="ns-alice")
    for name in ("alice", "bob"):
        deletion = users.Deleterequest(metadata=ObjectMeta(name=name), spec=users.DeleterequestSpec(user=name))
        await user.wait_for(await user.create(deletion), finished)
    await asyncio.sleep(3700)  # for which they are kept


async def use_devbox(user: Client) -> None:
    spec = devbox.DevboxSpec(image="dev:1", resource={"cpu": Quantity(1)}, network=devbox.Network(type="NodePort"))
    created = await user.create(devbox.Devbox(metadata=METADATA, spec=spec))
    running = Field("status.phase").equals("Running")
    await user.wait_for(created, running, timeout=60)
    await user.patch(Pod, "it", MergePatch({"metadata": {"labels": None}}))
    labelled = Field("metadata.labels").satisfies(lambda labels: bool(labels), "are there again")
    await user.wait_for(Pod, "it", labelled, timeout=60)
    await user.patch(Secret, "it", MergePatch({"data": None}))
    for claim in await user.list(PersistentVolumeClaim):
        await user.patch(claim, MergePatch({"metadata": {"ownerReferences": None}}))
    release = devbox.DevBoxReleaseSpec(devbox_name="it", version="v1", start_devbox_after_release=True)
    await user.create(devbox.DevBoxRelease(metadata=METADATA, spec=release))
    await user.patch(devbox.Devbox, "it", MergePatch({"spec": {"state": "Shutdown"}}))
    released = Field("status.phase").equals("Success")
    await user.wait_for(devbox.DevBoxRelease, "it", released, timeout=60)
    await user.wait_for(created, running, timeout=60)
    await user.delete(created)
    await user.wait_for(created, deleted, timeout=60)


async def use_wukong(user: Client) -> None:
    root = wukong.Disk(name="root", size="1Gi", storage_class_name="standard", image="app:1")
    data = wukong.Disk(name="data", size="1Gi", storage_class_name="standard")
    networks = [wukong.Network(name="lan", type="bridge")]
    spec = wukong.WukongSpec(cpu=1, disks=[root, data], networks=networks, os_image="ubuntu")
    created = await user.create(wukong.Wukong(metadata=METADATA, spec=spec))
    await user.wait_for(created, Field("status.phase").equals("Running"))
    of = wukong.WukongSnapshotSpec(wukong_name="it")
    snapshot = await user.create(wukong.WukongSnapshot(metadata=METADATA, spec=of))
    await user.wait_for(snapshot, Field("status.phase").equals("Succeeded"))
    change = {"cpu": 2, "startStrategy": {"autoStart": False}, "restoreFromSnapshot": "it"}
    await user.patch(wukong.Wukong, "it", MergePatch({"spec": change}))
    await user.wait_for(created, Field("status.restore.phase").equals("Succeeded"))
    await user.patch(wukong.Wukong, "it", MergePatch({"spec": {"restoreFromSnapshot": None}}))
    await user.wait_for(created, Field("status.restore").equals(None))
    await user.delete(created)
    await user.wait_for(created, deleted)

    spec = wukong.WukongSpec(cpu=1, disks=[root], volume_retention="Retain")
    kept = await user.create(wukong.Wukong(metadata=ObjectMeta(name="kept", namespace="default"), spec=spec))
    await user.wait_for(kept, Field("status.phase").equals("Running"))
    root.size = "2Gi"
    await user.patch(wukong.Wukong, "kept", MergePatch({"spec": {"disks": [to_json(root)]}}))
    await user.wait_for(kept, Field("status.volumes[0].size").equals("2Gi"))
    await user.patch(wukong.Wukong, "kept", MergePatch({"spec": {"volumeRetention": "Delete"}}))
    owned = Field("metadata.ownerReferences").satisfies(bool, "is the Wukong")
    await user.wait_for(DataVolume, "kept-root", owned, namespace="default")
    await user.delete(kept)
    await user.wait_for(kept, deleted)


async def use_wukong_with_bridges(user: Client) -> None:
    await use_wukong(user)
    lan = wukong.Network(name="lan", type="bridge", physical_interface="eth1")
    disk = wukong.Disk(name="root", size="1Gi", storage_class_name="standard")
    names = ("first", "second")
    for name in names:
        spec = wukong.WukongSpec(cpu=1, disks=[disk], networks=[lan])
        await user.create(wukong.Wukong(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        await user.wait_for(wukong.Wukong, name, Field("status.phase").equals("Running"))
    for name in names:
        await user.delete(wukong.Wukong, name)
        await user.wait_for(wukong.Wukong, name, deleted)


class AnyRegistry:
    """Has every image."""

    host = "registry.local"

    async def tag(self, source: str, target: str) -> None: ...


class Operator(NamedTuple):
    """An operator, its kinds, and a use of it that has it do everything it does."""

    setup: Callable[[Manager], None]
    kinds: Sequence[DefinitionSource]
    use: Callable[[Client], Awaitable[None]]
    difference: str = ""
    """What is declared for undecodable objects only, and names, which are not recorded of every kind."""
    grants: Sequence[str] = ()
    """The kinds that it gives rights to others with."""
    namespace: str | None = "default"
    """Where it is used; None for more than one."""
    is_confined: bool = True
    """Whether it can work in some namespaces only."""
    others: Callable[[Manager], None] | None = None
    """Sets up the controllers of others that it depends on."""


OPERATORS = {
    "podmanager": Operator(podmanager.setup, [podmanager.PodManager], use_podmanager),
    "chaospod": Operator(chaospod.setup, [chaospod.ChaosPod], use_chaospod),
    "devbox": Operator(
        partial(devbox.setup, registry=AnyRegistry()), [devbox.Devbox, devbox.DevBoxRelease], use_devbox
    ),
    "builtins": Operator(
        builtins.setup,
        [builtins.PodSet],
        use_builtins,
        difference="declared and never used: create events.events.k8s.io\n"
        "declared and never used: patch events.events.k8s.io",
    ),
    "user": Operator(
        users.setup,
        [users.User, users.Operationrequest, users.Deleterequest],
        use_users,
        difference=f'declared and never used: delete configmaps "{RECORD}" in the namespace "{SYSTEM_NAMESPACE}"\n'
        f'declared and never used: get configmaps "{RECORD}" in the namespace "{SYSTEM_NAMESPACE}"\n'
        f'used and not declared: delete configmaps in the namespace "{SYSTEM_NAMESPACE}"\n'
        f'used and not declared: get configmaps in the namespace "{SYSTEM_NAMESPACE}"',
        grants=["rolebindings", "roles"],
        namespace=None,
        is_confined=False,
    ),
    "wukong": Operator(
        wukong.setup,
        [wukong.Wukong, wukong.WukongSnapshot, simulators.DEFINITIONS],
        use_wukong,
        others=simulators.setup,
    ),
    "wukong-with-bridges": Operator(
        partial(wukong.setup, options=wukong.Options(nmstate="before")),
        [wukong.Wukong, wukong.WukongSnapshot, simulators.DEFINITIONS],
        use_wukong_with_bridges,
        others=simulators.setup,
    ),
}


# Tests share a server, on which others may have installed them.
OTHER_VERSIONS = {"podmanager": [podmanager.PodManagerV1Beta1]}


async def prepare(operator: Operator, admin: Client) -> None:
    """Create what is deployed with the operator."""
    for obj in (await with_setup(Deployed(name="it", image="it:1"), operator.setup)).objects:
        await admin.apply(obj, force=True)


@pytest.mark.parametrize("name", OPERATORS)
def test_item_41_an_operator_uses_exactly_its_role(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """On the embedded control plane, of which the audit log is read; the operators' own tests run with it on both."""
    operator = OPERATORS[name]

    def made(client: Client) -> Manager:
        return Manager(client, election=LeaderElection(client, name, namespace="default"), webhook_address="0")

    async def main() -> None:
        needed = await declared_permissions(operator.setup, manager=made)
        async with (
            ControlPlane.embedded(definitions=operator.kinds) as plane,
            plane.client() as admin,
            AsyncExitStack() as running,
        ):
            await prepare(operator, admin)
            if operator.others is not None:
                others = Manager(admin, webhook_address="0")
                operator.others(others)
                await running.enter_async_context(others.running())
            async with restricted_client(plane, needed, user="operator") as own:
                manager = made(own)
                operator.setup(manager)
                async with manager.running():
                    await operator.use(admin.in_namespace(operator.namespace) if operator.namespace else admin)
                    await asyncio.sleep(2)  # events are written a little later
            used = recorded_permissions(plane.audit.events, "operator")
        warned = [warning.partition(":")[0] for warning in used.warnings]
        assert warned == [f"it writes {kind}" for kind in operator.grants]
        assert compare_permissions(needed, used.permissions) == operator.difference
        assert not [record.message for record in caplog.records if "is not permitted" in record.message]

    run_virtual(main)


@pytest.mark.parametrize("name", OPERATORS)
async def test_item_41_a_rule_that_is_missing_is_named(
    name: str,
    control_plane: ControlPlane,
    admin: Client,
    namespace: str,
    install: Install,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What an operator can do without is a warning, and everything else ends its start. Each rule is missed by a user
    of its own, some of them at the same time. What the flags of Deployments need is the same for all operators.
    """
    operator = OPERATORS[name]
    made = partial(as_deployed, namespace=namespace) if name == "podmanager" else partial(Manager, webhook_address="0")
    needed = [
        Permission(f"{group}/{resource}", *rule.verbs, namespace=where, name=named)
        for where, rules in rules_of(await declared_permissions(operator.setup, manager=made)).items()
        for rule in rules
        for group in rule.api_groups
        for resource in rule.resources
        for named in rule.resource_names or [""]
    ]
    await install(*operator.kinds, *OTHER_VERSIONS.get(name, ()))
    await prepare(operator, admin)
    at_once = asyncio.Semaphore(6)

    async def check(missing: Permission) -> None:
        async with at_once:
            rest = [each for each in needed if each is not missing]
            error = await error_with(control_plane, operator, rest, made)
        lacked = missing.resource
        assert (error == "") == lacked.path.endswith(("events", "/finalizers")), missing
        where = f'in the namespace "{missing.namespace}"' if missing.namespace else "at the cluster scope"
        found = error or "\n".join(record.message for record in caplog.records)
        assert f'"{missing.name}" of {lacked} is not permitted' in found or not missing.name
        assert f'resource "{lacked.path}" in API group "{lacked.group}" {where}' in found

    assert len(needed) > 3
    async with asyncio.TaskGroup() as group:
        for each in needed:
            group.create_task(check(each))


def as_deployed(client: Client, namespace: str) -> Manager:
    """With the flags of a Deployment."""
    return Manager(
        client,
        election=LeaderElection(client, "it", namespace=namespace),
        metrics_address="127.0.0.1:0",
        metrics_secure=True,
        webhook_address="127.0.0.1:0",
        webhook_service=f"{namespace}/it",
    )


async def error_with(
    plane: ControlPlane, operator: Operator, permitted: list[Permission], made: Callable[[Client], Manager]
) -> str:
    async with restricted_client(plane, permitted) as own:
        manager = made(own)
        operator.setup(manager)
        try:
            async with manager.running():
                await manager.synced()
        except KubernetesError as error:
            return str(error)
    return ""


async def test_the_roles_of_operators_are_accepted_by_both_servers(admin: Client, namespace: str) -> None:
    for operator in OPERATORS.values():
        await prepare(operator, admin)
        for namespaces in ([], [namespace]) if operator.is_confined else ([],):
            needed = await declared_permissions(operator.setup, manager=partial(Manager, namespaces=namespaces))
            for role in roles_of("it", needed):
                stored = await admin.create(role, dry_run=True, field_validation="Strict")
                assert stored.rules == role.rules
