"""The operator on a control plane as its manifests deploy it: with its role and nothing else, and what it needs."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar
from unittest.mock import patch

from operators.user import Deleterequest, Operationrequest, Options, Quota, User, UserSpec, request_guard, setup
from operators.user.kubeconfig import KEY
from operators.user.names import SYSTEM_NAMESPACE, kubeconfig_of

from kubewright import Client, Config, ControlPlane, Manager, ObjectMeta, condition
from kubewright.api import Object
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.client.errors import Unauthorized
from kubewright.client.wait import deleted
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager.roles import declared_permissions
from kubewright.testing import restricted_client, settled

SOON = 90
"""Seconds: a real garbage collector learns of a new kind after 30 s."""

KINDS = (User, Operationrequest, Deleterequest)

PlaneT = TypeVar("PlaneT", bound=ControlPlane)


@asynccontextmanager
async def deployed(
    plane: ControlPlane, setup: Callable[[Manager], None] = setup, *more: Object
) -> AsyncIterator[Client]:
    """A client with the rights of the operator's role, where what it needs has been applied, and `more`."""
    made: list[Manager] = []

    def manager(client: Client) -> Manager:
        made.append(Manager(client, webhook_address="0"))
        return made[0]

    needed = await declared_permissions(setup, manager=manager)
    async with plane.client() as admin:
        for obj in (*more, *made[0].required_objects):
            await admin.apply(obj, force=True)
    with believing_the_policy():
        async with restricted_client(plane, needed) as client:
            yield client


@contextmanager
def believing_the_policy() -> Iterator[None]:
    """No request is too early for the policy, however new that is: tests that need it wait until it is in force."""
    with patch.object(request_guard, "ENFORCED_AFTER", timedelta(0)):
        yield


class Site(NamedTuple, Generic[PlaneT]):
    """A running operator, a client with all rights, and the operator's own."""

    plane: PlaneT
    admin: Client
    own: Client
    manager: Manager

    async def create(self, name: str = "alice", spec: UserSpec | None = None) -> User:
        """A User who has everything, when nothing is to be done any more."""
        return await self.active(await self.admin.create(User(metadata=ObjectMeta(name=name), spec=spec or UserSpec())))

    async def active(self, user: User) -> User:
        """The User as it is when it has everything and nothing is to be done any more."""
        await self.admin.wait_for(user, condition("Ready"), timeout=SOON)
        await settled(self.manager)
        return await self.admin.get(user)

    async def secret(self, name: str = "alice") -> Secret:
        """The one with the kubeconfig."""
        return await self.admin.get(Secret, kubeconfig_of(name), namespace=SYSTEM_NAMESPACE)

    async def kubeconfig(self, name: str = "alice") -> Config:
        """What the User would use."""
        secret = await self.secret(name)
        return Config.from_kubeconfig_text(base64.b64decode(secret.data[KEY]).decode())

    async def delete(self, user: User) -> None:
        """Delete the User, and wait until it is gone."""
        await self.admin.delete(user, missing_ok=True)
        await self.admin.wait_for(user, deleted, timeout=SOON)

    @property
    def reconciles(self) -> int:
        """How many there were."""
        return sum(sum(controller.statistics.results.values()) for controller in self.manager.controllers)


async def is_accepted(config: Config) -> bool:
    """Whether the server knows who has this kubeconfig."""
    async with Client(config) as client:
        try:
            await client.list(ConfigMap, namespace=config.namespace)
        except Unauthorized:
            return False
        return True


@asynccontextmanager
async def site(options: Options | None = None, quota: Quota | None = None) -> AsyncIterator[Site[EmbeddedControlPlane]]:
    """A control plane of its own, for virtual time, with the operator at work on it."""
    async with vacant() as (plane, admin, own), operating(plane, admin, own, options, quota) as running:
        yield running


@asynccontextmanager
async def vacant(
    deploy: Callable[[ControlPlane], AbstractAsyncContextManager[Client]] = deployed,
) -> AsyncIterator[tuple[EmbeddedControlPlane, Client, Client]]:
    """The same before the operator is started: the control plane, a client with all rights, the operator's own."""
    async with (
        ControlPlane.embedded(definitions=KINDS, nodes=0) as plane,
        plane.client() as admin,
        deploy(plane) as own,
    ):
        yield plane, admin, own


@asynccontextmanager
async def operating(
    plane: PlaneT, admin: Client, own: Client, options: Options | None = None, quota: Quota | None = None
) -> AsyncIterator[Site[PlaneT]]:
    """The operator at work."""
    manager = Manager(own, webhook_address="0")
    setup(manager, options, quota=quota)
    async with manager.running():
        yield Site(plane, admin, own, manager)
