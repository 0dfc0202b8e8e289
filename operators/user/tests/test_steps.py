"""Each step alone, and what keeps it from succeeding. In virtual time, on the embedded control plane."""

from __future__ import annotations

import asyncio

import pytest
from operators.user import Options, User
from operators.user import steps as user_steps
from operators.user.context import UserContext
from operators.user.kubeconfig import public_config
from operators.user.names import (
    CREATOR,
    KEEP_WORKSPACE,
    OWNER,
    ROLE_NAMES,
    SYSTEM_NAMESPACE,
    cluster_role_of,
    kubeconfig_of,
    role_reference,
)
from operators.user.tests.deploying import Site, is_accepted, operating, site, vacant

from kubewright import Client, Manager, ObjectMeta, condition
from kubewright.api.core.v1 import ConfigMap, Namespace, Secret, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import ClusterRole, PolicyRule, Role, RoleBinding
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.patterns import NotYet, Pipeline, get_condition
from kubewright.testing import RecordedEvents, settled, virtual

ALICE = User(metadata=ObjectMeta(name="alice"))
PRIVILEGED = "pod-security.kubernetes.io/enforce"


async def context_of(admin: Client, own: Client, name: str = "alice") -> UserContext:
    """That of one reconcile of a new User, without a controller: everything is read from the server."""
    user = await admin.create(User(metadata=ObjectMeta(name=name)))
    made = UserContext(user, Manager(own).client, RecordedEvents())
    made.config = public_config(own.config, "")
    return made


async def reason(here: Site[EmbeddedControlPlane], type: str) -> tuple[str, str]:
    """Why a step did not succeed, in the end."""
    await here.admin.wait_for(ALICE, condition(type, "False"), timeout=60)
    found = get_condition(await here.admin.get(ALICE), type)
    assert found is not None
    return found.reason, found.message


@virtual
async def test_item_45_each_step_runs_alone_and_twice() -> None:
    async with vacant() as (_, admin, own):
        context = await context_of(admin, own)
        for each in user_steps.pipeline.steps:
            await each(context)
            await each(context)
        assert await admin.find(Namespace, "ns-alice") is not None
        assert len(await admin.list(Role, namespace="ns-alice")) == 3
        assert context.next_change is not None
        assert context.object.status.conditions == [], "conditions are the pipeline's"


@virtual
async def test_item_45_a_step_is_used_in_another_pipeline() -> None:
    async with vacant() as (_, admin, own):
        context = await context_of(admin, own)
        reordered = Pipeline[UserContext](
            user_steps.initialize, user_steps.service_account, user_steps.namespace, ready=None
        )
        await reordered.run(context)
        assert [each.type for each in context.object.status.conditions] == [
            "Initialized",
            "ServiceAccountSyncReady",
            "NamespaceSyncReady",
        ]


@virtual
async def test_the_system_namespace_is_created_when_it_is_missing() -> None:
    async with vacant() as (_, admin, _own):
        await admin.delete(Namespace, SYSTEM_NAMESPACE)
        await admin.wait_for(Namespace, SYSTEM_NAMESPACE, deleted)
        context = await context_of(admin, admin)  # its roles are deployed to that namespace, and gone with it
        await user_steps.service_account(context)
        assert await admin.find(ServiceAccount, "alice", namespace=SYSTEM_NAMESPACE) is not None


@virtual
async def test_a_namespace_that_was_there_before_is_not_taken_over_and_when_it_is_gone_the_user_gets_its_own() -> None:
    async with site() as here:
        foreign = await here.admin.create(Namespace(metadata=ObjectMeta(name="ns-alice", labels={"a": "b"})))
        await here.admin.create(ALICE)
        taken = "the Namespace ns-alice exists already and is no User's"
        why, message = await reason(here, "NamespaceSyncReady")
        assert (why, taken in message) == ("NameTaken", True)
        assert (await here.admin.get(foreign)).metadata.labels == foreign.metadata.labels
        await asyncio.sleep(1800)
        warnings = [each for each in await here.admin.list(Event) if each.type == "Warning"]
        assert len(warnings) == 1, "one event per change, however often it was tried"
        await here.admin.delete(foreign)
        await asyncio.sleep(60)
        assert (await here.admin.get(ALICE)).status.phase == "Active"


