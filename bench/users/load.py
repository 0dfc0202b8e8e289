"""What people do: so many users, each of whom gets roles in the workspaces of three others.

Roles are first granted, then some of them are changed and taken, five requests for each user in all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from operators.user import Operationrequest, OperationrequestSpec, User, UserSpec
from operators.user.names import ROLE_NAMES, SYSTEM_NAMESPACE, RoleName, binding_of, workspace_of
from operators.user.request_types import Action

from bench.in_flight import each
from bench.users.phases import Phases
from kubewright import Client, ObjectMeta

PATIENCE = 1_200.0
"""Seconds that one part of the run may take, on a machine with others."""

_GRANTS, _CHANGES = 3, 2


class Load:
    """The users and requests of one run."""

    def __init__(self, client: Client, users: int) -> None:
        self.client = client
        self.users = users
        self.grants = _GRANTS * users
        self.requests = (_GRANTS + _CHANGES) * users

    async def create_users(self) -> None:
        """Create the users, and wait until all are active."""

        async def create(number: int) -> None:
            await self.client.create(User(metadata=ObjectMeta(name=self.user(number)), spec=UserSpec()))

        await each(range(self.users), create)
        active: set[str] = set()
        async with self.client.watch(User, timeout=PATIENCE) as watched:
            async for event in watched:
                if event.type != "BOOKMARK" and event.object.status.phase == "Active":
                    active.add(event.object.metadata.name)
                if len(active) == self.users:
                    return

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Phases]:
        """The phases that requests reach while the block runs."""
        phases = Phases(self.client)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(phases.follow())
            yield phases
            task.cancel()

    async def request_grants(self) -> None:
        """Request for each user a role of each kind, in the workspaces of three others."""
        wanted = [(number, offset) for number in range(self.users) for offset in range(_GRANTS)]
        await each(wanted, lambda item: self._request(*item, "Grant", ROLE_NAMES[item[1]]))

    async def request_changes(self) -> None:
        """Request that each user, in the second of them, is Developer instead, and nothing in the third."""
        await each(range(self.users), lambda number: self._request(number, 1, "Update", "Developer"))
        await each(range(self.users), lambda number: self._request(number, 2, "Deprive", None))

    def expected(self) -> dict[tuple[str, str], RoleName]:
        """The role bindings that there should be in the end, by namespace and name."""
        found: dict[tuple[str, str], RoleName] = {}
        for number in range(self.users):
            user = self.user(number)
            found[workspace_of(user), user] = "Owner"
            for offset, role in ((0, ROLE_NAMES[0]), (1, "Developer")):
                found[self._workspace(number, offset), binding_of(user, role)] = role
        return found

    def user(self, number: int) -> str:
        """The name of a user; those after the last are the first ones again."""
        return f"user-{number % self.users:04}"

    def _workspace(self, number: int, offset: int) -> str:
        return workspace_of(self.user(number + 1 + offset))

    async def _request(self, number: int, offset: int, action: Action, role: RoleName | None) -> None:
        user, workspace = self.user(number), self._workspace(number, offset)
        name = f"{user}-{offset}-{action.lower()}"
        spec = OperationrequestSpec(user=user, namespace=workspace, action=action, role=role)
        metadata = ObjectMeta(name=name, namespace=SYSTEM_NAMESPACE)
        await self.client.create(Operationrequest(metadata=metadata, spec=spec))
