"""When a manager is ready, and the permissions that it asks about before it begins."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from tests.manager.scripted import (
    Journal,
    Reconciles,
    Recording,
    another_leader,
    candidate,
    config_map,
    eventually,
    get,
    is_ready,
    running,
    virtually,
)

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Namespace, Node, Pod, Secret
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.api.resources import Resource, resource
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.controller import controller_for
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager, Permission
from kubewright.manager.preflight import PermissionsMissing
from kubewright.manifest.crd import crd_of
from kubewright.testing.namespaces import unique_name


class GadgetSpec(Model):
    size: int = 1


class GadgetStatus(Model):
    pass


@resource("example.com/v1")
class Gadget(Resource[GadgetSpec, GadgetStatus]):
    """A kind that is not there until its definition is installed."""


async def may(client: Client, user: str, *rules: PolicyRule, namespace: str = "") -> Callable[[], Awaitable[object]]:
    """Bind rules to a user, in one namespace or everywhere. Returns the way to take them back."""
    subjects = [Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")]
    kind, meta = ("Role", ObjectMeta(name=unique_name("manager"), namespace=namespace))
    if namespace:
        await client.create(Role(metadata=meta, rules=list(rules)))
        reference = RoleRef(api_group="rbac.authorization.k8s.io", kind=kind, name=meta.name)
        bound = await client.create(RoleBinding(metadata=meta, subjects=subjects, role_ref=reference))
        return lambda: client.delete(bound)
    meta = ObjectMeta(name=meta.name)
    await client.create(ClusterRole(metadata=meta, rules=list(rules)))
    reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=meta.name)
    bound_everywhere = await client.create(ClusterRoleBinding(metadata=meta, subjects=subjects, role_ref=reference))
    return lambda: client.delete(bound_everywhere)


@virtually
async def test_readiness_names_a_kind_that_is_not_installed_and_recovers_when_it_is(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client, health_address="127.0.0.1:0")
    controller_for(manager, Gadget).owns(ConfigMap).complete(Reconciles(journal))
    async with running(manager):
        await asyncio.sleep(60)
        status, body = await get(manager.ports["health"], "/readyz")
        assert status == 500
        assert "[-]controllers failed: gadget: gadgets.example.com is not installed" in body
        assert (await get(manager.ports["health"], "/healthz"))[0] == 200
        await client.create(from_json(CustomResourceDefinition, crd_of(Gadget)))
        await eventually(lambda: is_ready(manager))
        assert await get(manager.ports["health"], "/readyz") == (200, "ok")
        await client.create(Gadget(metadata=ObjectMeta(name="mine", namespace="default"), spec=GadgetSpec()))
        await journal.until("mine is done")


@virtually
async def test_readiness_names_a_missing_permission_and_recovers_when_it_is_granted(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    await client.create(config_map("object"))
    async with plane.client(plane.add_user("operator")) as restricted:
        manager = Manager(restricted, preflight=False)
        controller_for(manager, ConfigMap).complete(Reconciles(journal))
        async with running(manager):
            await asyncio.sleep(60)
            (problem,) = (await manager.ready.failing()).values()
            assert problem.startswith("configmap: ")
            assert 'User "operator" cannot' in problem
            assert 'resource "configmaps"' in problem
            await may(
                client, "operator", PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list", "watch"])
            )
            await journal.until("object is done")
            assert await is_ready(manager)


async def test_all_missing_permissions_are_listed_before_anything_starts(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    journal = Journal()
    user = namespace
    await may(admin, user, PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list"]))
    async with control_plane.client(control_plane.add_user(user)) as client:
        manager = Manager(client, permissions=[Permission(Secret, "get", namespace=namespace)])
        controller_for(manager, ConfigMap).owns(Pod).complete(Reconciles(journal))
        manager.add(Recording("other", journal, needs_leader=False))
        with pytest.raises(PermissionsMissing) as raised:
            await asyncio.wait_for(manager.run(), 30)
    assert str(raised.value).splitlines() == [
        f'reading secrets is not permitted: User "{user}" cannot get resource "secrets" in API group "" '
        f'in the namespace "{namespace}"',
        f'watching configmaps is not permitted: User "{user}" cannot watch resource "configmaps" in API group "" '
        "at the cluster scope",
        f'listing and watching pods is not permitted: User "{user}" cannot list, watch resource "pods" in '
        'API group "" at the cluster scope',
        f'add to its Role in the namespace "{namespace}":',
        '- apiGroups: [""]',
        '  resources: ["secrets"]',
        '  verbs: ["get"]',
        "add to its ClusterRole:",
        '- apiGroups: [""]',
        '  resources: ["configmaps"]',
        '  verbs: ["watch"]',
        '- apiGroups: [""]',
        '  resources: ["pods"]',
        '  verbs: ["list", "watch"]',
    ]
    assert journal.entries == []


@virtually
async def test_permissions_are_checked_in_the_namespaces_of_the_watches(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """Roles in the namespaces that are watched are enough, and kinds that are in no namespace need a cluster role."""
    journal = Journal()
    for namespace in ("shop", "stock"):
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    await client.create(config_map("object", "shop"))
    await may(
        client,
        "operator",
        PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list", "watch"]),
        namespace="shop",
    )
    await may(
        client,
        "operator",
        PolicyRule(api_groups=[""], resources=["pods"], verbs=["list", "watch"]),
        namespace="stock",
    )
    await may(client, "operator", PolicyRule(api_groups=[""], resources=["nodes"], verbs=["list", "watch"]))
    async with plane.client(plane.add_user("operator")) as restricted:
        manager = Manager(restricted, namespaces=["shop"])
        controller_for(manager, ConfigMap).complete(Reconciles(journal))
        controller_for(manager, Pod, namespace="stock").complete(Reconciles(journal))
        controller_for(manager, Node).complete(Reconciles(journal))
        async with running(manager):
            await journal.until("object is done")
            await eventually(lambda: is_ready(manager))
        # And those that are not enough are found.
        manager = Manager(restricted, namespaces=["shop", "stock"])
        controller_for(manager, ConfigMap).complete(Reconciles(journal))
        with pytest.raises(PermissionsMissing, match='resource "configmaps" in API group "" in the namespace "stock"'):
            await manager.run()


@virtually
async def test_nothing_is_checked_without_preflight(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client, preflight=False, permissions=[Permission(Pod, "list")])
    async with running(manager):
        await manager.elected.wait()
    assert [event.resource for event in plane.audit.events if "reviews" in event.resource] == []


def test_a_server_that_is_unreachable_at_the_start_is_waited_for_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        journal = Journal()
        await client.create(config_map("object"))
        manager = Manager(client)
        controller_for(manager, ConfigMap).complete(Reconciles(journal))
        plane.faults.drop(lambda target: True, times=None)
        async with running(manager):
            await asyncio.sleep(600)
            (problem,) = (await manager.ready.failing()).values()
            assert problem.startswith("waiting for the API server: ")
            plane.faults.clear()
            await journal.until("object is done")
            assert await is_ready(manager)

    with caplog.at_level(logging.INFO, "kubewright.manager.preflight"):
        scenario()
    *waiting, answers = [line for line in caplog.messages if "API server" in line]
    assert answers == "the API server answers"
    assert all(line.startswith("waiting for the API server: ") for line in waiting)
    assert 3 <= len(waiting) <= 8


@virtually
async def test_a_cold_standby_is_not_ready_before_the_server_has_answered_at_all(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """A server that takes connections and says nothing is noticed only when the first request has run out of time."""
    answers = asyncio.Event()
    plane.faults.delay(lambda target: target.resource == "selfsubjectaccessreviews", answers, times=None)
    manager = Manager(client, election=candidate(client, "a"), warm_standby=False)
    controller_for(manager, ConfigMap).complete(Reconciles(Journal()))
    async with another_leader(client), running(manager):
        await asyncio.sleep(1)
        assert list((await manager.ready.failing()).values()) == ["waiting for the API server: no response yet"]
        answers.set()
        await eventually(lambda: is_ready(manager))


@virtually
async def test_it_can_be_stopped_while_it_waits_for_the_server(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client, permissions=[Permission(Pod, "list")])
    plane.faults.fail(lambda target: True, code=503, times=None)
    async with running(manager):
        await asyncio.sleep(60)


@virtually
async def test_a_server_that_refuses_access_reviews_is_not_waited_for(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    manager = Manager(client, permissions=[Permission(Pod, "list")])
    plane.faults.fail(lambda target: True, code=403, times=None)
    with pytest.raises(Forbidden):
        await manager.run()