@virtual
async def test_a_namespace_that_the_cache_does_not_show_yet_is_not_taken_over() -> None:
    async with site() as here:
        await settled(here.manager)
        here.plane.faults.silence_open_watches(lambda target: target.resource == "namespaces")
        foreign = await here.admin.create(Namespace(metadata=ObjectMeta(name="ns-alice")))
        await here.admin.create(ALICE)
        why, _ = await reason(here, "NamespaceSyncReady")
        assert why == "NameTaken"
        assert (await here.admin.get(foreign)).metadata.owner_references == []


@virtual
async def test_a_service_account_that_was_there_before_is_not_given_to_a_user() -> None:
    """A User called `default`, or as the operator, would else get a token of that service account."""
    async with vacant() as (_, admin, own):
        await admin.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace=SYSTEM_NAMESPACE)))
        for name in ("default", "robot"):
            context = await context_of(admin, own, name)
            with pytest.raises(NotYet, match=f"the ServiceAccount user-system/{name} exists already"):
                await user_steps.service_account(context)
            with pytest.raises(NotYet):
                await user_steps.pipeline.run(context)
            assert await admin.list(RoleBinding, namespace=f"ns-{name}") == []


@virtual
async def test_what_an_earlier_user_of_the_name_had_is_waited_for_and_not_taken_over() -> None:
    async with vacant() as (_, admin, own):
        earlier = await admin.create(ALICE)
        await admin.delete(earlier)
        metadata = ObjectMeta(name="alice", namespace=SYSTEM_NAMESPACE, owner_references=[earlier.as_owner()])
        metadata.finalizers = ["example.com/slow"]
        await admin.create(ServiceAccount(metadata=metadata))
        context = await context_of(admin, own)
        with pytest.raises(NotYet, match="is that of an earlier User of this name"):
            await user_steps.service_account(context)


@virtual
async def test_a_workspace_that_is_being_deleted_is_waited_for_and_made_again() -> None:
    async with site() as here:
        user = await here.create()
        held = ConfigMap(metadata=ObjectMeta(name="held", namespace="ns-alice", finalizers=["example.com/held"]))
        await here.admin.create(held)
        await here.admin.delete(Namespace, "ns-alice")
        assert await reason(here, "NamespaceSyncReady") == (
            "Terminating",
            "the Namespace ns-alice is being deleted",
        )
        await here.admin.patch(ConfigMap, held.key, MergePatch({"metadata": {"finalizers": None}}))
        await here.active(user)
        assert len(await here.admin.list(Role, namespace="ns-alice")) == 3


@virtual
async def test_a_binding_to_another_role_is_replaced() -> None:
    async with vacant() as (plane, admin, own):
        async with operating(plane, admin, own) as here:
            await here.create()
        binding = await admin.get(RoleBinding, "alice", namespace="ns-alice")
        await admin.delete(binding)
        binding.role_ref = role_reference("Developer")
        binding.metadata.resource_version, binding.metadata.finalizers = "", ["example.com/held"]
        await admin.create(binding)
        async with operating(plane, admin, own) as here:
            await settled(here.manager)
        assert (await admin.get(binding)).role_ref == role_reference("Owner")


@virtual
async def test_a_member_does_not_keep_the_binding_of_the_user_or_a_role_by_giving_it_another_controller() -> None:
    """Who may write role bindings could lock the User out: what something else controls is not changed."""
    async with site() as here:
        user = await here.create()
        mine = await here.admin.create(ConfigMap(metadata=ObjectMeta(name="mine", namespace="ns-alice")))
        binding = await here.admin.get(RoleBinding, "alice", namespace="ns-alice")
        role = await here.admin.get(Role, "Manager", namespace="ns-alice")
        subjects, binding.subjects, role.rules = binding.subjects, [], []
        for taken in (binding, role):
            taken.metadata.owner_references = [mine.as_owner(), user.as_owner(controller=False)]
            await here.admin.update(taken)
        await here.active(user)
        repaired = await here.admin.get(binding)
        assert repaired.subjects == subjects
        assert (await here.admin.get(role)).rules != []
        assert [owner.uid for owner in repaired.metadata.owner_references if owner.controller] == [user.metadata.uid]


