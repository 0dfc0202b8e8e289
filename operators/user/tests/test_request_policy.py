"""Nobody gains rights by a request that their own could not give: attempts on both control planes, without webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from operators.user import Deleterequest, Operationrequest, Options, request_guard
from operators.user.names import CREATOR, OWNER, SYSTEM_NAMESPACE, RoleName, workspace_of
from operators.user.request_guard import ENFORCED_AFTER, Guard
from operators.user.request_policy import POLICY
from operators.user.tests.deploying import KINDS
from operators.user.tests.requesting import Desk, deletion, desk, operation, prepared, virtual_desk

from kubewright import Client, ControlPlane, Forbidden, ObjectMeta, Permission, now
from kubewright.api import to_json
from kubewright.api.admissionregistration.v1 import ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding
from kubewright.api.core.v1 import Namespace
from kubewright.api.rbac.v1 import RoleBinding, RoleRef, Subject
from kubewright.client import JSONPatch, MergePatch
from kubewright.patterns import Permanent
from kubewright.testing import Install, restricted_client, unique_name, virtual

MAY_ASK = Permission(Operationrequest, "create", "patch", namespace=SYSTEM_NAMESPACE)
TOO_EARLY = (
    f"it was created before the ValidatingAdmissionPolicy {POLICY}, or its last change, was in force: create it again"
)
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
        prepared(control_plane, admin) as own,
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
    """That only one namespace is looked at keeps nobody from creating requests there."""
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


async def test_bindings_without_the_role_are_not_enough(town: Town) -> None:
    """Who may create role bindings may still not bind what they do not have."""
    binder = await town.person(None, Permission(RoleBinding, "create", "delete", namespace=town.here))
    assert "may not bind workspace-owner" in await refusal(binder, operation("Grant", town.bob, town.here, "Owner"))


async def test_the_policy_of_a_cluster_may_trust_somebody(town: Town) -> None:
    """By the verb `escalate` of requests, such as a service that has checked by itself who asks."""
    trusted = await town.person(None, Permission(Operationrequest, "escalate", namespace=SYSTEM_NAMESPACE))
    created = await trusted.create(operation("Grant", town.bob, town.here, "Owner"))
    assert (await town.at.finished(created)).status.phase == "Completed"
    assert "may not delete the User" in await refusal(trusted, deletion(town.bob))


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


async def test_a_namespace_that_only_looks_like_a_workspace_is_left_alone(town: Town) -> None:
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
async def test_nothing_is_carried_out_while_the_policy_is_not_enforced() -> None:
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        policy = await at.admin.get(ValidatingAdmissionPolicyBinding, POLICY)
        await at.admin.delete(policy)
        await asyncio.sleep(5)
        unguarded = await at.ask("Grant", "bob", "ns-alice", "Owner")
        removal = await at.admin.create(deletion("bob"))
        await asyncio.sleep(60)
        for request in (unguarded, removal):
            status = (await at.admin.get(request)).status
            assert status.phase == "Processing"
            assert f"the ValidatingAdmissionPolicy {POLICY}" in status.message
        policy.metadata = ObjectMeta(name=POLICY)
        await at.admin.create(policy)
        for request in (unguarded, removal):
            ended = await at.finished(request)
            assert (ended.status.phase, ended.status.message) == (
                "Failed",
                TOO_EARLY,
            )
        assert await at.roles("ns-alice") == {}


WEAKENED: dict[str, tuple[type[ValidatingAdmissionPolicy | ValidatingAdmissionPolicyBinding], dict[str, object]]] = {
    "audits only": (ValidatingAdmissionPolicyBinding, {"validationActions": ["Audit"]}),
    "is for others": (
        ValidatingAdmissionPolicyBinding,
        {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "such"}}}},
    ),
    "ignores its errors": (ValidatingAdmissionPolicy, {"failurePolicy": "Ignore"}),
    "checks nothing": (ValidatingAdmissionPolicy, {"validations": [{"expression": "true"}]}),
    "has exceptions": (ValidatingAdmissionPolicy, {"matchConditions": [{"name": "none", "expression": "false"}]}),
}


@virtual
@pytest.mark.parametrize("weakness", WEAKENED)
async def test_what_was_created_while_the_policy_was_a_weaker_one_is_never_carried_out(weakness: str) -> None:
    kind, change = WEAKENED[weakness]
    async with virtual_desk() as at, restricted_client(at.plane, [MAY_ASK]) as stranger:
        for name in ("alice", "bob"):
            await at.user(name)
        await asyncio.sleep(5)
        strong = to_json((await at.admin.get(kind, POLICY)).spec)
        await at.admin.patch(kind, POLICY, MergePatch({"spec": change}))
        await asyncio.sleep(5)
        unchecked = await at.admin.create(operation("Grant", "bob", "ns-alice", "Owner"))
        await asyncio.sleep(5)
        status = (await at.admin.get(unchecked)).status
        assert status.phase == "Failed"
        assert "is not enforced as the operator deploys it" in status.message
        await at.admin.patch(kind, POLICY, JSONPatch([{"op": "replace", "path": "/spec", "value": strong}]))
        await asyncio.sleep(60)
        assert await at.roles("ns-alice") == {}
        with pytest.raises(Forbidden):
            await stranger.create(operation("Grant", "bob", "ns-alice", "Owner"))
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Owner")).status.phase == "Completed"


@virtual
async def test_what_was_created_before_the_policy_was_mended_is_not_carried_out() -> None:
    """While no operator was running that would have seen it."""
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        guard = Guard(at.manager.client)
        for actions in (["Audit"], ["Deny"]):
            await asyncio.sleep(5)
            created = operation("Grant", "bob", "ns-alice", "Owner")
            created.metadata.creation_timestamp = now()
            await asyncio.sleep(5)
            weak = MergePatch({"spec": {"validationActions": actions}})
            await at.admin.patch(ValidatingAdmissionPolicyBinding, POLICY, weak)
            await asyncio.sleep(5)
        with pytest.raises(Permanent, match="or its last change, was in force"):
            await guard.check(created)
        created.metadata.creation_timestamp = now()
        await guard.check(created)


@virtual
async def test_what_was_created_before_api_servers_knew_the_policy_is_not_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with virtual_desk() as at:
        monkeypatch.setattr(request_guard, "ENFORCED_AFTER", ENFORCED_AFTER)
        for name in ("alice", "bob"):
            await at.user(name)
        early = await at.carried_out("Grant", "bob", "ns-alice", "Owner")
        assert early.status.message == TOO_EARLY
        await asyncio.sleep(ENFORCED_AFTER.total_seconds())
        assert (await at.carried_out("Grant", "bob", "ns-alice", "Owner")).status.phase == "Completed"


@virtual
async def test_without_the_guard_rbac_alone_says_who_may_create_requests() -> None:
    async with virtual_desk(Options(guard_requests=False)) as at:
        for name in ("alice", "bob"):
            await at.user(name)
        await at.admin.delete(ValidatingAdmissionPolicyBinding, POLICY)
        await asyncio.sleep(5)
        async with restricted_client(at.plane, [MAY_ASK]) as stranger:
            created = await stranger.create(operation("Grant", "bob", "ns-alice", "Owner"))
        assert (await at.finished(created)).status.phase == "Completed"


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
async def test_subjects_that_somebody_adds_to_a_binding_are_removed_by_the_next_request() -> None:
    async with virtual_desk() as at:
        for name in ("alice", "bob"):
            await at.user(name)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        binding = await at.admin.get(RoleBinding, "bob-Developer", namespace="ns-alice")
        expected: Sequence[Subject] = list(binding.subjects)
        binding.subjects.append(Subject(api_group="rbac.authorization.k8s.io", kind="User", name="eve"))
        binding.metadata.labels[OWNER] = "eve"
        await at.admin.update(binding)
        await at.carried_out("Grant", "bob", "ns-alice", "Developer")
        binding = await at.admin.get(binding)
        assert (binding.subjects, binding.metadata.labels[OWNER]) == (expected, "bob")
