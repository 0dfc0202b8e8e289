"""How Operationrequests are carried out, in virtual time; the weaknesses of the seed are numbered as in its review."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from operators.user import Operationrequest, Options, User
from operators.user.deletion_gate import DeletionGate
from operators.user.names import OWNER, RBAC, STATUS, SYSTEM_NAMESPACE, RoleName, role_reference, subjects_of
from operators.user.operations import OperationReconciler
from operators.user.request_guard import Guard
from operators.user.tests.deploying import vacant
from operators.user.tests.requesting import (
    Desk,
    Send,
    deletion,
    desk,
    failing,
    intercepted,
    operation,
    prepared,
    virtual_desk,
)

from kubewright import Manager, ObjectMeta, now
from kubewright.api.core.v1 import Namespace
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import RoleBinding, RoleRef, Subject
from kubewright.client import MergePatch
from kubewright.client.errors import InternalError, Status
from kubewright.patterns import Permanent
from kubewright.testing import RecordedEvents, count_requests, settled, virtual

AWAY = InternalError(Status(code=500, reason="InternalError", message="etcd is away"), "write")


async def people(at: Desk, *names: str) -> None:
    for name in names or ("alice", "bob"):
        await at.user(name)


def reconciler(at: Desk) -> OperationReconciler:
    """One that reads from the server."""
    client = Manager(at.own, namespaces=[SYSTEM_NAMESPACE]).client
    return OperationReconciler(client, RecordedEvents(), Guard(client), DeletionGate())


# The weaknesses of the seed


@virtual
async def test_weakness_1_a_request_that_failed_is_no_error_and_is_not_tried_again() -> None:
    async with virtual_desk() as at:
        await people(at)
        ended = await at.carried_out("Grant", "nobody", "ns-alice", "Developer")
        before = await at.admin.get(ended)
        await at.admin.create(User(metadata=ObjectMeta(name="nobody")))
        await asyncio.sleep(600)
        assert await at.admin.get(ended) == before
        assert sum(controller.statistics.errors for controller in at.manager.controllers) == 0


@virtual
async def test_weakness_2_a_binding_that_does_not_exist_is_created_with_its_name() -> None:
    async with virtual_desk() as at:
        await people(at)
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Developer")).status.phase == "Completed"
        assert await at.roles("ns-alice") == {"bob-Developer": "workspace-developer"}


@pytest.mark.parametrize("path", ["/rolebindings", "/users/bob", "/namespaces/ns-alice"])
@virtual
async def test_weakness_3_an_error_of_reading_is_not_taken_for_absence(path: str) -> None:
    async with virtual_desk() as at:
        await people(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        request = await at.admin.create(operation("Update", "bob", "ns-alice", "Manager"), dry_run=True)
        with failing(at.own, AWAY, method="GET", path=path), pytest.raises(InternalError):
            await reconciler(at).act(request)
        assert await at.roles("ns-alice") == {"bob-Developer": "workspace-developer"}


@virtual
async def test_weakness_4_a_binding_that_refers_to_another_role_is_replaced() -> None:
    """What a binding refers to cannot be changed: the server refuses it."""
    async with virtual_desk() as at:
        await people(at)
        metadata = ObjectMeta(name="bob-Developer", namespace="ns-alice")
        await at.admin.create(RoleBinding(metadata=metadata, role_ref=role_reference("Manager")))
        status = (await at.carried_out("Grant", "bob", "ns-alice", "Developer")).status
        assert (status.phase, status.attempts) == ("Completed", 1)
        assert status.message == "bob is Developer of ns-alice now"
        binding = await at.admin.get(RoleBinding, "bob-Developer", namespace="ns-alice")
        assert (binding.role_ref, binding.subjects) == (role_reference("Developer"), subjects_of("bob"))


@pytest.mark.parametrize("others", [["eve"], []])
@virtual
async def test_weakness_5_all_subjects_are_compared(others: list[str]) -> None:
    async with virtual_desk() as at:
        await people(at)
        added = [Subject(api_group="rbac.authorization.k8s.io", kind="User", name=name) for name in others]
        metadata = ObjectMeta(name="bob-Developer", namespace="ns-alice", labels={OWNER: "bob"})
        subjects = [subjects_of("bob")[0], *added]
        await at.admin.create(RoleBinding(metadata=metadata, role_ref=role_reference("Developer"), subjects=subjects))
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        assert (await at.admin.get(RoleBinding, "bob-Developer", namespace="ns-alice")).subjects == subjects_of("bob")


@virtual
async def test_weakness_6_completed_and_failed_requests_live_for_an_hour_and_not_two() -> None:
    async with virtual_desk() as at:
        await people(at)
        for user in ("bob", "nobody"):
            ended = await at.carried_out("Grant", user, "ns-alice", "Developer")
            await asyncio.sleep(1800)
            await at.admin.patch(Operationrequest, ended.key, MergePatch({"metadata": {"labels": {"a": "b"}}}))
            await asyncio.sleep(1790)
            assert await at.admin.find(ended) is not None
            await asyncio.sleep(15)
            assert await at.admin.find(ended) is None


@virtual
async def test_weakness_7_an_end_that_could_not_be_stored_is_not_lost() -> None:
    async with virtual_desk() as at:
        await people(at)
        for number in (1, 2):
            with failing(at.own, AWAY, at=number, path="/status"):
                ended = await at.carried_out("Grant", "nobody", "ns-alice", "Developer")
            assert (ended.status.phase, ended.status.message) == ("Failed", "there is no User nobody")


@virtual
async def test_weakness_8_what_was_begun_is_done_again_safely() -> None:
    async with virtual_desk() as at:
        await people(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        for action, role, expected in (
            ("Update", "Manager", {"bob-Manager": "workspace-manager"}),
            ("Deprive", None, {}),
        ):
            request = operation(action, "bob", "ns-alice", role)  # type: ignore[arg-type]  # both are known
            for _ in range(2):
                await reconciler(at).carry_out(request)
            assert await at.roles("ns-alice") == expected


@virtual
async def test_weakness_9_a_failure_is_recorded_as_one_and_stored(tmp_path_factory: pytest.TempPathFactory) -> None:
    path: Path = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    async with virtual_desk(Options(audit_file=path)) as at:
        await people(at)
        ended = await at.carried_out("Grant", "nobody", "ns-alice", "Developer")
        assert ended.status.phase == "Failed"
    end = msgspec.json.decode(path.read_text().splitlines()[-1])
    assert (end["phase"], end["message"]) == ("Failed", "there is no User nobody")


@virtual
async def test_weakness_10_roles_are_updated_and_taken() -> None:
    async with virtual_desk() as at:
        await people(at)
        created = await at.carried_out("Update", "bob", "ns-alice", "Developer")
        assert created.status.message == "bob is Developer of ns-alice now, and had no role before"
        await at.carried_out("Update", "bob", "ns-alice", "Manager")
        other = await at.carried_out("Deprive", "bob", "ns-alice", "Developer")
        assert other.status.message == "bob has no role Developer in ns-alice"
        assert await at.roles("ns-alice") == {"bob-Manager": "workspace-manager"}
        await at.carried_out("Deprive", "bob", "ns-alice", "Manager")
        assert await at.roles("ns-alice") == {}


@virtual
async def test_weakness_12_retries_are_no_events() -> None:
    async with virtual_desk() as at:
        await people(at, "alice")
        created = await at.ask("Grant", "late", "ns-alice", "Developer")
        await asyncio.sleep(21)
        await at.user("late")
        ended = await at.finished(created)
        assert ended.status.phase == "Completed"
        await asyncio.sleep(5)
        events = [each.reason for each in await at.admin.list(Event, namespace=SYSTEM_NAMESPACE)]
        assert events == ["OperationCompleted"]


# Owners


@virtual
async def test_an_owner_is_named_in_the_annotation_of_the_workspaces_user_as_long_as_it_is_one() -> None:
    async with virtual_desk() as at:
        await people(at)

        async def owner() -> str | None:
            return (await at.admin.get(User, "alice")).metadata.annotations.get(OWNER)

        assert await owner() is None, "there need not be any annotation"
        await at.carried_out("Grant", "alice", "ns-alice", "Owner")
        assert await owner() == "alice"
        for action, role, expected in (
            ("Grant", "Owner", "bob"),
            ("Update", "Owner", "bob"),
            ("Update", "Manager", "alice"),
            ("Update", "Owner", "bob"),
            ("Deprive", None, "alice"),
            ("Grant", "Owner", "bob"),
            ("Deprive", "Owner", "alice"),
        ):
            await give_alice_her_binding(at)
            ended = await at.carried_out(action, "bob", "ns-alice", role)  # type: ignore[arg-type]  # both are known
            assert (ended.status.phase, await owner()) == ("Completed", expected), ended.status.message


async def give_alice_her_binding(at: Desk) -> None:
    """As the pipeline of a User has it."""
    binding = RoleBinding(
        metadata=ObjectMeta(name="alice", namespace="ns-alice"),
        role_ref=role_reference("Owner"),
        subjects=subjects_of("alice"),
    )
    if await at.admin.find(binding) is None:
        await at.admin.create(binding)


@virtual
async def test_the_last_owner_stays() -> None:
    async with virtual_desk() as at:
        await people(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        for action, role in (("Deprive", None), ("Deprive", "Owner"), ("Update", "Manager"), ("Grant", "Developer")):
            ended = await at.carried_out(action, "bob", "ns-alice", role)  # type: ignore[arg-type]  # both are known
            assert (ended.status.phase, ended.status.message) == (
                "Failed",
                "bob is the last Owner of ns-alice: give that role to another user first",
            )
        assert await at.roles("ns-alice") == {"bob-Owner": "workspace-owner"}


@virtual
async def test_of_two_owners_who_lose_their_role_at_the_same_time_one_stays() -> None:
    async with virtual_desk() as at:
        await people(at, "alice", "bob", "carol")
        for name in ("bob", "carol"):
            await at.carried_out("Grant", name, "ns-alice", "Owner")

        async def slow(verb: str, path: str, send: Send) -> object:
            answer = await send()
            if verb == "GET" and "/rolebindings" in path:
                await asyncio.sleep(1)
            return answer

        with intercepted(at.own, slow):
            created = [await at.ask("Deprive", name, "ns-alice") for name in ("bob", "carol")]
            ended = [(await at.finished(each)).status.phase for each in created]
        assert sorted(ended) == ["Completed", "Failed"]
        assert len(await at.roles("ns-alice")) == 1


@virtual
async def test_the_user_of_a_workspace_stays_its_owner() -> None:
    async with virtual_desk() as at:
        await people(at)
        await give_alice_her_binding(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        for action, role in (("Deprive", None), ("Deprive", "Owner"), ("Update", "Developer"), ("Grant", "Manager")):
            ended = await at.carried_out(action, "alice", "ns-alice", role)  # type: ignore[arg-type]  # both are known
            assert (ended.status.phase, ended.status.message) == (
                "Failed",
                "ns-alice is the workspace of alice, who stays its Owner",
            )
        assert set(await at.roles("ns-alice")) == {"alice", "bob-Owner"}


# What does not exist, or not any more


@pytest.mark.parametrize("is_created_again", [False, True])
@virtual
async def test_a_user_who_is_deleted_while_it_is_given_a_role_has_none_in_the_end(is_created_again: bool) -> None:
    """Its deletion found nothing to take, and the workspace was in its name for ever."""
    async with virtual_desk() as at:
        await people(at)

        async def deleted_first(verb: str, path: str, send: Send) -> object:
            if verb == "POST" and "/rolebindings" in path:
                await at.admin.delete(User, "bob")
                if is_created_again:
                    await at.admin.create(User(metadata=ObjectMeta(name="bob")))
            return await send()

        with intercepted(at.own, deleted_first):
            ended = await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        assert (ended.status.phase, ended.status.message) == ("Failed", "the User bob was deleted meanwhile")
        assert await at.roles("ns-alice") == {}
        assert (await at.admin.get(User, "alice")).metadata.annotations[OWNER] == "alice"


@virtual
async def test_a_user_who_is_being_created_is_waited_for() -> None:
    async with virtual_desk() as at:
        await people(at, "alice")
        created = await at.ask("Grant", "bob", "ns-alice", "Developer")
        await asyncio.sleep(20)
        waiting = (await at.admin.get(created)).status
        assert (waiting.phase, waiting.message) == ("Processing", "there is no User bob")
        await at.user("bob")
        assert (await at.finished(created)).status.phase == "Completed"


@pytest.mark.parametrize("late", ["alice", "bob"])
@virtual
async def test_a_request_is_not_about_people_who_came_to_the_name_after_it(late: str) -> None:
    """It may be carried out late: its creator had the right to give roles to, and in the workspace of, others."""
    async with virtual_desk() as at:
        early = operation("Grant", "bob", "ns-alice", "Owner")
        early.metadata.creation_timestamp = now()
        await people(at, *{"alice", "bob"} - {late})
        await asyncio.sleep(40)
        await people(at, late)
        with pytest.raises(Permanent, match=f"the User {late} was created after this request, which does not mean it"):
            await reconciler(at).act(early)
        assert await at.roles("ns-alice") == {}


@virtual
async def test_a_role_that_is_given_late_is_not_one_in_the_workspace_of_the_next_user() -> None:
    async with virtual_desk() as at:
        await people(at)

        async def late(verb: str, path: str, send: Send) -> object:
            if verb == "POST" and "/rolebindings" in path:
                await at.admin.delete(User, "alice")
                await asyncio.sleep(60)
                await at.user("alice")
                await asyncio.sleep(1)
            return await send()

        with intercepted(at.own, late):
            ended = await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        assert (ended.status.phase, ended.status.message) == ("Failed", "the User alice was deleted meanwhile")
        assert await at.roles("ns-alice") == {}
        assert (await at.admin.get(User, "alice")).metadata.annotations.get(OWNER) != "bob"


@virtual
async def test_a_request_that_waits_for_another_change_of_the_workspace_is_not_about_its_next_user() -> None:
    async with virtual_desk() as at:
        await people(at)
        async with at.operations.change_of("ns-alice"):
            waiting = await at.ask("Grant", "bob", "ns-alice", "Owner")
            await asyncio.sleep(5)
            await at.admin.delete(User, "alice")
            await asyncio.sleep(60)
            await at.user("alice")
        ended = await at.finished(waiting)
        assert (ended.status.phase, await at.roles("ns-alice")) == ("Failed", {}), ended.status.message
        assert ended.status.message.startswith("the User alice was created after this request")


@virtual
async def test_users_whom_the_cache_does_not_show_yet_are_there() -> None:
    options = Options(request_grace_time=timedelta(0))
    async with vacant(prepared) as (plane, admin, own), desk(plane, admin, own, options) as at:
        await settled(at.manager)
        plane.faults.silence_open_watches(lambda target: target.resource in ("users", "namespaces"))
        await people(at)
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Developer")).status.phase == "Completed"


@virtual
async def test_a_user_or_a_workspace_that_does_not_come_fails_the_request_after_the_grace_time() -> None:
    async with virtual_desk() as at:
        await people(at, "alice", "bob")
        await at.admin.create(User(metadata=ObjectMeta(name="homeless")))
        for user, workspace, message in (
            ("nobody", "ns-alice", "there is no User nobody"),
            ("bob", "ns-nobody", "there is no User nobody, whose workspace ns-nobody would be"),
            ("bob", "ns-homeless", "there is no workspace ns-homeless"),
        ):
            began = now()
            ended = await at.carried_out("Grant", user, workspace, "Developer")
            assert (ended.status.phase, ended.status.message) == ("Failed", message)
            assert timedelta(seconds=29) <= now() - began <= timedelta(seconds=40)


@virtual
async def test_the_roles_of_a_user_who_is_gone_can_be_taken() -> None:
    async with virtual_desk() as at:
        await people(at, "alice")
        metadata = ObjectMeta(name="bob-Developer", namespace="ns-alice")  # of the seed: without a label
        await at.admin.create(
            RoleBinding(metadata=metadata, role_ref=role_reference("Developer"), subjects=subjects_of("bob"))
        )
        assert (await at.carried_out("Deprive", "bob", "ns-alice")).status.phase == "Completed"
        assert await at.roles("ns-alice") == {}


@virtual
async def test_bindings_that_others_have_made_are_left_alone() -> None:
    async with virtual_desk() as at:
        await people(at)
        own = RoleBinding(
            metadata=ObjectMeta(name="mine", namespace="ns-alice"),
            role_ref=role_reference("Developer"),
            subjects=subjects_of("bob"),
        )
        await at.admin.create(own)
        await at.carried_out("Grant", "bob", "ns-alice", "Manager")
        await at.carried_out("Deprive", "bob", "ns-alice")
        assert list(await at.roles("ns-alice")) == ["mine"]


@pytest.mark.parametrize("reference", ["ClusterRole", "Role"])
@virtual
async def test_a_role_whose_binding_is_held_by_a_finalizer_is_taken_nevertheless(reference: str) -> None:
    """Who may write role bindings in a workspace could keep a role that way, also beyond the life of the User."""
    async with virtual_desk() as at:
        await people(at, "alice")
        await at.user("bob", **{STATUS: "Deleted"})

        async def held() -> RoleBinding:
            metadata = ObjectMeta(
                name="bob-Manager", namespace="ns-alice", labels={OWNER: "bob"}, finalizers=["example.com/held"]
            )
            name = {"ClusterRole": "workspace-manager", "Role": "Manager"}[reference]
            role = RoleRef(api_group=RBAC, kind=reference, name=name)
            return await at.admin.create(RoleBinding(metadata=metadata, role_ref=role, subjects=subjects_of("bob")))

        await held()
        await at.carried_out("Update", "bob", "ns-alice", "Developer")
        assert await at.roles("ns-alice") == {"bob-Developer": "workspace-developer"}
        await held()
        await at.carried_out("Deprive", "bob", "ns-alice")
        assert await at.roles("ns-alice") == {}
        await at.admin.delete(await held())
        ended = await at.carried_out("Grant", "bob", "ns-alice", "Manager")
        assert ended.status.message == "bob is Manager of ns-alice now"
        assert await at.roles("ns-alice") == {"bob-Manager": "workspace-manager"}
        given = await at.admin.get(RoleBinding, "bob-Manager", namespace="ns-alice")
        assert given.metadata.deletion_timestamp is None
        await at.carried_out("Deprive", "bob", "ns-alice")
        await held()
        await at.finished(await at.admin.create(deletion("bob")))
        assert await at.roles("ns-alice") == {}


@pytest.mark.parametrize("name", ["rb-bob", "bob-Manager"])
@virtual
async def test_a_role_by_a_binding_to_the_role_of_the_workspace_is_changed_and_taken_too(name: str) -> None:
    """Bindings of the original, and of the seed, which are there when their operator is replaced by this one."""
    async with virtual_desk() as at:
        await people(at, "alice")
        await at.user("bob", **{STATUS: "Deleted"})

        async def earlier() -> None:
            metadata = ObjectMeta(name=name, namespace="ns-alice", labels={OWNER: "bob"})
            reference = RoleRef(api_group=RBAC, kind="Role", name="Manager")
            await at.admin.create(RoleBinding(metadata=metadata, role_ref=reference, subjects=subjects_of("bob")))

        await earlier()
        updated = await at.carried_out("Update", "bob", "ns-alice", "Developer")
        assert updated.status.message == "bob is Developer of ns-alice now, and was Manager"
        assert await at.roles("ns-alice") == {"bob-Developer": "workspace-developer"}
        roles: list[RoleName | None] = ["Manager", None]
        for role in roles:
            await earlier()
            await at.carried_out("Deprive", "bob", "ns-alice", role)
            assert name not in await at.roles("ns-alice")
        await earlier()
        await at.finished(await at.admin.create(deletion("bob")))
        assert await at.roles("ns-alice") == {}


@virtual
async def test_a_user_is_never_without_a_role_on_the_way_to_another() -> None:
    async with virtual_desk() as at:
        await people(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        with failing(at.own, AWAY, method="DELETE", path="/rolebindings"):
            created = await at.ask("Update", "bob", "ns-alice", "Manager")
            await asyncio.sleep(5)
            assert set(await at.roles("ns-alice")) == {"bob-Developer", "bob-Manager"}
        assert (await at.finished(created)).status.phase == "Completed"
        assert set(await at.roles("ns-alice")) == {"bob-Manager"}


# Many at a time


@virtual
async def test_the_back_off_after_unexpected_errors_is_the_configured_one() -> None:
    options = Options(request_min_retry_delay=timedelta(seconds=1), request_max_retry_delay=timedelta(seconds=4))
    async with virtual_desk(options) as at:
        await people(at)
        began: list[float] = []

        class Broken(Guard):
            async def check(self, request: object) -> None:
                began.append(asyncio.get_running_loop().time())
                if len(began) < 6:
                    raise KeyError("a bug")

        at.operations.guard = Broken(at.manager.client)
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Developer")).status.phase == "Completed"
        assert [round(after - before) for before, after in pairwise(began)] == [1, 2, 4, 4, 4]


@virtual
async def test_requests_for_several_workspaces_are_carried_out_at_the_same_time() -> None:
    async with virtual_desk() as at:
        await people(at, "alice", "bob", "carol")
        arrived = asyncio.Barrier(2)

        async def both(verb: str, path: str, send: Send) -> object:
            if verb == "POST" and "/rolebindings" in path:
                await arrived.wait()
            return await send()

        with intercepted(at.own, both):
            created = [await at.ask("Grant", "carol", workspace, "Developer") for workspace in ("ns-alice", "ns-bob")]
            assert [(await at.finished(each)).status.phase for each in created] == ["Completed", "Completed"]


@virtual
async def test_a_grant_costs_four_reads_and_four_writes_and_a_finished_request_nothing() -> None:
    """Policy, its binding, bindings of the workspace, the User; the claim, the new binding, the end and its event."""
    async with virtual_desk() as at:
        await people(at)
        await at.carried_out("Grant", "bob", "ns-alice", "Manager")  # the first one verifies the policy
        await at.carried_out("Deprive", "bob", "ns-alice")
        await settled(at.manager)
        with count_requests(at.own) as requests:
            await at.carried_out("Grant", "bob", "ns-alice", "Developer")
            await asyncio.sleep(10)
        assert (requests.reads, requests.writes) == (4, 4), requests.by_path
        with count_requests(at.own) as requests:
            await asyncio.sleep(60)
        assert requests.attempts == []


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        (User, "alice", "the workspace ns-alice is being deleted"),
        (Namespace, "ns-alice", "the workspace ns-alice is being deleted"),
        (User, "bob", "the User bob is being deleted"),
    ],
)
@virtual
async def test_there_are_no_roles_in_a_workspace_or_for_a_user_that_is_going(
    kind: type[User | Namespace], name: str, message: str
) -> None:
    async with virtual_desk() as at:
        await people(at)
        await at.admin.patch(kind, name, MergePatch({"metadata": {"finalizers": ["example.com/held"]}}))
        await at.admin.delete(kind, name)
        ended = await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        assert (ended.status.phase, ended.status.message) == ("Failed", message)
