"""One source, every control plane: `control_plane` is each of them in turn; and what an operator needs to run on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest
from hypothesis import settings

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.client.wait import established, exists
from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager
from kubewright.manifest.crd import definition_of
from kubewright.testing.namespaces import unique_name

pytest_plugins = ["pytester"]

# No test needs an idle machine: how long one example takes says nothing.
settings.register_profile("kubewright", deadline=None)
settings.load_profile("kubewright")


@pytest.fixture(params=["embedded", "real"])
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    plane = request.getfixturevalue(f"{request.param}_control_plane")
    assert isinstance(plane, ControlPlane)
    return plane


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Client]:
    async with control_plane.client() as client:
        yield client


@pytest.fixture
async def own_namespace(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own, on the control plane it runs on."""
    created = await admin.create(Namespace(metadata=ObjectMeta(name=unique_name(request.node.name))))
    await admin.wait_for(ServiceAccount, "default", exists, namespace=created.metadata.name, timeout=60)
    yield created.metadata.name
    await admin.delete(created, missing_ok=True)


@pytest.fixture
def install(admin: Client) -> Callable[[type[Object]], Awaitable[None]]:
    """Install the definition of a kind. It stays: the real control plane serves a whole test run."""

    async def installed(kind: type[Object]) -> None:
        definition = definition_of(kind)
        with suppress(AlreadyExists):
            await admin.create(definition)
        await admin.wait_for(type(definition), definition.metadata.name, established, timeout=30)

    return installed


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
