"""Operationrequests on both control planes, under the role that is rendered for requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from operators.user import Operationrequest, Options, User
from operators.user.deletion_gate import DeletionGate
from operators.user.membership import Members
from operators.user.names import (
    CREATOR,
    OWNER,
    RBAC,
    SYSTEM_NAMESPACE,
    RoleName,
    role_reference,
    subjects_of,
    workspace_of,
)
from operators.user.operations import OperationReconciler
from operators.user.request_controllers import NAME
from operators.user.request_guard import Guard
from operators.user.tests.deploying import KINDS, SOON
from operators.user.tests.requesting import (
    Desk,
    Killed,
    desk,
    failing,
    operation,
    prepared,
    touch,
)

from kubewright import Client, ControlPlane, Field, Invalid, Manager, ObjectMeta, Permission, now
from kubewright.api import Object
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import RoleBinding, RoleRef
from kubewright.client import JSONPatch
from kubewright.client.errors import ServerTimeout, Status, TooManyRequests
from kubewright.client.wait import deleted
from kubewright.patterns import NotYet
from kubewright.testing import Install, count_requests, restricted_client, settled, unique_name


@pytest.fixture
async def own(control_plane: ControlPlane, admin: Client, install: Install) -> AsyncIterator[Client]:
    """A client with the rights of the operator."""
    await install(*KINDS)
    async with prepared(control_plane) as client:
        yield client


@pytest.fixture
async def at(control_plane: ControlPlane, admin: Client, own: Client) -> AsyncIterator[Desk]:
    """The operator at work; it retries and forgets quickly."""
    options = Options(request_retry_time=timedelta(seconds=1), request_grace_time=timedelta(0))
    async with desk(control_plane, admin, own, options) as running:
        yield running


class People:
    """A workspace of one User, and another User."""

    def __init__(self) -> None:
        self.alice, self.bob = unique_name("alice"), unique_name("bob")
        self.workspace = workspace_of(self.alice)


@pytest.fixture
async def people(admin: Client, own: Client) -> AsyncIterator[People]:
    """They exist."""
    people = People()
    made = Desk(None, admin, own, None)  # type: ignore[arg-type]  # nothing runs yet
    users = [await made.user(name) for name in (people.alice, people.bob)]
    yield people
    # An unfinished one would be carried out by the operator of the next test.
    await admin.delete_all(Operationrequest, namespace=SYSTEM_NAMESPACE)
    for user in users:
        await admin.delete(user, missing_ok=True)


def reconciler(own: Client, guard: Guard | None = None) -> OperationReconciler:
    """One that reads from the server, and does what a test says."""
    manager = Manager(own, namespaces=[SYSTEM_NAMESPACE])
    return OperationReconciler(manager.client, manager.recorder(NAME), guard or Guard(manager.client), DeletionGate())


async def give(admin: Client, user: str, workspace: str, role: RoleName) -> None:
    """Make a binding just as a request does."""
    client = Manager(admin).client
    await (await Members.of(client, workspace)).give(client, await admin.get(User, user), role)


async def test_item_68_phases_move_only_from_pending_through_processing_to_completed(at: Desk, people: People) -> None:
    phases: list[str] = []
    async with at.admin.watch(Operationrequest, namespace=SYSTEM_NAMESPACE) as watched:
        created = await at.ask("Grant", people.bob, people.workspace, "Developer")
        async with asyncio.timeout(SOON):
            async for event in watched:
                if event.type != "BOOKMARK" and event.object.metadata.uid == created.metadata.uid:
                    phases.append(event.object.status.phase)
                if phases[-1:] == ["Completed"]:
                    break
    assert phases == ["Pending", "Processing", "Completed"]


async def test_item_69_processing_is_stored_before_anything_is_done(admin: Client, own: Client, people: People) -> None:
    class FailPoint(Guard):
        async def check(self, request: object) -> None:
            raise NotYet("stopped right after the claim", after=1)

    created = await admin.create(operation("Grant", people.bob, people.workspace, "Developer"))
    await reconciler(own, FailPoint(Manager(own).client)).reconcile(created.key)
    assert (await admin.get(created)).status.phase == "Processing"
    assert [each.metadata.name for each in await admin.list(RoleBinding, namespace=people.workspace)] == []


async def test_item_70_terminal_requests_never_run_again(at: Desk, people: People) -> None:
    completed = await at.carried_out("Grant", people.bob, people.workspace, "Developer")
    failed = await at.carried_out("Grant", unique_name("nobody"), people.workspace, "Developer")
    await at.admin.delete_all(RoleBinding, namespace=people.workspace)
    with count_requests(at.own) as requests:
        for each in (completed, failed):
            await touch(at.admin, each)
        await settled(at.manager, quiet=0.3)
    assert requests.writes == 0
    assert [(await at.admin.get(each)).status.phase for each in (completed, failed)] == ["Completed", "Failed"]
    assert await at.roles(people.workspace) == {}


async def test_item_71_grant_creates_the_binding(at: Desk, people: People) -> None:
    ended = await at.carried_out("Grant", people.bob, people.workspace, "Manager")
    binding = await at.admin.get(RoleBinding, f"{people.bob}-Manager", namespace=people.workspace)
    user = await at.admin.get(User, people.bob)
    assert (binding.role_ref, binding.subjects) == (role_reference("Manager"), subjects_of(people.bob))
    assert binding.metadata.labels == {OWNER: people.bob}
    assert [owner.uid for owner in binding.metadata.owner_references] == [user.metadata.uid]
    assert (ended.status.phase, ended.status.message) == (
        "Completed",
        f"{people.bob} is Manager of {people.workspace} now",
    )


async def test_item_72_grant_is_idempotent(at: Desk, people: People) -> None:
    await give(at.admin, people.bob, people.workspace, "Developer")
    before = await at.admin.get(RoleBinding, f"{people.bob}-Developer", namespace=people.workspace)
    with count_requests(at.own) as requests:
        ended = await at.carried_out("Grant", people.bob, people.workspace, "Developer")
    assert (ended.status.phase, ended.status.message) == (
        "Completed",
        f"{people.bob} is Developer of {people.workspace} already",
    )
    assert [path for path in requests.by_path if "rolebindings" in path and "GET" not in path] == []
    assert await at.admin.get(before) == before


async def test_item_73_update_changes_the_role(at: Desk, people: People) -> None:
    await at.carried_out("Grant", people.bob, people.workspace, "Developer")
    ended = await at.carried_out("Update", people.bob, people.workspace, "Manager")
    assert ended.status.message == f"{people.bob} is Manager of {people.workspace} now, and was Developer"
    assert await at.roles(people.workspace) == {f"{people.bob}-Manager": "workspace-manager"}


async def test_item_74_deprive_removes_and_that_there_is_nothing_is_all_right(at: Desk, people: People) -> None:
    await at.carried_out("Grant", people.bob, people.workspace, "Developer")
    first = await at.carried_out("Deprive", people.bob, people.workspace)
    second = await at.carried_out("Deprive", people.bob, people.workspace, "Developer")
    assert [each.status.phase for each in (first, second)] == ["Completed", "Completed"]
    assert first.status.message == f"{people.bob} is not Developer of {people.workspace} any more"
    assert second.status.message == f"{people.bob} has no role Developer in {people.workspace}"
    assert await at.roles(people.workspace) == {}

    # One of the original, which the operator could not create, and that is held by somebody.
    label, role = {OWNER: people.bob}, RoleRef(api_group=RBAC, kind="Role", name="Manager")
    metadata = ObjectMeta(name="rb-bob", namespace=people.workspace, labels=label, finalizers=["example.com/held"])
    await at.admin.create(RoleBinding(metadata=metadata, role_ref=role, subjects=subjects_of(people.bob)))
    third = await at.carried_out("Deprive", people.bob, people.workspace)
    assert third.status.message == f"{people.bob} is not Manager of {people.workspace} any more"
    assert await at.roles(people.workspace) == {}


async def test_item_75_an_unknown_action_fails_permanently(at: Desk, people: People) -> None:
    """With a definition that admits any action, as one of a later version may."""
    name = "operationrequests.user.sealos.io"
    enum = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/action/enum"
    await at.admin.patch(CustomResourceDefinition, name, JSONPatch([{"op": "remove", "path": enum}]))
    try:
        request = operation("Grant", people.bob, people.workspace, "Developer")
        request.spec.action = "Promote"  # type: ignore[assignment]  # that is the point
        async with asyncio.timeout(SOON):
            while await at.admin.find(request) is None:  # a new schema takes effect a moment later
                with suppress(Invalid):
                    await at.admin.create(request)
        ended = await at.finished(request)
    finally:
        known = {"op": "add", "path": enum, "value": ["Grant", "Update", "Deprive"]}
        await at.admin.patch(CustomResourceDefinition, name, JSONPatch([known]))
    assert (ended.status.phase, ended.status.attempts) == ("Failed", 1)
    assert ended.status.message == 'there is no action "Promote": expected Grant, Update or Deprive'


async def test_item_76_a_crash_during_processing_is_safe(admin: Client, own: Client, people: People) -> None:
    """Killed after each write; `explore` does the same with everything else that can go wrong."""
    calls, number = [""], 0
    while len(calls) > number:
        number += 1
        given = await admin.create(operation("Grant", people.bob, people.workspace, "Developer"))
        await reconciler(own).reconcile(given.key)
        created = await admin.create(operation("Update", people.bob, people.workspace, "Owner"))
        with failing(own, Killed(), at=number, has_effect=True) as calls:
            try:
                await reconciler(own).reconcile(created.key)
            except Killed:
                second = reconciler(own)
                await second.reconcile(created.key)
        ended = await admin.get(created)
        assert ended.status.phase == "Completed"
        roles = [each.metadata.name for each in await admin.list(RoleBinding, namespace=people.workspace)]
        assert roles == [f"{people.bob}-Owner"]
        assert (await admin.get(User, people.alice)).metadata.annotations[OWNER] == people.bob
        events = await admin.list(Event, namespace=SYSTEM_NAMESPACE)
        about = [each.reason for each in events if each.regarding.uid == created.metadata.uid]
        assert about == ["OperationCompleted"]
        # So that it is the same each time: an Owner of somebody else's workspace, and no last one.
        await give(admin, people.alice, people.workspace, "Owner")
        undone = await admin.create(operation("Deprive", people.bob, people.workspace))
        await reconciler(own).reconcile(undone.key)
        await admin.delete_all(RoleBinding, namespace=people.workspace)
    assert number > 5


@pytest.mark.parametrize(
    "error",
    [
        TooManyRequests(Status(code=429, reason="TooManyRequests", message="later"), "create RoleBinding"),
        ServerTimeout(Status(code=504, reason="Timeout", message="slow"), "create RoleBinding"),
    ],
    ids=["429", "504"],
)
async def test_item_77_a_temporary_error_is_retried_and_does_not_fail_the_request(
    at: Desk, people: People, error: Exception
) -> None:
    with failing(at.own, error, path="rolebindings"):
        created = await at.ask("Grant", people.bob, people.workspace, "Developer")
        waiting = await at.admin.wait_for(created, Field("status.message").satisfies(bool, "is set"), timeout=SOON)
        assert waiting is not None
        assert (waiting.status.phase, waiting.status.message) == ("Processing", str(error))
        ended = await at.finished(created)
    assert (ended.status.phase, ended.status.attempts) == ("Completed", 2)


async def test_item_78_a_permanent_error_fails_the_request_and_is_no_error_of_the_controller(
    at: Desk, people: People
) -> None:
    nobody = unique_name("nobody")
    ended = await at.carried_out("Grant", nobody, people.workspace, "Developer")
    assert (ended.status.phase, ended.status.message) == ("Failed", f"there is no User {nobody}")
    statistics = [controller.statistics for controller in at.manager.controllers]
    before = sum(sum(each.results.values()) for each in statistics)
    await settled(at.manager, quiet=0.5)
    assert sum(sum(each.results.values()) for each in statistics) == before
    assert sum(each.errors for each in statistics) == 0


async def test_item_79_a_completed_request_has_its_completion_time_and_a_message(at: Desk, people: People) -> None:
    status = (await at.carried_out("Grant", people.bob, people.workspace, "Developer")).status
    created, started, completed = status.start_time, status.start_time, status.completion_time
    assert created is not None
    assert started is not None
    assert completed is not None
    assert started <= completed <= now() + timedelta(seconds=1)
    assert status.message


async def test_item_80_there_is_one_event_of_each_end(at: Desk, people: People) -> None:
    completed = await at.carried_out("Grant", people.bob, people.workspace, "Developer")
    failed = await at.carried_out("Grant", unique_name("nobody"), people.workspace, "Developer")
    uids = {completed.metadata.uid, failed.metadata.uid}
    found: dict[str, tuple[str | None, ...]] = {}
    async with asyncio.timeout(SOON), at.admin.watch(Event, namespace=SYSTEM_NAMESPACE, initial_events=True) as watched:
        async for each in watched:
            if each.type == "ADDED" and each.object.regarding.uid in uids:
                found[each.object.metadata.name] = (each.object.type, each.object.reason, each.object.note)
            if len(found) == 2:
                break
    assert sorted(found.values(), key=str) == [
        ("Normal", "OperationCompleted", completed.status.message),
        ("Warning", "OperationFailed", failed.status.message),
    ]


async def test_items_81_and_83_finished_requests_are_deleted_after_their_time_and_a_restart(
    control_plane: ControlPlane, admin: Client, own: Client, people: People
) -> None:
    kept = timedelta(seconds=3)
    options = Options(operation_req_retention_time=kept, request_grace_time=timedelta(0))
    async with desk(control_plane, admin, own, options) as at:
        completed = await at.carried_out("Grant", people.bob, people.workspace, "Developer")
        failed = await at.carried_out("Grant", unique_name("nobody"), people.workspace, "Developer")
    async with desk(control_plane, admin, own, options):
        for each in (completed, failed):
            await admin.wait_for(each, deleted, timeout=SOON)
            assert each.status.completion_time is not None
            assert abs(now() - each.status.completion_time - kept) <= timedelta(seconds=2)


async def test_item_82_a_finished_request_is_reconciled_again_when_its_time_has_come(
    admin: Client, own: Client, people: People
) -> None:
    created = await admin.create(operation("Grant", people.bob, people.workspace, "Developer"))
    await reconciler(own).reconcile(created.key)
    ended = await admin.get(created)
    ended.status.completion_time = now() - timedelta(minutes=59)
    await admin.status.patch(ended)
    result = await reconciler(own).reconcile(created.key)
    assert result is not None
    assert 55 <= result.delay <= 60


async def test_item_85_a_request_in_another_namespace_is_left_alone(at: Desk, people: People) -> None:
    request = operation("Grant", people.bob, people.workspace, "Developer")
    request.metadata.namespace = people.workspace
    created = await at.admin.create(request)
    await at.carried_out("Grant", people.bob, people.workspace, "Manager")
    assert (await at.admin.get(created)).status == created.status
    assert await at.roles(people.workspace) == {f"{people.bob}-Manager": "workspace-manager"}


async def test_item_86_workers_back_off_and_turns_are_as_configured(
    control_plane: ControlPlane, admin: Client, own: Client, people: People
) -> None:
    delay = timedelta(milliseconds=200)
    options = Options(request_workers=2, request_min_retry_delay=delay, request_max_retry_delay=delay)
    async with desk(control_plane, admin, own, options) as at:
        running: list[str] = []
        began: list[float] = []
        most = 0

        class Slow(Guard):
            async def check(self, request: Object) -> None:
                nonlocal most
                assert isinstance(request, Operationrequest)
                assert request.spec.user not in running
                running.append(request.spec.user)
                began.append(asyncio.get_running_loop().time())
                most = max(most, len(running))
                await asyncio.sleep(0.1)
                running.remove(request.spec.user)
                if len(began) == 1:
                    raise KeyError("a bug")

        at.operations.guard = Slow(at.manager.client)
        first = await at.carried_out("Grant", people.bob, people.workspace, "Developer")
        assert (first.status.phase, first.status.attempts) == ("Completed", 2)
        assert began[1] - began[0] >= delay.total_seconds()
        users = [people.bob, people.alice, people.bob, people.alice, unique_name("nobody"), people.bob]
        created = [await at.ask("Deprive", user, people.workspace, "Developer") for user in users]
        assert [(await at.finished(each)).status.phase for each in created] == ["Completed"] * len(users)
        assert most == 2


async def test_item_87_the_audit_log_has_who_what_how_long_and_the_result(
    control_plane: ControlPlane, admin: Client, own: Client, people: People, tmp_path: Path
) -> None:
    options, backend = Options(audit_file=tmp_path / "audit.jsonl"), unique_name("backend")
    may_ask = Permission(Operationrequest, "create", "escalate", namespace=SYSTEM_NAMESPACE)
    requested = operation("Grant", people.bob, people.workspace, "Developer")
    requested.metadata.annotations[CREATOR] = backend  # by webhooks, which are off here
    async with (
        desk(control_plane, admin, own, options) as at,
        restricted_client(control_plane, [may_ask], user=backend) as client,
    ):
        ended = await at.finished(await client.create(requested))
    start, end = (msgspec.json.decode(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines())
    action = {"action": "Grant", "user": people.bob, "role": "Developer", "namespace": people.workspace}
    for record in (start, end):
        assert (record["name"], record["uid"]) == (ended.metadata.name, ended.metadata.uid)
        assert (record["action"], record["controller"]) == (action, at.manager.instance)
        assert record["creator"] == backend
    assert [(each["before"], each["phase"]) for each in (start, end)] == [
        ("Pending", "Processing"),
        ("Processing", "Completed"),
    ]
    assert end["seconds"] >= 0
    assert end["message"] == ended.status.message


async def test_item_88_a_foreign_update_between_acting_and_writing_does_not_lose_the_result(
    admin: Client, own: Client, people: People
) -> None:
    class Interrupting(Guard):
        async def check(self, request: object) -> None:
            await touch(admin, created)

    created = await admin.create(operation("Grant", people.bob, people.workspace, "Developer"))
    await reconciler(own, Interrupting(Manager(own).client)).reconcile(created.key)
    ended = await admin.get(created)
    assert (ended.status.phase, ended.metadata.labels["touched"]) == ("Completed", "yes")
