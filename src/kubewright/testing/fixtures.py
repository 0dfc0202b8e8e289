"""What the pytest fixtures do; `plugin` declares them. Imported when the first of them is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.client.wait import established, exists
from kubewright.controlplane.definitions import DefinitionSource, load_definitions
from kubewright.manager import Manager
from kubewright.testing.arguments import check_manager
from kubewright.testing.definitions import redefine
from kubewright.testing.namespaces import unique_name

_TIMEOUT = 60.0


class Install(Protocol):
    """The type of the fixture `install`."""

    async def __call__(self, *sources: DefinitionSource) -> None:
        """Install the definitions of kinds, given as classes or as files, and return when they are served."""


class Running(Protocol):
    """The type of the fixture `running`."""

    def __call__(self, manager: Manager, *, timeout: float = _TIMEOUT) -> AbstractAsyncContextManager[None]:
        """The manager runs while the block does, which must not take longer than `timeout`, and has ended after it."""


def install_with(client: Client) -> Install:
    """`install` on the control plane of a client. What exists already is left as it is, unless it lacks a version."""

    async def install(*sources: DefinitionSource) -> None:
        definitions = [loaded.value for loaded in load_definitions(sources)]
        for definition in definitions:
            with suppress(AlreadyExists):
                await client.create(definition)
        for definition in definitions:
            found = await client.wait_for(type(definition), definition.metadata.name, established, timeout=_TIMEOUT)
            versions = {each.name for each in definition.spec.versions}
            if found is not None and not versions <= {each.name for each in found.spec.versions}:
                await redefine(client, definition)

    return install


async def new_namespace(client: Client, test_name: str) -> str:
    """The name of a fresh namespace that takes pods."""
    created = await client.create(Namespace(metadata=ObjectMeta(name=unique_name(test_name))))
    # Pods are admitted once their service account is there.
    await client.wait_for(ServiceAccount, "default", exists, namespace=created.metadata.name, timeout=_TIMEOUT)
    return created.metadata.name


@asynccontextmanager
async def own_namespace(client: Client, test_name: str) -> AsyncIterator[str]:
    """The name of a fresh namespace that takes pods; it and everything in it are deleted after the block."""
    name = await new_namespace(client, test_name)
    yield name
    await client.delete(Namespace, name, missing_ok=True)


@asynccontextmanager
async def run_manager(manager: Manager, *, timeout: float = _TIMEOUT) -> AsyncIterator[None]:
    """`running`."""
    check_manager(manager, "running(manager)")
    async with asyncio.timeout(timeout), manager.running():
        yield
