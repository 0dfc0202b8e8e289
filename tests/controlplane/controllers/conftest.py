"""A genuine API server without kube-controller-manager: what the controllers here do not do is not done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from kubewright.api.apps.v1 import Deployment, ReplicaSet
from kubewright.api.core.v1 import Namespace, Pod, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.session import Session
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.testing.clock import VirtualClock
from kubewright.testing.genuine import genuine_control_plane


@pytest.fixture(scope="session")
def api_server() -> Iterator[ControlPlane]:
    with genuine_control_plane(controller_manager=False) as plane:
        yield plane


@pytest.fixture
async def client(api_server: ControlPlane) -> AsyncIterator[Client]:
    async with Client(Config.from_kubeconfig_text(api_server.kubeconfig())) as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    """A namespace of the test's own. It has no service account unless a controller makes one."""
    created = await client.create(Namespace(metadata=ObjectMeta(generate_name="test-")))
    return created.metadata.name


@pytest.fixture
async def pod_namespace(client: Client, namespace: str) -> AsyncIterator[str]:
    """A namespace in which pods are admitted. None is left behind, to take up room on the nodes of the next test."""
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace)))
    yield namespace
    for kind in (Deployment, ReplicaSet, Pod):
        await client.delete_all(kind, namespace=namespace, propagation="Background", grace_period=0)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def start(client: Client) -> AsyncIterator[Callable[[BuiltInController], None]]:
    """Runs a controller until the end of the test, and fails the test when it ended before."""
    tasks: list[asyncio.Task[None]] = []
    yield lambda controller: tasks.append(asyncio.create_task(controller.run()))
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), outcome


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written from now on, such as `PATCH /api/v1/namespaces/a/configmaps/b`; events are left out."""
    seen: list[str] = []
    request = Session.request

    async def recording(self: Session, method: str, target: str, **options: object) -> object:
        path = target.partition("?")[0]
        if method != "GET" and "/events" not in path:
            seen.append(f"{method} {path}")
        return await request(self, method, target, **options)  # type: ignore[arg-type]  # handed through as they are

    monkeypatch.setattr(Session, "request", recording)
    return seen