@virtual
async def test_without_a_cluster_role_no_user_is_active_and_when_it_is_there_every_user_is() -> None:
    async with site() as here:
        lost = await here.admin.get(ClusterRole, cluster_role_of("Owner"))
        await here.admin.delete(lost)
        await here.admin.create(ALICE)
        why, message = await reason(here, "RoleBindingSyncReady")
        assert (why, message) == (
            "RoleMissing",
            "the ClusterRole workspace-owner does not exist: apply the manifests of the operator again",
        )
        assert (await here.admin.get(ALICE)).status.phase == "Pending"
        lost.metadata.resource_version = ""
        await here.admin.create(lost)
        await asyncio.sleep(1)
        assert (await here.admin.get(ALICE)).status.phase == "Active"


@virtual
async def test_another_meaning_of_a_cluster_role_is_that_of_the_roles_in_all_workspaces() -> None:
    async with site() as here:
        for name in ("alice", "bob"):
            await here.create(name)
        role = await here.admin.get(ClusterRole, cluster_role_of("Developer"))
        role.rules = [
            PolicyRule(api_groups=["devbox.sealos.io"], resources=["devboxes"], verbs=["get"]),
            PolicyRule(non_resource_urls=["/healthz"], verbs=["get"]),
        ]
        await here.admin.update(role)
        await asyncio.sleep(1)
        for workspace in ("ns-alice", "ns-bob"):
            assert (await here.admin.get(Role, "Developer", namespace=workspace)).rules == role.rules[:1]


@virtual
async def test_the_owner_of_a_workspace_may_be_another_user() -> None:
    async with site() as here:
        await here.create()
        await here.admin.patch(User, "alice", MergePatch({"metadata": {"annotations": {OWNER: "bob"}}}))
        await asyncio.sleep(1)
        namespace = await here.admin.get(Namespace, "ns-alice")
        assert (namespace.metadata.labels[OWNER], namespace.metadata.annotations[CREATOR]) == ("bob", "alice")


@virtual
async def test_privileged_users_have_workspaces_without_pod_security() -> None:
    async with site(Options(privileged_user=["admin"])) as here:
        for name, level in (("admin", None), ("alice", "baseline")):
            await here.create(name)
            namespace = await here.admin.get(Namespace, f"ns-{name}")
            assert namespace.metadata.labels.get(PRIVILEGED) == level


@virtual
async def test_a_new_user_waits_for_the_quota_and_is_never_asked_about_again() -> None:
    asked: list[str] = []
    limit = 1

    async def quota(user: User) -> str | None:
        asked.append(user.metadata.name)
        return None if len(set(asked)) <= limit else f"there are {limit} users already"

    async with site(quota=quota) as here:
        first = await here.create("first")
        await here.admin.create(ALICE)
        assert await reason(here, "Initialized") == ("QuotaExceeded", "there are 1 users already")
        await asyncio.sleep(600)
        user = await here.admin.get(ALICE)
        assert user.status.phase == "Pending"
        blocked = get_condition(user, "NamespaceSyncReady")
        assert blocked is not None
        assert blocked.message == "blocked by Initialized"
        assert await here.admin.find(Namespace, "ns-alice") is None
        warnings = [each for each in await here.admin.list(Event) if each.reason == "QuotaExceeded"]
        assert [(each.type, each.note) for each in warnings] == [
            ("Warning", "initialize failed: there are 1 users already")
        ]
        limit = 2
        await asyncio.sleep(65)
        assert (await here.admin.get(ALICE)).status.phase == "Active"
        count = len(asked)
        limit = 0
        for name in ("first", "alice"):
            await here.admin.patch(User, name, MergePatch({"spec": {"csrExpirationSeconds": 7200}}))
        await asyncio.sleep(60)
        assert len(asked) == count
        assert (await here.admin.get(first)).status.observed_csr_expiration_seconds == 7200


