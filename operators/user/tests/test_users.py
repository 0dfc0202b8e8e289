"""Users on both control planes, under the role that is rendered for the operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from operators.user import User
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
from operators.user.tests.deploying import SOON, Site, deployed, operating

from kubewright import Client, ControlPlane, Field, Forbidden, ObjectMeta, condition
from kubewright.api import Object
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod, PodSpec, Secret, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.client import MergePatch
from kubewright.client.wait import deleted, exists
from kubewright.testing import Install, unique_name


@pytest.fixture
async def site(control_plane: ControlPlane, admin: Client, install: Install) -> AsyncIterator[Site]:
    """The operator at work."""
    await install(User)
    async with deployed(control_plane) as own, operating(control_plane, admin, own) as running:
        yield running
        for user in await admin.list(User):
            await running.delete(user)


async def test_item_57_a_user_has_workspace_service_account_kubeconfig_roles_and_binding(site: Site) -> None:
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
