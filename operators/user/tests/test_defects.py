"""What the original got wrong, one test for each."""

from __future__ import annotations

import asyncio
import base64

import pytest
from operators.user import User, UserSpec
from operators.user.kubeconfig import KEY
from operators.user.names import FINALIZER, OWNER
from operators.user.steps import pipeline
from operators.user.tests.deploying import is_accepted, operating, site, vacant

from kubewright import Client, Condition, Invalid, ObjectMeta
from kubewright.api.codec import encode
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.events.v1 import Event
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.patterns import get_condition
from kubewright.testing import count_requests, settled, virtual

ALICE = User(metadata=ObjectMeta(name="alice"))
HAS_CONDITIONS = Field("status.conditions").satisfies(bool, "is set")


def writes_a_namespace(target: Target) -> bool:
    return target.resource == "namespaces" and target.verb == "patch"


def conditions(user: User) -> dict[str, Condition]:
    return {condition.type: condition for condition in user.status.conditions}


@virtual
async def test_defect_1_a_step_that_fails_on_a_fresh_user_leaves_its_condition_and_the_user_is_not_active() -> None:
    async with site() as here:
        here.plane.faults.fail(writes_a_namespace, code=403, message="not today", times=None)
        await here.admin.create(ALICE)
        await here.admin.wait_for(ALICE, HAS_CONDITIONS)
        user = await here.admin.get(ALICE)
        failed = conditions(user)["NamespaceSyncReady"]
        assert (failed.status, failed.reason) == ("False", "Forbidden")
        assert "not today" in failed.message
        assert user.status.phase == "Pending"
        assert not pipeline.is_ready(user)
        here.plane.faults.clear()
        assert (await here.active(user)).status.phase == "Active"


@virtual
async def test_defect_2_only_a_change_of_its_status_changes_the_transition_time_of_a_condition() -> None:
    async with site() as here:
        first = conditions(await here.create())
        await asyncio.sleep(100)
        here.plane.faults.fail(lambda target: target.resource == "roles" and target.verb == "patch", times=1)
        await here.admin.patch(User, "alice", MergePatch({"metadata": {"annotations": {OWNER: "bob"}}}))
        await asyncio.sleep(100)
        await settled(here.manager)
        user = await here.admin.get(ALICE)
        then = conditions(user)
        assert {type: each.message for type, each in then.items()} == dict.fromkeys(first, "")
        flipped = {type for type in first if then[type].last_transition_time != first[type].last_transition_time}
        assert flipped == {"RoleSyncReady", "Ready"}
        with count_requests(here.own) as requests:
            await here.admin.patch(User, "alice", MergePatch({"metadata": {"annotations": {"a": "b"}}}))
            await asyncio.sleep(100)
        assert requests.writes == 0, "a reconcile that changes nothing writes nothing, not even a heartbeat"


@virtual
async def test_defect_3_the_kubeconfig_is_in_a_secret_and_not_in_the_status() -> None:
    async with site() as here:
        user = await here.create()
        text = base64.b64decode((await here.secret()).data[KEY]).decode()
        token = text.partition("token: ")[2].split()[0]
        assert token.count(".") == 2
        assert token.encode() not in encode(user)
        assert user.status.kube_config_secret is not None


@virtual
async def test_defect_4_no_token_is_minted_by_reconciles_that_need_none() -> None:
    async with site() as here:
        await here.create()
        issued, before = await here.secret(), here.reconciles
        for number in range(20):
            await here.admin.patch(User, "alice", MergePatch({"metadata": {"annotations": {"n": str(number)}}}))
            await settled(here.manager)
        async with operating(here.plane, here.admin, here.own) as restarted:
            await settled(restarted.manager)
            assert restarted.reconciles > 0
        assert here.reconciles - before >= 20
        assert await here.secret() == issued
        tokens = [event for event in here.plane.audit.events if event.subresource == "token"]
        assert len(tokens) == 1


@virtual
async def test_defect_5_foreign_finalizers_stay_and_one_that_is_there_is_not_written() -> None:
    async with vacant() as (plane, admin, own):
        metadata = ObjectMeta(name="alice", finalizers=["example.com/theirs"])
        await admin.create(User(metadata=metadata))
        async with operating(plane, admin, own) as here:
            user = await here.active(ALICE)
            assert user.metadata.finalizers == ["example.com/theirs", FINALIZER]
            await admin.patch(User, "alice", MergePatch({"metadata": {"finalizers": [FINALIZER, "example.com/late"]}}))
            with count_requests(own) as requests:
                await settled(here.manager)
            assert requests.writes == 0
            await admin.delete(ALICE)
            await asyncio.sleep(30)
            assert (await admin.get(ALICE)).metadata.finalizers == ["example.com/late"]


