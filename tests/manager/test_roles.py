from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import permutations

import pytest

from kubewright import Client, KubernetesError, Manager, Permission, Request, Resource, controller_for, resource
from kubewright.api.core.v1 import ConfigMap, Node, Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.model import Model
from kubewright.api.rbac.v1 import Subject
from kubewright.controller.handler import for_object
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import LeaderElection
from kubewright.manager.manager import SetupError
from kubewright.manager.roles import bindings_of, declared_permissions, roles_of, roles_yaml, rules_of
from kubewright.patterns import ObjectReconciler
from kubewright.patterns.request_status import RequestStatus
from kubewright.patterns.requests import RequestReconciler
from kubewright.testing import restricted_client


class Nothing(Model):
    pass


@resource("roles.example.com/v1")
class Gadget(Resource[Nothing, Nothing]):
    """With a status."""


@resource("roles.example.com/v1")
class Order(Resource[Nothing, RequestStatus]):
    """A request."""


class Gadgets(ObjectReconciler[Gadget]):
    finalizer = "roles.example.com/cleanup"

    async def converge(self, gadget: Gadget) -> None:
        """Does nothing."""

    async def cleanup(self, gadget: Gadget) -> None:
        """Does nothing."""


class Orders(RequestReconciler[Order]):
    async def act(self, request: Order) -> str:
        return "done"


async def ignore(request: Request) -> None:
    """Does nothing."""


def summary(permissions: list[Permission]) -> dict[str, list[str]]:
    """Rules in short, by namespace."""
    return {
        namespace: [
            f"{rule.api_groups[0]}: {' '.join(rule.resources)} {rule.resource_names or ''}: {' '.join(rule.verbs)}"
            for rule in rules
        ]
        for namespace, rules in rules_of(permissions).items()
    }


def test_rules_are_merged_and_sorted_whatever_the_order() -> None:
    wanted = [
        Permission(Pod, "watch", "list"),
        Permission("pods", "create", "list"),
        Permission("/pods/log", "get"),
        Permission(ConfigMap, "create", "watch", "list"),
        Permission("coordination.k8s.io/leases", "update", name="b", namespace="ops"),
        Permission("coordination.k8s.io/leases", "update", name="a", namespace="ops"),
    ]
    rendered = {roles_yaml("it", order) for order in permutations(wanted)}
    assert rendered == {
        """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: it
rules:
- apiGroups:
  - ''
  resources:
  - configmaps
  - pods
  verbs:
  - create
  - get
  - list
  - watch
- apiGroups:
  - ''
  resources:
  - pods/log
  verbs:
  - get
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: it
  namespace: ops
rules:
- apiGroups:
  - coordination.k8s.io
  resourceNames:
  - a
  - b
  resources:
  - leases
  verbs:
  - update
"""
    }


def test_what_another_rule_permits_already_is_left_out() -> None:
    assert summary(
        [
            Permission(Pod, "get", "delete", namespace="shop"),
            Permission(Pod, "list"),
            Permission("secrets", "get", "patch", namespace="shop", name="mine"),
            Permission("secrets", "get", namespace="shop"),
            Permission("apps/deployments", "create", "*"),
        ]
    ) == {
        "": [": pods : get list", "apps: deployments : *"],
        "shop": [": pods : delete", ": secrets : get", ": secrets ['mine']: patch"],
    }


def test_every_role_is_bound() -> None:
    roles = roles_of("it", [Permission(Pod, "list"), Permission(Pod, "create", namespace="shop")])
    subject = Subject(kind="ServiceAccount", name="it", namespace="ops")
    everywhere, here = bindings_of(roles, subject)
    assert (everywhere.kind, everywhere.role_ref.kind, everywhere.subjects) == (
        "ClusterRoleBinding",
        "ClusterRole",
        [subject],
    )
    assert (here.kind, here.metadata.namespace, here.role_ref.kind) == ("RoleBinding", "shop", "Role")


async def test_a_program_needs_what_its_setup_function_shows() -> None:
    def setup(manager: Manager) -> None:
        controller_for(manager, Gadget).owns(Pod).watches_metadata(ConfigMap, for_object).complete(
            Gadgets(manager.client)
        )
        controller_for(manager, Order).complete(Orders(manager.client, manager.recorder("orders")))
        manager.require(Permission(Pod, "create", "delete"))

    assert summary(await declared_permissions(setup)) == {
        "": [
            ": configmaps : get list watch",
            ": pods : create delete get list watch",
            "events.k8s.io: events : create patch",
            "roles.example.com: gadgets : get list patch watch",
            "roles.example.com: gadgets/finalizers : update",
            "roles.example.com: gadgets/status orders/status : patch",
            "roles.example.com: orders : delete get list watch",
        ]
    }


