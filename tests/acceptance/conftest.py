"""What an operator's test needs: its kinds installed, a manager, and that manager running for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest

from kubewright import AlreadyExists, Client, ControlPlane, Manager
from kubewright.api.resource import Object
from kubewright.client.wait import established
from kubewright.manifest.crd import definition_of


@pytest.fixture
def install(admin: Client) -> Callable[[type[Object]], Awaitable[None]]:
    """Install the definition of a kind. It stays: the real control plane serves a whole test run."""

    async def installed(kind: type[Object]) -> None:
        definition = definition_of(kind)
        with suppress(AlreadyExists):
            await admin.create(definition)
        await admin.wait_for(type(definition), established, name=definition.metadata.name, timeout=30)

    return installed


@pytest.fixture
async def manager(control_plane: ControlPlane, own_namespace: str) -> AsyncIterator[Manager]:
    """A manager of the test's own namespace, with connections of its own."""
    async with control_plane.client() as client:
        yield Manager(client, namespaces=[own_namespace])


@pytest.fixture
def running() -> Callable[[Manager], AbstractAsyncContextManager[None]]:
    """`async with running(manager)`: it runs inside, and has ended without a failure after it."""

    @asynccontextmanager
    async def run(manager: Manager) -> AsyncIterator[None]:
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            try:
                yield
            finally:
                manager.stop()

    return run