@virtual
async def test_defect_6_old_users_are_reconciled_after_a_restart_and_their_tokens_renewed() -> None:
    async with vacant() as (plane, admin, own):
        async with operating(plane, admin, own) as here:
            await here.create(spec=UserSpec(csr_expiration_seconds=4 * 3600))
            issued = await here.secret()
        await asyncio.sleep(3 * 3600)
        await admin.patch(Namespace, "ns-alice", MergePatch({"metadata": {"labels": {OWNER: None}}}))
        async with operating(plane, admin, own) as here:
            await settled(here.manager)
            assert (await admin.get(Namespace, "ns-alice")).metadata.labels[OWNER] == "alice"
            assert (await here.secret()).data == issued.data
            await asyncio.sleep(3600)
            assert (await here.secret()).data != issued.data
            assert await is_accepted(await here.kubeconfig())


async def readiness(admin: Client) -> tuple[str | None, ...]:
    user = await admin.get(User, "alice")
    ready = get_condition(user, "Ready")
    assert ready is not None
    return user.status.phase, ready.status, ready.reason, ready.message


@virtual
async def test_defect_7_a_user_stays_until_its_workspace_is_gone_and_an_error_is_not_ignored() -> None:
    async with site() as here:
        user = await here.create()
        kubeconfig = await here.kubeconfig()
        held = ConfigMap(metadata=ObjectMeta(name="held", namespace="ns-alice", finalizers=["example.com/held"]))
        await here.admin.create(held)
        here.plane.faults.fail(lambda target: (target.verb, target.resource) == ("delete", "namespaces"), times=None)
        await here.admin.delete(user)
        await asyncio.sleep(10)
        refused = "delete Namespace ns-alice: injected fault"
        assert await readiness(here.admin) == ("Pending", "False", "InternalError", refused)
        warnings = [event.note for event in await here.admin.list(Event) if event.type == "Warning"]
        assert warnings == [f"the deletion failed: {refused}"]
        here.plane.faults.clear()
        await asyncio.sleep(60)
        waiting = "the workspace ns-alice is being deleted"
        assert await readiness(here.admin) == ("Pending", "False", "Terminating", waiting)
        assert FINALIZER in (await here.admin.get(user)).metadata.finalizers
        assert not await is_accepted(kubeconfig), "who is deleted is out at once"
        await here.admin.patch(ConfigMap, held.key, MergePatch({"metadata": {"finalizers": None}}))
        await here.admin.wait_for(user, deleted, timeout=60)
        assert await here.admin.find(Namespace, "ns-alice") is None


@virtual
async def test_defect_7_a_workspace_that_is_gone_already_does_not_keep_the_user() -> None:
    async with vacant() as (plane, admin, own):
        async with operating(plane, admin, own) as here:
            user = await here.create()
        await admin.delete(Namespace, "ns-alice")
        await admin.wait_for(Namespace, "ns-alice", deleted)
        await admin.delete(user)
        async with operating(plane, admin, own):
            await admin.wait_for(user, deleted, timeout=5)


@virtual
async def test_defect_8_changed_labels_of_the_namespace_are_repaired() -> None:
    async with site() as here:
        await here.create()
        labels = (await here.admin.get(Namespace, "ns-alice")).metadata.labels
        broken = MergePatch({"metadata": {"labels": {OWNER: "mallory", "pod-security.kubernetes.io/enforce": None}}})
        await here.admin.patch(Namespace, "ns-alice", broken)
        await asyncio.sleep(1)
        assert (await here.admin.get(Namespace, "ns-alice")).metadata.labels == labels


@virtual
async def test_defect_9_steps_that_need_the_namespace_are_blocked_by_it_and_others_run() -> None:
    async with site() as here:
        here.plane.faults.fail(writes_a_namespace, code=403, times=None)
        await here.admin.create(ALICE)
        await here.admin.wait_for(ALICE, HAS_CONDITIONS)
        found = conditions(await here.admin.get(ALICE))
        for blocked in ("RoleSyncReady", "RoleBindingSyncReady"):
            assert (found[blocked].status, found[blocked].reason) == ("False", "Blocked")
            assert found[blocked].message == "blocked by NamespaceSyncReady"
        assert {found[each].status for each in ("ServiceAccountSyncReady", "KubeConfigSyncReady")} == {"True"}


@virtual
async def test_defect_10_a_name_that_does_not_fit_a_namespace_is_refused() -> None:
    async with site() as here:
        await here.admin.create(User(metadata=ObjectMeta(name="a" * 60)), dry_run=True)
        for name in ("a" * 61, "alice.smith"):
            with pytest.raises(Invalid, match="at most 60 characters and no dots"):
                await here.admin.create(User(metadata=ObjectMeta(name=name)), dry_run=True)


@virtual
async def test_defect_11_without_an_owner_annotation_the_label_has_the_name_of_the_user() -> None:
    """The webhooks, which would set it, are off in this test."""
    async with site() as here:
        for annotations in ({}, {OWNER: ""}):
            await here.admin.create(User(metadata=ObjectMeta(name=f"u{len(annotations)}", annotations=annotations)))
        await asyncio.sleep(5)
        for name in ("u0", "u1"):
            namespace = await here.admin.get(Namespace, f"ns-{name}")
            assert namespace.metadata.labels[OWNER] == namespace.metadata.annotations[OWNER] == name
