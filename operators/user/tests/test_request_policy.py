"""Nobody gains rights by a request that their own could not give: attempts on both control planes, without webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from operators.user import Deleterequest, Operationrequest, Options
from operators.user.names import CREATOR, OWNER, RBAC, SYSTEM_NAMESPACE, RoleName, workspace_of
from operators.user.tests.deploying import KINDS
from operators.user.tests.requesting import MAY_ASK, Desk, deletion, desk, operation, prepared, virtual_desk

from kubewright import Client, ControlPlane, Forbidden, ObjectMeta, Permission
from kubewright.api.core.v1 import Namespace
from kubewright.api.rbac.v1 import RoleBinding, RoleRef, Subject
from kubewright.client import MergePatch
from kubewright.deployment import Operator
from kubewright.deployment.access import user_roles
from kubewright.testing import Install, restricted_client, unique_name, virtual

MAY_ASK_TO_DELETE = Permission(Deleterequest, "create")


class Town:
    """Two workspaces, and people with rights of their own who may all create requests."""

    def __init__(self, at: Desk, clients: AsyncExitStack) -> None:
        self.at, self._clients = at, clients
        self.alice, self.bob = unique_name("alice"), unique_name("bob")
        self.here, self.elsewhere = workspace_of(self.alice), workspace_of(self.bob)

    async def person(self, role: RoleName | None = None, *more: Permission) -> Client:
        """Somebody with a role in the workspace `here`, or none."""
        name = unique_name("person")
        needed = [MAY_ASK, MAY_ASK_TO_DELETE, *more]
        client = await self._clients.enter_async_context(restricted_client(self.at.plane, needed, user=name))
        if role is not None:
            binding = RoleBinding(
                metadata=ObjectMeta(name=name, namespace=self.here),
                role_ref=RoleRef(
                    api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=f"workspace-{role.lower()}"
                ),
                subjects=[Subject(api_group="rbac.authorization.k8s.io", kind="User", name=name)],
            )
            await self.at.admin.create(binding)
            async with asyncio.timeout(30):  # an authorizer learns of a binding a moment later
                while True:
                    try:
                        await client.list(RoleBinding, namespace=self.here)
                    except Forbidden:
                        await asyncio.sleep(0.02)
                    else:
                        break
        return client


@pytest.fixture
async def town(control_plane: ControlPlane, admin: Client, install: Install) -> AsyncIterator[Town]:
    """The operator at work, without webhooks."""
    await install(*KINDS)
    options = Options(request_grace_time=timedelta(0))
    async with (
        AsyncExitStack() as clients,
        prepared(control_plane) as own,
        desk(control_plane, admin, own, options) as at,
    ):
        town = Town(at, clients)
        users = [await at.user(name) for name in (town.alice, town.bob)]
        yield town
        for user in users:
            await admin.delete(user, missing_ok=True)


async def refusal(person: Client, request: Operationrequest | Deleterequest) -> str:
    """Why a person may not create a request; empty when they may."""
    try:
        await person.create(request)
    except Forbidden as error:
        return error.status.message
    return ""


async def test_weakness_13_who_may_create_requests_may_not_request_everything(town: Town) -> None:
    """That only one namespace is watched keeps nobody from creating requests there."""
    stranger = await town.person()
    message = await refusal(stranger, operation("Grant", town.bob, town.here, "Owner"))
    assert f"may not bind workspace-owner in the namespace {town.here}, and so not request it" in message
    message = await refusal(stranger, operation("Deprive", town.bob, town.here))
    assert f"may not delete rolebindings in the namespace {town.here}, and so not request it" in message
    assert await town.at.roles(town.here) == {}


async def test_a_developer_cannot_request_more_rights(town: Town) -> None:
    developer = await town.person("Developer")
    for action in ("Grant", "Update"):
        for role in ("Owner", "Manager", "Developer"):
            message = await refusal(developer, operation(action, town.bob, town.here, role))
            assert "may not bind workspace-" in message


async def test_an_owner_requests_roles_in_the_own_workspace_and_in_no_other(town: Town) -> None:
    owner = await town.person("Owner")
    created = await owner.create(operation("Grant", town.bob, town.here, "Manager"))
    assert (await town.at.finished(created)).status.phase == "Completed"
    assert "may not bind" in await refusal(owner, operation("Grant", town.alice, town.elsewhere, "Developer"))
    assert "may not delete" in await refusal(owner, operation("Deprive", town.alice, town.elsewhere))


async def test_each_of_the_rights_to_give_a_role_is_needed(town: Town) -> None:
    """Who may create role bindings may still not bind what they do not have, nor take the role that there is."""
    bind = Permission(f"{RBAC}/clusterroles", "bind", name="workspace-owner", namespace=town.here)
    for rights, refused in (
        ([Permission(RoleBinding, "create", "delete", namespace=town.here)], "may not bind workspace-owner"),
        ([Permission(RoleBinding, "delete", namespace=town.here), bind], "may not bind workspace-owner"),
        ([Permission(RoleBinding, "create", namespace=town.here), bind], "may not delete rolebindings"),
        ([Permission(RoleBinding, "create", "delete", namespace=town.here), bind], ""),
    ):
        person = await town.person(None, *rights)
        request = operation("Grant", town.bob, town.here, "Owner")
        message = await refusal(person, request)
        assert refused in message
        assert bool(message) == bool(refused)
    assert (await town.at.finished(request)).status.phase == "Completed"


async def test_the_policy_of_a_cluster_may_trust_somebody(town: Town) -> None:
    """By the verb `escalate` of requests, such as a service that has checked by itself who asks."""
    trusted = await town.person(None, Permission(Operationrequest, "escalate", namespace=SYSTEM_NAMESPACE))
    created = await trusted.create(operation("Grant", town.bob, town.here, "Owner"))
    assert (await town.at.finished(created)).status.phase == "Completed"
    assert "may not delete the User" in await refusal(trusted, deletion(town.bob))


async def test_the_roles_that_are_deployed_for_users_of_requests_trust_nobody(town: Town) -> None:
    """They are there to be bound: the verb * would have been `escalate`, too."""
    roles = user_roles(Operator(name="it", image="it:1", kinds=KINDS))
    kinds: tuple[type[Operationrequest | Deleterequest], ...] = (Operationrequest, Deleterequest)
    verbs = {kind: roles[f"{kind.__name__.lower()}-admin"].rules[0].verbs for kind in kinds}
    administrator = await town.person(None, *(Permission(kind, *given) for kind, given in verbs.items()))
    assert "may not bind" in await refusal(administrator, operation("Grant", town.bob, town.here, "Owner"))
    assert "may not delete the User" in await refusal(administrator, deletion(town.bob))


async def test_only_who_may_delete_a_user_requests_it(town: Town) -> None:
    owner = await town.person("Owner")
    message = await refusal(owner, deletion(town.bob))
    assert f"may not delete the User {town.bob}, and so not request it" in message
    remover = await town.person(None, Permission("user.sealos.io/users", "delete", name=town.bob))
    assert "may not delete the User" in await refusal(remover, deletion(town.alice))
    assert await refusal(remover, deletion(town.bob)) == ""


async def test_nobody_creates_a_request_in_the_name_of_another(town: Town) -> None:
    owner = await town.person("Owner")
    forged = operation("Grant", town.bob, town.here, "Manager")
    forged.metadata.annotations[CREATOR] = "admin"
    assert f"the annotation {CREATOR} is the user who has created the request" in await refusal(owner, forged)
    created = await owner.create(operation("Grant", town.bob, town.here, "Manager"))
    change = MergePatch({"metadata": {"annotations": {CREATOR: "admin"}}})
    with pytest.raises(Forbidden, match="is the user who has created the request, and stays so"):
        await owner.patch(Operationrequest, created.key, change)


async def test_a_namespace_that_only_has_the_name_of_a_workspace_is_left_alone(town: Town) -> None:
    """The prefix makes none: somebody has made ns-NAME before there was a User NAME."""
    name = unique_name("prod")
    admin = town.at.admin
    await admin.create(Namespace(metadata=ObjectMeta(name=workspace_of(name))))
    missing = await town.at.carried_out("Grant", town.bob, workspace_of(name), "Owner")
    assert missing.status.message == f"there is no User {name}, whose workspace {workspace_of(name)} would be"
    await admin.create(KINDS[0](metadata=ObjectMeta(name=name)))
    foreign = await town.at.carried_out("Grant", town.bob, workspace_of(name), "Owner")
    assert foreign.status.phase == "Failed"
    assert f"the namespace {workspace_of(name)} is not the workspace of the User {name}" in foreign.status.message
    assert await town.at.roles(workspace_of(name)) == {}


@virtual
async def test_a_service_account_that_only_has_the_name_of_a_user_gets_no_rights() -> None:
    async with virtual_desk() as at:
        await at.user("alice")
        await at.user("default")  # of which every namespace has a service account
        ended = await at.carried_out("Grant", "default", "ns-alice", "Owner")
        assert ended.status.message == (
            "the ServiceAccount user-system/default is not that of the User default, and is to get no rights"
        )
        assert await at.roles("ns-alice") == {}


@virtual
async def test_a_user_who_is_created_again_does_not_inherit_roles() -> None:
    async with virtual_desk() as at:
        await at.user("alice")
        bob = await at.user("bob")
        await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        await at.admin.delete(bob)
        await asyncio.sleep(60)
        await at.admin.create(KINDS[0](metadata=ObjectMeta(name="bob")))
        await asyncio.sleep(60)
        assert await at.roles("ns-alice") == {}


@virtual
async def test_what_somebody_changes_about_a_binding_is_repaired_by_the_next_request() -> None:
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        binding = await at.admin.get(RoleBinding, "bob-Developer", namespace="ns-alice")
        expected: Sequence[Subject] = list(binding.subjects)
        owners, binding.metadata.owner_references = binding.metadata.owner_references, []
        binding.subjects.append(Subject(api_group="rbac.authorization.k8s.io", kind="User", name="eve"))
        binding.metadata.labels[OWNER] = "eve"
        await at.admin.update(binding)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        binding = await at.admin.get(binding)
        assert (binding.subjects, binding.metadata.labels[OWNER]) == (expected, "bob")
        assert binding.metadata.owner_references == owners
