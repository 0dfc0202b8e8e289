"""Deleterequests: the whole operator on both control planes, under its role, and details in virtual time."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from unittest.mock import patch

import pytest
from operators.user import Options, User, setup
from operators.user.deletion import DeletionReconciler
from operators.user.deletion_gate import DeletionGate
from operators.user.membership import take_roles_elsewhere
from operators.user.names import (
    FINALIZER,
    KEEP_WORKSPACE,
    OWNER,
    RBAC,
    STATUS,
    SYSTEM_NAMESPACE,
    TYPE,
    kubeconfig_of,
    role_reference,
    subjects_of,
    workspace_of,
)
from operators.user.request_guard import Guard
from operators.user.tests.deploying import KINDS, SOON, deployed, vacant
from operators.user.tests.requesting import (
    Desk,
    deletion,
    desk,
    enforced,
    failing,
    operation,
    prepared,
    virtual_desk,
)

from kubewright import Client, ControlPlane, Field, Forbidden, Manager, ObjectMeta, condition, now
from kubewright.api.codec import encode
from kubewright.api.core.v1 import ConfigMap, Namespace, Secret, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import RoleBinding, RoleRef
from kubewright.client import MergePatch
from kubewright.client.errors import InternalError, Status
from kubewright.client.wait import deleted
from kubewright.patterns import Permanent
from kubewright.testing import Install, RecordedEvents, settled, unique_name, virtual

MARKED = {STATUS: "Deleted"}


@asynccontextmanager
async def operator(plane: ControlPlane, admin: Client, options: Options | None = None) -> AsyncIterator[Desk]:
    """The whole of it, at work."""
    async with deployed(plane) as own:
        await enforced(admin)
        manager = Manager(own, webhook_address="0")
        setup(manager, options)
        async with manager.running():
            yield Desk(plane, admin, own, manager)


@pytest.fixture
async def at(control_plane: ControlPlane, admin: Client, install: Install) -> AsyncIterator[Desk]:
    """The operator at work."""
    await install(*KINDS)
    async with operator(control_plane, admin) as running:
        yield running


async def user(at: Desk, name: str, **labels: str) -> User:
    """A User who has everything."""
    created = await at.admin.create(User(metadata=ObjectMeta(name=name, labels=labels)))
    await at.admin.wait_for(created, condition("Ready"), timeout=60)
    return created


async def test_item_89_a_user_is_deleted_with_workspace_and_the_roles_it_has_elsewhere(at: Desk) -> None:
    alice, bob = unique_name("alice"), unique_name("bob")
    await user(at, alice)
    await user(at, bob, **MARKED)
    await at.carried_out("Grant", bob, workspace_of(alice), "Owner")
    ended = await at.finished(await at.admin.create(deletion(bob)))
    assert (ended.status.phase, ended.status.message) == ("Completed", f"the User {bob} is gone")
    for gone in (
        User(metadata=ObjectMeta(name=bob)),
        Namespace(metadata=ObjectMeta(name=workspace_of(bob))),
        Secret(metadata=ObjectMeta(name=kubeconfig_of(bob), namespace=SYSTEM_NAMESPACE)),
        ServiceAccount(metadata=ObjectMeta(name=bob, namespace=SYSTEM_NAMESPACE)),
    ):
        assert await at.admin.find(gone) is None
    assert list(await at.roles(workspace_of(alice))) == [alice]
    assert (await at.admin.get(User, alice)).metadata.annotations[OWNER] == alice
    await at.admin.delete(User, alice)


async def test_item_89_the_workspace_is_kept_without_its_user(at: Desk) -> None:
    bob = unique_name("bob")
    await user(at, bob, **MARKED)
    kept = ConfigMap(metadata=ObjectMeta(name="content", namespace=workspace_of(bob)))
    await at.admin.create(kept)
    ended = await at.finished(await at.admin.create(deletion(bob, dependents=False)))
    assert (ended.status.phase, ended.status.message) == (
        "Completed",
        f"the User {bob} is gone, and {workspace_of(bob)} was kept",
    )
    assert await at.admin.find(User, bob) is None
    # The garbage collector has been there by then.
    await at.admin.wait_for(RoleBinding, bob, deleted, namespace=workspace_of(bob), timeout=SOON)
    namespace = await at.admin.get(Namespace, workspace_of(bob))
    assert (namespace.metadata.owner_references, namespace.metadata.deletion_timestamp) == ([], None)
    assert await at.admin.find(kept) is not None
    await at.admin.delete(namespace)


async def test_item_90_a_user_who_is_gone_already_is_no_error(at: Desk) -> None:
    """The original deleted the User again, got NotFound, and failed although everything was done."""
    bob = unique_name("bob")
    await user(at, bob, **{TYPE: "Group"})
    first, second = [await at.admin.create(deletion(bob)) for _ in range(2)]
    third = await at.finished(await at.admin.create(deletion(unique_name("never"))))
    ended = [await at.finished(each) for each in (first, second)]
    assert [each.status.phase for each in (*ended, third)] == ["Completed"] * 3


async def test_item_91_a_temporary_error_is_retried_and_a_permanent_one_fails_the_request(
    control_plane: ControlPlane, admin: Client, install: Install
) -> None:
    await install(*KINDS)
    options = Options(request_retry_time=timedelta(seconds=1))
    passing = InternalError(Status(code=500, reason="InternalError", message="etcd is away"), "delete Namespace")
    lasting = Forbidden(Status(code=403, reason="Forbidden", message="no"), "delete Namespace")
    async with operator(control_plane, admin, options) as at:
        for error, phase, message in (
            (passing, "Completed", "is gone"),
            (lasting, "Failed", "delete Namespace: no"),
        ):
            bob = unique_name("bob")
            created = await user(at, bob, **MARKED)
            with failing(at.own, error, path=f"/namespaces/{workspace_of(bob)}"):
                ended = await at.finished(await at.admin.create(deletion(bob)))
            assert ended.status.phase == phase
            assert message in ended.status.message
            await at.admin.delete(created, missing_ok=True)


# Details, in virtual time


@asynccontextmanager
async def virtual_operator(options: Options | None = None) -> AsyncIterator[Desk]:
    async with (
        ControlPlane.embedded(definitions=KINDS, nodes=0) as plane,
        plane.client() as admin,
        operator(plane, admin, options) as running,
    ):
        yield running


@virtual
async def test_a_user_who_is_not_marked_is_not_deleted() -> None:
    async with virtual_operator() as at:
        await user(at, "bob")
        created = await at.admin.create(deletion("bob"))
        await asyncio.sleep(10)
        waiting = await at.admin.get(created)
        assert waiting.status.phase == "Processing"
        ended = await at.finished(created)
        assert (ended.status.phase, ended.status.message) == (
            "Failed",
            "the User bob is not marked as deleted: it has neither the label user.sealos.io/status=Deleted nor "
            "user.sealos.io/type=Group",
        )
        assert (await at.admin.get(User, "bob")).status.phase == "Active"
        assert await at.admin.find(Secret, kubeconfig_of("bob"), namespace=SYSTEM_NAMESPACE) is not None


@virtual
async def test_a_user_who_is_marked_a_moment_later_is_deleted() -> None:
    async with virtual_operator() as at:
        await user(at, "bob")
        created = await at.admin.create(deletion("bob"))
        await asyncio.sleep(10)
        await at.admin.patch(User, "bob", MergePatch({"metadata": {"labels": MARKED}}))
        assert (await at.finished(created)).status.phase == "Completed"


@virtual
async def test_without_the_gate_every_user_can_be_deleted() -> None:
    async with virtual_operator(Options(deletion_gate=False)) as at:
        await user(at, "bob")
        assert (await at.finished(await at.admin.create(deletion("bob")))).status.phase == "Completed"


@virtual
async def test_a_user_whom_the_cache_does_not_show_yet_is_not_gone() -> None:
    """The request was Completed, and the User stayed."""
    async with vacant(prepared) as (plane, admin, own), desk(plane, admin, own) as at:
        await settled(at.manager)
        plane.faults.silence_open_watches(lambda target: target.resource == "users")
        await at.admin.create(User(metadata=ObjectMeta(name="bob", labels=MARKED)))
        ended = await at.finished(await at.admin.create(deletion("bob")))
        assert ended.status.phase == "Completed"
        assert await at.admin.find(User, "bob") is None


@virtual
async def test_admin_is_not_deleted_although_the_schema_was_bypassed() -> None:
    async with virtual_desk() as at:
        client = Manager(at.admin).client
        reconciler = DeletionReconciler(client, RecordedEvents(), Guard(client), DeletionGate())
        request = deletion("admin")
        with pytest.raises(Permanent, match="the User admin cannot be deleted"):
            await reconciler.carry_out(request)


@virtual
async def test_open_requests_of_a_user_who_is_deleted_fail() -> None:
    """One of them was being retried: it would have given the User a role again."""
    error = InternalError(Status(code=500, reason="InternalError", message="etcd is away"), "create RoleBinding")
    async with virtual_operator() as at:
        for name in ("alice", "bob"):
            await user(at, name, **MARKED)
        with failing(at.own, error, path="/namespaces/ns-alice/rolebindings"):
            retried = await at.ask("Grant", "bob", "ns-alice", "Owner")
            waiting = await at.ask("Update", "bob", "ns-alice", "Manager", name="z")
            await asyncio.sleep(5)
        assert [(await at.admin.get(each)).status.phase for each in (retried, waiting)] == ["Processing", "Pending"]
        created = await at.admin.create(deletion("bob", name="go"))
        ended = await at.finished(created)
        assert ended.status.phase == "Completed"
        assert ended.status.completion_time is not None
        assert created.metadata.creation_timestamp is not None
        took = ended.status.completion_time - created.metadata.creation_timestamp
        assert took < timedelta(seconds=20), "they do not wait for their next attempt"
        for request in (retried, waiting):
            status = (await at.admin.get(request)).status
            assert (status.phase, status.message) == ("Failed", "the User bob is being deleted by the Deleterequest go")
        assert list(await at.roles("ns-alice")) == ["alice"]


@virtual
async def test_a_user_stays_while_a_request_about_it_is_carried_out() -> None:
    async with virtual_desk() as at:
        await at.user("alice")
        await at.user("bob", **MARKED)
        async with at.operations.change_of("ns-alice"):
            slow = await at.ask("Grant", "bob", "ns-alice", "Developer", name="slow")
            created = await at.admin.create(deletion("bob"))
            await asyncio.sleep(10)
            waiting = (await at.admin.get(created)).status
            assert (waiting.phase, waiting.message) == ("Processing", "Operationrequests of bob are open: slow")
            assert (await at.admin.get(User, "bob")).metadata.deletion_timestamp is None
        ended = [(await at.finished(each)).status.phase for each in (created, slow)]
        assert ended == ["Completed", "Failed"]


@virtual
async def test_a_request_that_is_held_while_it_is_deleted_holds_no_deletion_up() -> None:
    """Nothing comes of it any more, and so it is never finished."""
    async with virtual_desk() as at:
        await at.user("bob", **MARKED)
        held = operation("Grant", "bob", "ns-nowhere", "Owner")
        held.metadata.finalizers = ["example.com/held"]
        await at.admin.delete(await at.admin.create(held))
        ended = await at.finished(await at.admin.create(deletion("bob")))
        assert (ended.status.phase, ended.status.message) == ("Completed", "the User bob is gone")


@virtual
async def test_requests_for_a_workspace_that_is_deleted_fail() -> None:
    async with virtual_operator() as at:
        for name in ("alice", "bob"):
            await user(at, name, **MARKED)
        holding = ConfigMap(metadata=ObjectMeta(name="held", namespace="ns-bob", finalizers=["example.com/held"]))
        await at.admin.create(holding)
        created = await at.admin.create(deletion("bob"))
        await asyncio.sleep(5)
        late = await at.carried_out("Grant", "alice", "ns-bob", "Developer")
        assert (late.status.phase, late.status.message) == ("Failed", "the workspace ns-bob is being deleted")
        waiting = (await at.admin.get(created)).status
        assert waiting.phase == "Processing"
        assert waiting.message.startswith("waiting until these are gone: the User bob, the namespace ns-bob (")
        assert "example.com/held" in waiting.message
        await at.admin.patch(ConfigMap, holding.key, MergePatch({"metadata": {"finalizers": None}}))
        assert (await at.finished(created)).status.phase == "Completed"


@virtual
async def test_what_is_left_is_said_when_the_time_is_up() -> None:
    async with virtual_operator() as at:
        await user(at, "bob", **MARKED)
        await at.admin.patch(
            User, "bob", MergePatch({"metadata": {"finalizers": ["sealos.io/user.finalizers", "example.com/held"]}})
        )
        ended = await at.finished(await at.admin.create(deletion("bob")))
        assert (ended.status.phase, ended.status.message) == (
            "Failed",
            "expired after 600 s: waiting until these are gone: the User bob",
        )


@virtual
async def test_a_namespace_that_is_not_the_users_own_stays() -> None:
    async with virtual_desk() as at:
        await at.admin.create(Namespace(metadata=ObjectMeta(name="ns-bob")))
        await at.admin.create(User(metadata=ObjectMeta(name="bob", labels=MARKED)))
        ended = await at.finished(await at.admin.create(deletion("bob")))
        assert (ended.status.phase, ended.status.message) == ("Completed", "the User bob is gone")
        assert (await at.admin.get(Namespace, "ns-bob")).metadata.deletion_timestamp is None


@pytest.mark.parametrize("is_taken", [False, True], ids=["given", "taken by hand"])
@virtual
async def test_roles_do_not_outlive_a_user_whose_dependents_are_orphaned(is_taken: bool) -> None:
    async with virtual_operator() as at:
        for name in ("alice", "bob"):
            await user(at, name)
        await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        if is_taken:
            await at.admin.delete(RoleBinding, "bob-Owner", namespace="ns-alice")
        await at.admin.delete(User, "bob", propagation="Orphan")
        await at.admin.wait_for(User, "bob", deleted, timeout=60)
        assert await at.roles("ns-alice") == {"alice": "workspace-owner"}
        assert (await at.admin.get(User, "alice")).metadata.annotations[OWNER] == "alice"


@virtual
async def test_a_workspace_that_gets_a_new_owner_meanwhile_stays_in_its_name() -> None:
    """A deletion names the User of a workspace as its owner again: it did so whoever was named by then."""
    async with vacant(prepared) as (_, admin, own):
        for name in ("alice", "carol"):
            await admin.create(User(metadata=ObjectMeta(name=name, annotations={OWNER: "bob"})))
        client = Manager(own).client
        write = client.patch

        async def granted(user: User) -> User:
            await admin.patch(User, "carol", MergePatch({"metadata": {"annotations": {OWNER: "dave"}}}))
            return await write(user)

        with patch.object(client, "patch", granted):
            await take_roles_elsewhere(client, "bob")
        owners = {each.metadata.name: each.metadata.annotations[OWNER] for each in await admin.list(User)}
        assert owners == {"alice": "alice", "carol": "dave"}


@virtual
async def test_a_user_who_was_created_after_the_request_stays() -> None:
    """A request may be carried out late: that a process was away is no reason to delete another User of that name."""
    async with virtual_desk() as at:
        client, early = at.manager.client, deletion("bob")
        early.metadata.creation_timestamp = now()
        await asyncio.sleep(2)
        await at.user("bob", **MARKED)
        with pytest.raises(Permanent, match="the User bob was created after this request"):
            await DeletionReconciler(client, RecordedEvents(), Guard(client), DeletionGate()).act(early)
        assert (await at.admin.get(User, "bob")).metadata.deletion_timestamp is None


@pytest.mark.parametrize("is_requested", [False, True])
@virtual
async def test_roles_by_bindings_without_label_and_owner_do_not_outlive_their_user(is_requested: bool) -> None:
    """Those of the seed, or one that has lost both: a User who was created again by that name had the role."""
    async with virtual_operator() as at:
        for name in ("alice", "bob"):
            await user(at, name, **MARKED)
        metadata = ObjectMeta(name="bob-Manager", namespace="ns-alice")
        reference = RoleRef(api_group=RBAC, kind="Role", name="Manager")
        await at.admin.create(RoleBinding(metadata=metadata, role_ref=reference, subjects=subjects_of("bob")))
        metadata = ObjectMeta(name="bob-Owner", namespace="ns-alice")
        foreign = RoleRef(api_group=RBAC, kind="ClusterRole", name="view")
        await at.admin.create(RoleBinding(metadata=metadata, role_ref=foreign, subjects=subjects_of("bob")))
        await (at.admin.create(deletion("bob")) if is_requested else at.admin.delete(User, "bob"))
        await at.admin.wait_for(User, "bob", deleted, timeout=60)
        assert await at.roles("ns-alice") == {"alice": "workspace-owner", "bob-Owner": "view"}


@virtual
async def test_bindings_that_only_have_the_label_of_the_user_stay() -> None:
    async with virtual_desk() as at:
        await at.user("alice")
        await at.user("bob", **MARKED)
        system = (await at.admin.list(RoleBinding, namespace="kube-system"))[0].role_ref
        stay: list[RoleBinding] = []
        for namespace, role in (("kube-system", system), ("default", role_reference("Manager"))):
            metadata = ObjectMeta(name="foreign", namespace=namespace, labels={OWNER: "bob"})
            stay.append(await at.admin.create(RoleBinding(metadata=metadata, role_ref=role)))
        await at.finished(await at.admin.create(deletion("bob")))
        for binding in stay:
            assert await at.admin.find(binding) is not None


@pytest.mark.parametrize(
    "path",
    ["/namespaces/ns-alice/rolebindings/bob-Developer", "/secrets/token-of-bob", "/namespaces/ns-bob", "/users/bob"],
)
@virtual
async def test_a_failure_in_the_middle_leaves_orphans_with_no_owner_to_retry_from(path: str) -> None:
    """It did: the request is where a deletion is retried from, and does not fail on what may pass."""
    async with virtual_operator() as at:
        await user(at, "alice")
        await user(at, "bob", **MARKED)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        metadata = ObjectMeta(name="token-of-bob", namespace=SYSTEM_NAMESPACE, labels={OWNER: "bob"})
        await at.admin.create(Secret(metadata=metadata))
        error = InternalError(Status(code=500, reason="InternalError", message="etcd is away"), f"delete {path}")
        with failing(at.own, error, path=path):
            created = await at.admin.create(deletion("bob"))
            failed = Field("status.message").equals(str(error))
            assert await at.admin.wait_for(created, failed, timeout=10) is not None
        ended = await at.finished(created)
        assert (ended.status.phase, ended.status.attempts) == ("Completed", 2)
        assert list(await at.roles("ns-alice")) == ["alice"]


@virtual
async def test_a_failed_deletion_is_not_run_again_and_goes_after_its_time() -> None:
    """The seed ran it at each reconcile, never deleted it, and said nothing about why it failed."""
    async with virtual_desk(Options(request_grace_time=timedelta(0))) as at:
        await at.user("bob")
        failed = await at.finished(await at.admin.create(deletion("bob")))
        assert failed.status.phase == "Failed"
        assert "is not marked" in failed.status.message
        await at.admin.patch(User, "bob", MergePatch({"metadata": {"labels": MARKED}}))
        await asyncio.sleep(60)
        assert await at.admin.find(User, "bob") is not None
        await asyncio.sleep(3600)
        assert await at.admin.find(failed) is None


@virtual
async def test_a_user_that_was_to_be_kept_from_earlier_is_deleted_whole_now() -> None:
    async with virtual_operator() as at:
        await user(at, "bob", **MARKED)
        kept = {"annotations": {KEEP_WORKSPACE: "true"}, "finalizers": [FINALIZER, "example.com/held"]}
        await at.admin.patch(User, "bob", MergePatch({"metadata": kept}))
        created = await at.admin.create(deletion("bob"))
        await asyncio.sleep(5)
        there = await at.admin.get(User, "bob")
        assert there.metadata.deletion_timestamp is not None
        assert KEEP_WORKSPACE not in there.metadata.annotations, "or its finalizer might be faster than the request"
        await at.admin.patch(User, "bob", MergePatch({"metadata": {"finalizers": None}}))
        ended = await at.finished(created)
        assert ended.status.message == "the User bob is gone"
        assert await at.admin.find(Namespace, "ns-bob") is None


@virtual
async def test_a_user_whose_deletion_has_begun_is_deleted_although_its_mark_is_gone() -> None:
    async with virtual_operator() as at:
        created = await user(at, "bob")
        await at.admin.patch(User, "bob", MergePatch({"metadata": {"finalizers": [FINALIZER, "example.com/held"]}}))
        await at.admin.delete(created)
        request = await at.admin.create(deletion("bob"))
        await asyncio.sleep(60)
        assert (await at.admin.get(request)).status.message == "waiting until these are gone: the User bob"
        await at.admin.patch(User, "bob", MergePatch({"metadata": {"finalizers": None}}))
        assert (await at.finished(request)).status.phase == "Completed"


@virtual
async def test_no_token_of_a_user_who_is_deleted_is_seen(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.NOTSET)
    async with virtual_operator() as at:
        await user(at, "bob", **MARKED)
        secret = await at.admin.get(Secret, kubeconfig_of("bob"), namespace=SYSTEM_NAMESPACE)
        (token,) = re.findall(r"token\W+([-\w.]+)", base64.b64decode(secret.data["kubeconfig"]).decode())
        ended = await at.finished(await at.admin.create(deletion("bob")))
        events = await at.admin.list(Event)
    for text in (caplog.text, encode(ended).decode(), *(encode(event).decode() for event in events)):
        assert token not in text
        assert secret.data["kubeconfig"] not in text
