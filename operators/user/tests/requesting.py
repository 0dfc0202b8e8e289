"""Requests as they are handed in, and the half of the operator that carries them out, under the role for just that.

Users and their workspaces are made by hand, without a kubeconfig: that is the other half.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from operators.user import (
    Deleterequest,
    DeleterequestSpec,
    Operationrequest,
    OperationrequestSpec,
    Options,
    User,
)
from operators.user.names import CREATOR, OWNER, SYSTEM_NAMESPACE, RoleName, workspace_of
from operators.user.operations import OperationReconciler
from operators.user.request_controllers import add_requests
from operators.user.request_types import Action
from operators.user.roles import cluster_roles
from operators.user.tests.deploying import SOON, deployed, vacant

from kubewright import Client, ControlPlane, Field, Forbidden, Manager, ObjectMeta, Permission
from kubewright.api.core.v1 import Namespace
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.client import MergePatch
from kubewright.client.session import Session
from kubewright.testing import settled, unique_name

MAY_ASK = Permission(Operationrequest, "create", "patch", namespace=SYSTEM_NAMESPACE)

AnyRequest = TypeVar("AnyRequest", bound=Operationrequest | Deleterequest)

_FINISHED = Field("status.phase").satisfies(lambda phase: phase in ("Completed", "Failed"), "is finished")


def requests_only(manager: Manager, options: Options | None = None) -> None:
    """The half of the operator that carries out requests."""
    add_requests(manager, options or Options())


class Desk(NamedTuple):
    """A running operator, a client with all rights, and the operator's own."""

    plane: ControlPlane
    admin: Client
    own: Client
    manager: Manager

    async def user(self, name: str, **labels: str) -> User:
        """A User with a workspace, which is its own and has nothing in it."""
        user = await self.admin.create(User(metadata=ObjectMeta(name=name, labels=labels)))
        metadata = ObjectMeta(
            name=workspace_of(name),
            labels={OWNER: name},
            annotations={CREATOR: name},
            owner_references=[user.as_owner()],
        )
        await self.admin.create(Namespace(metadata=metadata))
        return user

    async def ask(
        self, action: Action, user: str, workspace: str, role: RoleName | None = None, *, name: str = ""
    ) -> Operationrequest:
        """Create a request."""
        return await self.admin.create(operation(action, user, workspace, role, name=name))

    async def carried_out(
        self, action: Action, user: str, workspace: str, role: RoleName | None = None
    ) -> Operationrequest:
        """Create a request, and wait until it is finished."""
        return await self.finished(await self.ask(action, user, workspace, role))

    async def finished(self, request: AnyRequest) -> AnyRequest:
        """Wait until the request is finished, and nothing is to be done any more."""
        found = await self.admin.wait_for(request, _FINISHED, timeout=SOON if is_real_time() else 3600)
        assert found is not None
        await settled(self.manager, quiet=0.1)
        return found

    @property
    def operations(self) -> OperationReconciler:
        """What carries out Operationrequests."""
        reconcilers = (controller.reconciler for controller in self.manager.controllers)
        return next(each for each in reconcilers if isinstance(each, OperationReconciler))

    async def roles(self, workspace: str) -> dict[str, str]:
        """What each role binding in a workspace refers to."""
        found = await self.admin.list(RoleBinding, namespace=workspace)
        return {each.metadata.name: each.role_ref.name for each in found}


async def touch(admin: Client, request: AnyRequest) -> None:
    """Change something that does not matter."""
    change = MergePatch({"metadata": {"labels": {"touched": "yes"}}})
    await admin.patch(type(request), request.key, change)


def is_real_time() -> bool:
    """Whether seconds take a second here."""
    return type(asyncio.get_running_loop()).time is asyncio.BaseEventLoop.time


def operation(
    action: Action, user: str, workspace: str, role: RoleName | None = None, *, name: str = ""
) -> Operationrequest:
    """A request that is not created yet."""
    metadata = ObjectMeta(name=name or unique_name(action), namespace=SYSTEM_NAMESPACE)
    return Operationrequest(
        metadata=metadata, spec=OperationrequestSpec(user=user, namespace=workspace, action=action, role=role)
    )


def deletion(user: str, *, dependents: bool = True, name: str = "") -> Deleterequest:
    """A request that is not created yet."""
    spec = DeleterequestSpec(user=user, delete_dependents=dependents)
    return Deleterequest(metadata=ObjectMeta(name=name or unique_name("delete")), spec=spec)


@asynccontextmanager
async def prepared(plane: ControlPlane) -> AsyncIterator[Client]:
    """A client with the rights of the role, where what the operator needs is there and in force."""
    system = Namespace(metadata=ObjectMeta(name=SYSTEM_NAMESPACE))
    async with deployed(plane, requests_only, system, *cluster_roles()) as client, plane.client() as admin:
        await enforced(admin)
        yield client


async def enforced(admin: Client) -> None:
    """Return when the API server enforces the policy: a moment after it was created."""
    forged = operation("Deprive", "nobody", "ns-nobody")
    forged.metadata.annotations[CREATOR] = "somebody else"
    async with asyncio.timeout(SOON):
        while True:
            try:
                await admin.create(forged, dry_run=True)
            except Forbidden:
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def desk(plane: ControlPlane, admin: Client, own: Client, options: Options | None = None) -> AsyncIterator[Desk]:
    """The operator at work."""
    manager = Manager(own, webhook_address="0")
    requests_only(manager, options)
    async with manager.running():
        yield Desk(plane, admin, own, manager)


@asynccontextmanager
async def virtual_desk(options: Options | None = None) -> AsyncIterator[Desk]:
    """A control plane of its own, for virtual time, with the operator at work on it."""
    async with vacant(prepared) as (plane, admin, own), desk(plane, admin, own, options) as running:
        yield running


class Killed(BaseException):
    """What ends a process raises."""


Send: TypeAlias = Callable[[], Awaitable[object]]


@contextmanager
def intercepted(client: Client, through: Callable[[str, str, Send], Awaitable[object]]) -> Iterator[None]:
    """Has the requests of a client go through a function, which gets verb, path and what sends the request."""
    session = client._operations.session

    async def request(verb: str, target: str, **options: object) -> object:
        send = partial(Session.request, session, verb, target, **options)  # type: ignore[arg-type]  # handed through
        return await through(verb, target, send)

    session.request = request  # type: ignore[method-assign,assignment]  # for a while
    try:
        yield
    finally:
        del session.request  # that of the class is left


@contextmanager
def failing(
    client: Client,
    error: BaseException,
    *,
    at: int = 1,
    method: str = "",
    path: str = "",
    has_effect: bool = False,
) -> Iterator[list[str]]:
    """Has one request of a client fail: that with the number `at`, of those to a path. All of these are yielded.

    Without a `method`, writes are meant.
    """
    seen = list[str]()

    async def through(verb: str, target: str, send: Send) -> object:
        is_meant = (verb == method if method else verb != "GET") and path in target
        if is_meant:
            seen.append(f"{verb} {target}")
        if is_meant and len(seen) == at and not has_effect:
            raise error
        answer = await send()
        if is_meant and len(seen) == at:
            raise error
        return answer

    with intercepted(client, through):
        yield seen
