"""What webhooks make of requests, on both control planes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine

import pytest
from operators.user import Deleterequest, Operationrequest, Options
from operators.user.names import CREATOR, OWNER, SYSTEM_NAMESPACE, workspace_of
from operators.user.request_webhooks import one_open_request
from operators.user.tests.deploying import KINDS
from operators.user.tests.requesting import (
    Desk,
    deletion,
    operation,
    prepared,
    requests_only,
    touch,
    virtual_desk,
)

from kubewright import Client, ControlPlane, Field, Manager, Permission, Review
from kubewright.client import MergePatch
from kubewright.client.errors import APIError
from kubewright.testing import Install, LocalWebhooks, restricted_client, settled, unique_name, virtual
from kubewright.webhook import ReviewRequest


@pytest.fixture
async def at(
    control_plane: ControlPlane, admin: Client, install: Install, local_webhooks: LocalWebhooks
) -> AsyncIterator[Desk]:
    """The operator with its webhooks. Nothing is finished: nobody takes the first step."""
    await install(*KINDS)
    async with prepared(control_plane) as own:
        manager = Manager(own, **local_webhooks.options)
        requests_only(manager, Options())
        async with (
            manager.running(),
            local_webhooks.installed(manager, admin, namespace=SYSTEM_NAMESPACE),
        ):
            yield Desk(control_plane, admin, own, manager)


async def test_the_creator_is_the_user_who_has_created_it_whatever_is_said(at: Desk) -> None:
    user, name = unique_name("bob"), unique_name("somebody")
    needed = [Permission(Operationrequest, "create", "escalate", namespace=SYSTEM_NAMESPACE)]
    needed.append(Permission(Deleterequest, "create", "escalate"))
    async with restricted_client(at.plane, needed, user=name) as client:
        for request in (operation("Deprive", user, "ns-alice"), deletion(user)):
            request.metadata.annotations[CREATOR] = "admin"
            created = await client.create(request)
            assert created.metadata.annotations[CREATOR] == name
            assert created.metadata.labels[OWNER] == user
            await touch(at.admin, created)
            assert (await at.admin.get(created)).metadata.annotations[CREATOR] == name


async def test_of_a_user_of_a_workspace_there_is_one_open_request(at: Desk) -> None:
    user = unique_name("bob")
    first = await at.ask("Grant", user, "ns-nowhere", "Owner")  # which does not exist, so that it waits
    with pytest.raises(APIError) as denied:
        await at.ask("Deprive", user, "ns-nowhere")
    assert (denied.value.code, denied.value.reason) == (409, "Conflict")
    assert f"the Operationrequest {first.metadata.name} for {user} in ns-nowhere is P" in denied.value.status.message
    await at.ask("Grant", user, "ns-elsewhere", "Owner")
    await at.ask("Grant", unique_name("eve"), "ns-nowhere", "Owner")


async def test_a_failed_request_is_not_completed_and_blocks_its_user_for_ever(at: Desk) -> None:
    """It did: only those that are Pending or Processing block another."""
    user = unique_name("bob")
    first = await at.ask("Grant", user, "ns-nowhere", "Owner")
    await at.admin.wait_for(first, Field("status.phase").equals("Processing"), timeout=30)
    there = await at.admin.get(first)
    there.status.phase = "Failed"
    await at.admin.status.patch(there)
    await settled(at.manager, quiet=0.2)
    await at.ask("Grant", user, "ns-nowhere", "Owner")


async def test_a_request_that_is_being_deleted_is_not_open(at: Desk) -> None:
    held = operation("Grant", unique_name("bob"), "ns-nowhere", "Owner")
    held.metadata.finalizers = ["example.com/held"]
    await at.admin.delete(await at.admin.create(held))
    await settled(at.manager, quiet=0.2)
    await at.ask("Deprive", held.spec.user, "ns-nowhere")
    await at.admin.patch(Operationrequest, held.key, MergePatch({"metadata": {"finalizers": None}}))


async def test_a_request_elsewhere_is_answered_with_a_warning(admin: Client) -> None:
    request = ReviewRequest(operation="CREATE", namespace="default")
    review = Review(operation("Deprive", "bob", "ns-alice"), request=request)
    checked = one_open_request(Manager(admin).client).function(review)
    assert isinstance(checked, Coroutine)
    await checked
    assert review.warnings == ["nothing will come of it: only requests in the namespace user-system are carried out"]


@virtual
async def test_two_requests_that_pass_at_the_same_time_are_carried_out_one_after_the_other() -> None:
    """Webhooks are off here: it is what comes of two creations that did not see each other."""
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        first = await at.ask("Grant", "bob", workspace_of("alice"), "Developer", name="a")
        second = await at.ask("Update", "bob", workspace_of("alice"), "Manager", name="b")
        ended = [await at.finished(each) for each in (first, second)]
        assert [each.status.phase for each in ended] == ["Completed", "Completed"]
        assert len(await at.roles("ns-alice")) == 1