async def test_a_program_that_is_confined_needs_no_cluster_role_but_for_what_has_no_namespace() -> None:
    def setup(manager: Manager) -> None:
        controller_for(manager, Gadget).complete(Gadgets(manager.client))
        controller_for(manager, ConfigMap, namespace="stock").complete(ignore)
        manager.require(Permission(Pod, "create"), Permission(Pod, "delete", namespace="other"))

    shop = [
        ": pods : create",
        "events.k8s.io: events : create patch",
        "roles.example.com: gadgets : get list patch watch",
        "roles.example.com: gadgets/status : patch",
    ]
    needed = await declared_permissions(setup, manager=lambda client: Manager(client, namespaces=["shop"]))
    assert summary(needed) == {
        "other": [": pods : delete"],
        "shop": shop,
        "stock": [": configmaps : get list watch", "events.k8s.io: events : create patch"],
    }

    def nodes(manager: Manager) -> None:
        controller_for(manager, Node).complete(ignore)

    needed = await declared_permissions(nodes, manager=lambda client: Manager(client, namespaces=["shop"]))
    events = ["events.k8s.io: events : create patch"]
    assert summary(needed) == {"": [": nodes : get list watch"], "default": events, "shop": events}


async def test_what_decides_over_needs_besides_setup_is_given_to_the_manager() -> None:
    def made(client: Client) -> Manager:
        election = LeaderElection(client, "it", namespace="ops")
        return Manager(client, election=election, metrics_secure=True, metrics_address="127.0.0.1:0")

    def setup(manager: Manager) -> None:
        controller_for(manager, Dynamic.of("roles.example.com/v1", "Thing")).complete(ignore)

    assert summary(await declared_permissions(setup, manager=made)) == {
        "": [
            "authentication.k8s.io: tokenreviews : create",
            "authorization.k8s.io: subjectaccessreviews : create",
            "events.k8s.io: events : create patch",
            "roles.example.com: things : get list watch",
        ],
        "ops": [
            "coordination.k8s.io: leases : create",
            "coordination.k8s.io: leases ['it']: get update",
        ],
    }


async def test_a_setup_function_is_left_and_must_not_need_a_server() -> None:
    left = []

    @asynccontextmanager
    async def setup(manager: Manager) -> AsyncIterator[None]:
        controller_for(manager, Pod).complete(ignore)
        yield
        left.append("it")

    assert await declared_permissions(setup)
    assert left == ["it"]

    async def hasty(manager: Manager) -> None:
        await manager.live.list(Pod)

    with pytest.raises(SetupError, match="permissions of hasty cannot be found out: it needs the API server") as raised:
        await declared_permissions(hasty)
    assert "manager.add" in str(raised.value)

    async def mistaken(manager: Manager) -> None:
        raise KubernetesError("the context east is not defined")

    with pytest.raises(KubernetesError, match=r"^the context east is not defined$"):
        await declared_permissions(mistaken)


async def test_what_is_dispensable_is_a_warning_that_has_its_rules(
    embedded_control_plane: EmbeddedControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    needed = [Permission(ConfigMap, "list", "watch"), Permission(Pod, "list", "watch")]
    async with restricted_client(embedded_control_plane, needed) as client:
        manager = Manager(client)
        controller_for(manager, ConfigMap).owns(Pod).complete(ignore)
        with caplog.at_level(logging.WARNING):
            async with manager.running():
                await manager.synced()
    (warning,) = [record.message for record in caplog.records if record.name.endswith("preflight")]
    assert 'cannot create, patch resource "events" in API group "events.k8s.io" at the cluster scope' in warning
    assert '  resources: ["configmaps/finalizers"]\n  verbs: ["update"]' in warning


def test_a_subresource_of_a_text_is_part_of_it() -> None:
    with pytest.raises(ValueError, match='write the subresource into the text, "apps/deployments/scale"'):
        Permission("apps/deployments", "patch", subresource="scale")
    assert repr(Permission(Pod, "patch", subresource="status")) == 'Permission(Pod, "patch", subresource="status")'
