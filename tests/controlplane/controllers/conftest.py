"""A genuine API server without kube-controller-manager: what the controllers here do not do is not done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api.apps.v1 import Deployment, ReplicaSet
from kubewright.api.core.v1 import Namespace, Pod, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.session import Session
from kubewright.controlplane import BinariesNotFound, ControlPlane
from kubewright.controlplane.controllers.clock import Timer
from kubewright.controlplane.controllers.loop import Controller


@pytest.fixture(scope="session")
def api_server() -> Iterator[ControlPlane]:
    plane = ControlPlane.real(controller_manager=False)
    try:
        _run(plane.start())
    except BinariesNotFound as error:
        pytest.skip(f"needs a real control plane: {error}")
    yield plane
    _run(plane.stop())


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


class ManualClock:
    """Time that passes only when `advance` says so, also for whom waits on it."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._timers: list[_Timer] = []

    def now(self) -> datetime:
        return self._now

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = _Timer(self._now + timedelta(seconds=seconds), callback)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        due = [timer for timer in self._timers if timer.due <= self._now]
        self._timers = [timer for timer in self._timers if timer.due > self._now]
        for timer in sorted(due, key=lambda timer: timer.due):
            timer.callback()


class _Timer:
    def __init__(self, due: datetime, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback = callback

    def cancel(self) -> None:
        self.callback = lambda: None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def start(client: Client) -> AsyncIterator[Callable[[Controller], None]]:
    """Runs a controller until the end of the test, and fails the test when it ended before."""
    tasks: list[asyncio.Task[None]] = []
    yield lambda controller: tasks.append(asyncio.create_task(controller.run()))
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(outcome, asyncio.CancelledError), outcome


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is written from now on, such as `PATCH /api/v1/namespaces/a/configmaps/b`."""
    seen: list[str] = []
    request = Session.request

    async def recording(self: Session, method: str, target: str, **options: object) -> object:
        if method != "GET":
            seen.append(f"{method} {target.partition('?')[0]}")
        return await request(self, method, target, **options)  # type: ignore[arg-type]  # handed through as they are

    monkeypatch.setattr(Session, "request", recording)
    return seen


def _run(work: Coroutine[None, None, None]) -> None:
    # In a thread of its own: the event loop of this one, if any, belongs to the test framework.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