@virtual
async def test_a_deleted_user_leaves_its_workspace_behind_when_it_is_annotated_so_and_a_new_one_takes_it_over() -> None:
    async with site() as here:
        user = await here.create()
        await here.admin.create(ConfigMap(metadata=ObjectMeta(name="kept", namespace="ns-alice")))
        await here.admin.patch(User, "alice", MergePatch({"metadata": {"annotations": {KEEP_WORKSPACE: "true"}}}))
        await here.delete(user)
        await asyncio.sleep(300)  # for the garbage collector
        kept = await here.admin.get(Namespace, "ns-alice")
        assert kept.metadata.owner_references == []
        assert {each.metadata.name for each in await here.admin.list(Role, namespace="ns-alice")} == set(ROLE_NAMES)
        assert await here.admin.list(RoleBinding, namespace="ns-alice") == []
        assert await here.admin.list(Secret, namespace=SYSTEM_NAMESPACE) == []
        assert await here.admin.find(ServiceAccount, "alice", namespace=SYSTEM_NAMESPACE) is None

        again = await here.create()
        workspace = await here.admin.get(Namespace, "ns-alice")
        assert workspace.metadata.uid == kept.metadata.uid
        assert workspace.metadata.owner_references[0].uid == again.metadata.uid
        assert await here.admin.find(ConfigMap, "kept", namespace="ns-alice") is not None


@virtual
async def test_the_rights_of_a_user_go_although_its_dependents_were_orphaned_before_the_operator_was_asked() -> None:
    async with vacant() as (plane, admin, own):
        async with operating(plane, admin, own) as here:
            user = await here.create()
            kubeconfig = await here.kubeconfig()
        await admin.delete(user, propagation="Orphan")
        await asyncio.sleep(60)  # for the garbage collector
        assert (await admin.get(Namespace, "ns-alice")).metadata.owner_references == []
        async with operating(plane, admin, own) as here:
            await admin.wait_for(user, deleted, timeout=60)
            assert not await is_accepted(kubeconfig)
            assert await admin.find(ServiceAccount, "alice", namespace=SYSTEM_NAMESPACE) is None
            assert await admin.list(RoleBinding, namespace="ns-alice") == []
            assert len(await admin.list(Role, namespace="ns-alice")) == 3
            await here.create()


@virtual
async def test_a_workspace_that_is_orphaned_stays_although_the_deletion_is_seen_late() -> None:
    async with site() as here:
        user = await here.create()
        here.plane.faults.silence_open_watches(lambda target: target.resource == "users")
        await here.admin.delete(user, propagation="Orphan")
        await here.admin.wait_for(user, deleted, timeout=7200)
        await asyncio.sleep(60)
        workspace = await here.admin.get(Namespace, "ns-alice")
        assert (workspace.metadata.deletion_timestamp, workspace.metadata.owner_references) == (None, [])


@virtual
async def test_a_user_whose_name_was_taken_deletes_nothing_of_the_others() -> None:
    async with site() as here:
        foreign = [
            await here.admin.create(each)
            for each in (
                Namespace(metadata=ObjectMeta(name="ns-alice")),
                RoleBinding(metadata=ObjectMeta(name="alice", namespace="ns-alice"), role_ref=role_reference("Owner")),
                ServiceAccount(metadata=ObjectMeta(name="alice", namespace=SYSTEM_NAMESPACE)),
                Secret(metadata=ObjectMeta(name=kubeconfig_of("alice"), namespace=SYSTEM_NAMESPACE)),
            )
        ]
        await here.admin.create(ALICE)
        await reason(here, "NamespaceSyncReady")
        await here.delete(ALICE)
        for each in foreign:
            found = await here.admin.get(each)
            assert (found.metadata.uid, found.metadata.deletion_timestamp) == (each.metadata.uid, None)


@virtual
async def test_a_reconcile_that_lost_a_race_says_nothing_about_the_phase() -> None:
    async with site() as here:
        await here.create()
        lost = "the object has been modified; please apply your changes to the latest version and try again"
        phases: list[str] = []
        here.plane.faults.fail(
            lambda target: target.verb == "patch" and target.resource == "secrets", code=409, message=lost
        )
        async with here.admin.watch(User) as watched:
            await here.admin.patch(User, "alice", MergePatch({"spec": {"csrExpirationSeconds": 7200}}))
            async for event in watched:
                if event.type != "BOOKMARK":
                    phases.append(event.object.status.phase)
                if event.object.status.observed_csr_expiration_seconds == 7200:
                    break
        assert set(phases) == {"Active"}
