"""Work for a manager that keeps a journal, and the surroundings that a manager runs in."""

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


class Journal:
    """What happened, in order."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, entry: str) -> None:
        self.entries.append(entry)
        self._changed.set()

    async def until(self, *entries: str) -> None:
        async with asyncio.timeout(300):
            while not set(entries) <= set(self.entries):
                self._changed.clear()
                await self._changed.wait()


class Recording:
    """A runnable that notes when it begins and when it ends."""

    def __init__(self, name: str, journal: Journal, *, needs_leader: bool = True) -> None:
        self.name = name
        self.journal = journal
        self.needs_leader = needs_leader

    async def run(self) -> None:
        self.journal(f"{self.name} begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.journal(f"{self.name} ends")


class RecordingSource:
    """A source that gives no keys, and notes when it begins and when it ends."""

    not_ready_reason = None

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    async def run(self, queue: Queue[str]) -> None:
        self.journal("source begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.journal("source ends")

    async def synced(self) -> None:
        pass


class Reconciles:
    """A reconciler that takes some seconds, and notes when a reconcile begins and how it ends."""

    def __init__(self, journal: Journal, seconds: float = 0.0) -> None:
        self.journal = journal
        self.seconds = seconds

    async def reconcile(self, key: str | Request) -> Result:
        self.journal(f"{_name(key)} begins")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.journal(f"{_name(key)} is cancelled")
            raise
        self.journal(f"{_name(key)} is done")
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
    journal: Journal,
    *keys: str,
    seconds: float = 0.0,
    name: str = "fed",
    workers: int = 1,
    needs_leader: bool = True,
) -> Channel[str]:
    """A driven controller whose reconciles take some seconds, and are noted."""
    return driven(manager, Reconciles(journal, seconds), *keys, name=name, workers=workers, needs_leader=needs_leader)


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
    """Another candidate holds the lease while the block runs, and releases it at its end."""
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
