"""Users on both control planes, under the role that is rendered for the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from operators.user import User
from operators.user.deployed import POLICY
from operators.user.names import (
    CREATOR,
    OWNER,
    ROLE_NAMES,
    SYSTEM_NAMESPACE,
    kubeconfig_of,
    role_reference,
    subjects_of,
    workspace_of,
)
from operators.user.roles import RULES
from operators.user.tests.deploying import KINDS, SOON, Site, deployed, operating

from kubewright import Client, ControlPlane, Forbidden, KubernetesError, ObjectMeta, Permission, condition
from kubewright.api import Object
from kubewright.api.core.v1 import ConfigMap, Namespace, Secret, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted
from kubewright.patterns import get_condition
from kubewright.testing import Install, count_requests, restricted_client, settled, unique_name

AnySite = Site[ControlPlane]


@pytest.fixture
async def site(control_plane: ControlPlane, admin: Client, install: Install) -> AsyncIterator[AnySite]:
    """The operator at work."""
    await install(*KINDS)
    async with deployed(control_plane) as own:
        async with operating(control_plane, admin, own) as running:
            yield running
        # Not by the operator, which would wait until the workspaces are gone.
        for user in await admin.list(User):
            await admin.delete(user)
            await admin.patch(User, user.key, MergePatch({"metadata": {"finalizers": None}}))
            await admin.delete(Namespace, workspace_of(user.metadata.name), missing_ok=True)


def is_other_than(lost: Object) -> Callable[[Object], bool]:
    return lambda found: found.metadata.uid != lost.metadata.uid


async def until_refused(attempt: Callable[[], Awaitable[object]], refusal: str) -> None:
    """A policy is in effect a moment after it was created."""
    answer = ""
    async with asyncio.timeout(SOON):
        while refusal not in answer:
            await asyncio.sleep(0.05)
            try:
                await attempt()
            except KubernetesError as error:
                answer = str(error)


async def test_item_57_a_user_has_workspace_service_account_kubeconfig_roles_and_binding(site: AnySite) -> None:
    name = unique_name("user")
    workspace, admin = workspace_of(name), site.admin
    user = await site.create(name)
    assert user.status.phase == "Active"

    namespace = await admin.get(Namespace, workspace)
    account = await admin.get(ServiceAccount, name, namespace=SYSTEM_NAMESPACE)
    secret = await admin.get(Secret, kubeconfig_of(name), namespace=SYSTEM_NAMESPACE)
    roles = [await admin.get(Role, role, namespace=workspace) for role in ROLE_NAMES]
    binding = await admin.get(RoleBinding, name, namespace=workspace)
    children: list[Object] = [namespace, account, secret, *roles, binding]
    for child in children:
        (owner,) = child.metadata.owner_references
        assert (owner.kind, owner.uid, owner.controller) == ("User", user.metadata.uid, True)
        assert child.metadata.annotations[CREATOR] == name
    assert namespace.metadata.labels[OWNER] == name
    assert namespace.metadata.labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert [role.rules for role in roles] == [RULES[role] for role in ROLE_NAMES]
    assert (binding.role_ref, binding.subjects) == (role_reference("Owner"), subjects_of(name))

    with count_requests(site.own) as requests:
        await settled(site.manager)
    assert requests.writes == 0


async def test_a_user_has_all_rights_in_the_workspace_but_to_its_labels_owners_and_finalizers_and_none_elsewhere(
    site: AnySite,
) -> None:
    name = unique_name("user")
    await site.create(name)
    async with Client(await site.kubeconfig(name)) as client:
        metadata = ObjectMeta(name="notes", namespace=workspace_of(name))
        await client.create(ConfigMap(metadata=metadata))
        with pytest.raises(Forbidden, match=f"system:serviceaccount:{SYSTEM_NAMESPACE}:{name}"):
            await client.list(Secret, namespace=SYSTEM_NAMESPACE)
        with pytest.raises(Forbidden):
            await client.list(Namespace)
        noted = MergePatch({"metadata": {"annotations": {"example.com/note": "ours"}}})
        await client.patch(Namespace, workspace_of(name), noted)
        lowered = MergePatch({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}})
        await until_refused(lambda: client.patch(Namespace, workspace_of(name), lowered, dry_run=True), POLICY)
        for update in (client.update, client.status.update, client.subresource("finalize").update):
            namespace = await client.get(Namespace, workspace_of(name))
            namespace.metadata.labels["pod-security.kubernetes.io/enforce"] = "privileged"
            with pytest.raises(Forbidden, match=POLICY):
                await update(namespace)
            disowned = await client.get(namespace)
            disowned.metadata.owner_references = []
            with pytest.raises(Forbidden, match=POLICY):
                await update(disowned)
            held = await client.get(namespace)
            held.metadata.finalizers = ["example.com/held"]
            with pytest.raises(Forbidden, match=POLICY):
                await update(held)
        # Its content would not be deleted with it.
        unfinished = await client.get(Namespace, workspace_of(name))
        unfinished.spec.finalizers = []
        with pytest.raises(Forbidden, match=POLICY):
            await client.subresource("finalize").update(unfinished)
    finalizes = [Permission(Namespace, "get"), Permission(Namespace, "update", subresource="finalize")]
    async with restricted_client(site.plane, finalizes) as controller:
        await controller.subresource("finalize").update(unfinished, dry_run=True)


async def test_item_58_deleted_objects_and_changed_labels_are_restored(site: AnySite) -> None:
    name = unique_name("user")
    workspace, admin = workspace_of(name), site.admin
    await site.create(name)
    losses: list[Object] = [
        await admin.get(Role, "Developer", namespace=workspace),
        await admin.get(RoleBinding, name, namespace=workspace),
        await admin.get(ServiceAccount, name, namespace=SYSTEM_NAMESPACE),
        await admin.get(Secret, kubeconfig_of(name), namespace=SYSTEM_NAMESPACE),
    ]
    for lost in losses:
        await admin.delete(lost)
    await admin.patch(Namespace, workspace, MergePatch({"metadata": {"labels": {OWNER: None}}}))
    for lost in losses:
        await admin.wait_for(type(lost), lost.key, is_other_than(lost), timeout=SOON)
    await admin.wait_for(Namespace, workspace, Field(f"metadata.labels['{OWNER}']").equals(name), timeout=SOON)
    await settled(site.manager)
    async with Client(await site.kubeconfig(name)) as client:
        await client.list(ConfigMap, namespace=workspace)


async def test_item_51_a_new_user_is_pending_first_and_then_active(site: AnySite) -> None:
    phases: list[str] = []
    user = User(metadata=ObjectMeta(name=unique_name("user")))
    async with asyncio.timeout(SOON), site.admin.watch(User, fields={"metadata.name": user.metadata.name}) as watched:
        created = await site.admin.create(user)
        assert (created.status.phase, created.status.conditions) == ("Pending", [])
        async for event in watched:
            if event.type != "BOOKMARK":
                phases.append(event.object.status.phase)
            if event.object.status.phase == "Active":
                break
    assert set(phases[:-1]) == {"Pending"}
    assert all(each.status == "True" for each in event.object.status.conditions)


async def test_item_59_a_step_that_fails_is_a_warning_event_that_names_it(site: AnySite) -> None:
    name = unique_name("user")
    foreign = await site.admin.create(Namespace(metadata=ObjectMeta(name=workspace_of(name))))
    user = await site.admin.create(User(metadata=ObjectMeta(name=name)))
    await site.admin.wait_for(user, condition("NamespaceSyncReady", "False"), timeout=SOON)
    found = get_condition(await site.admin.get(user), "NamespaceSyncReady")
    assert found is not None
    assert found.message == (
        f"the Namespace {foreign.metadata.name} exists already and is no User's: delete it, or choose another name for "
        "the User"
    )
    async with asyncio.timeout(SOON), site.admin.watch(Event, namespace="default", initial_events=True) as watched:
        async for each in watched:
            event = each.object
            if each.type != "BOOKMARK" and event.regarding.uid == user.metadata.uid and event.type == "Warning":
                break
    assert event.reason == "NameTaken"
    assert event.note == f"namespace failed: {found.message}"
    await site.admin.delete(foreign)


async def test_a_deleted_user_is_gone_when_everything_of_it_is(site: AnySite) -> None:
    name = unique_name("user")
    user = await site.create(name)
    await site.delete(user)
    assert await site.admin.find(Namespace, workspace_of(name)) is None
    for kind, child in ((ServiceAccount, name), (Secret, kubeconfig_of(name))):
        await site.admin.wait_for(kind, child, deleted, namespace=SYSTEM_NAMESPACE, timeout=SOON)
