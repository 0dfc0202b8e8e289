"""Work for a manager that tells of itself, and the world that a manager runs in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.controller import Controller, Queue, Reconciler, Request, Result
from kubewright.controller.source import Channel
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager
from kubewright.manager.leader_election import LeaderElection
from kubewright.testing.virtual_time import run_virtual

LEASE = "operator"

Scenario = Callable[[EmbeddedControlPlane, Client], Coroutine[None, None, None]]


def virtually(test: Scenario) -> Callable[[], None]:
    """The test on an embedded control plane, in virtual time, of which it has an hour. No task may be left behind."""

    async def main() -> None:
        async with (
            asyncio.timeout(3600),
            ControlPlane.embedded(controllers=(), nodes=0) as plane,
            plane.client() as client,
        ):
            before = asyncio.all_tasks()
            await test(plane, client)
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - before
            assert not left, left

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[None]:
    """The manager while the block runs; it has to end cleanly."""
    task = asyncio.create_task(manager.run(), name="manager")
    try:
        yield
    finally:
        manager.stop()
        await task


class Told:
    """What happened, in order."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._news = asyncio.Event()

    def __call__(self, words: str) -> None:
        self.words.append(words)
        self._news.set()

    async def until(self, *words: str) -> None:
        async with asyncio.timeout(300):
            while not set(words) <= set(self.words):
                self._news.clear()
                await self._news.wait()


class Recording:
    """A runnable that tells when it begins and when it ends."""

    def __init__(self, name: str, told: Told, *, needs_leader: bool = True) -> None:
        self.name = name
        self.told = told
        self.needs_leader = needs_leader

    async def run(self) -> None:
        self.told(f"{self.name} begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.told(f"{self.name} ends")


class RecordingSource:
    """A source that gives no keys, and tells when it begins and when it ends."""

    not_ready_reason = None

    def __init__(self, told: Told) -> None:
        self.told = told

    async def run(self, queue: Queue[str]) -> None:
        self.told("source begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.told("source ends")

    async def synced(self) -> None:
        pass


class Passes:
    """A reconciler whose passes take some seconds, and tell when they begin and how they end."""

    def __init__(self, told: Told, seconds: float = 0.0) -> None:
        self.told = told
        self.seconds = seconds

    async def reconcile(self, key: str | Request) -> Result:
        self.told(f"{_name(key)} begins")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.told(f"{_name(key)} is cancelled")
            raise
        self.told(f"{_name(key)} is done")
        return Result()


def _name(key: str | Request) -> str:
    return key if isinstance(key, str) else key.name


def driven(
    manager: Manager,
    reconciler: Reconciler[str],
    *keys: str,
    name: str = "driven",
    workers: int = 1,
    needs_leader: bool = True,
) -> Channel[str]:
    """A controller of the manager's that gets these keys at its start, and more from the channel."""
    channel: Channel[str] = Channel()
    for key in keys:
        channel.send(key)
    built: Controller[str] = Controller(name, reconciler, workers=workers, needs_leader=needs_leader)
    built.watch(channel)
    manager.add(built)
    return channel


def fed(
    manager: Manager,
    told: Told,
    *keys: str,
    seconds: float = 0.0,
    name: str = "fed",
    workers: int = 1,
    needs_leader: bool = True,
) -> Channel[str]:
    """A driven controller whose passes take some seconds, and tell."""
    return driven(manager, Passes(told, seconds), *keys, name=name, workers=workers, needs_leader=needs_leader)


def now() -> float:
    return asyncio.get_running_loop().time()


def config_map(name: str, namespace: str = "default") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


def candidate(client: Client, identity: str, **options: float) -> LeaderElection:
    return LeaderElection(client, LEASE, namespace="default", identity=identity, **options)  # type: ignore[arg-type]  # only numbers


async def holder(client: Client) -> str:
    lease = await client.find(Lease, LEASE, namespace="default")
    return (lease.spec.holder_identity or "") if lease is not None else ""


@asynccontextmanager
async def another_leader(client: Client) -> AsyncIterator[None]:
    """Somebody else holds the lease while the block runs, and gives it back at its end."""
    leads = asyncio.Event()

    async def lead() -> None:
        leads.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(candidate(client, "another").run(lead))
    try:
        await leads.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def eventually(holds: Callable[[], Awaitable[bool] | bool]) -> None:
    """For what nothing notifies of. In virtual time the pauses take no time."""
    async with asyncio.timeout(120):
        while True:
            held = holds()
            if held if isinstance(held, bool) else await held:
                return
            await asyncio.sleep(0.05)


async def is_ready(manager: Manager) -> bool:
    return not await manager.ready.failing()


async def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of what is served here."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), body.decode()
