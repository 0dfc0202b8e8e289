"""Candidates for one lease, in virtual time on an embedded control plane."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar

import pytest

from kubewright.api.coordination.v1 import Lease
from kubewright.api.time import MicroTime
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.testing.virtual_time import VirtualTimeLoop, run_virtual

NAME = "podmanager"
ASKING: ContextVar[str] = ContextVar("asking", default="")


class BlockableLoop(VirtualTimeLoop):
    """Virtual time in which the loop can be blocked: timers come due, and nothing is called meanwhile."""

    blocked = 0.0

    def time(self) -> float:
        return super().time() + self.blocked

    def block(self, seconds: float) -> None:
        self.blocked += seconds


class Candidate:
    """An election in a task of its own, and a record of what it did when."""

    def __init__(self, client: Client, identity: str, **options: float | Callable[[], MicroTime]) -> None:
        self.election = LeaderElection(client, NAME, namespace="default", identity=identity, **options)  # type: ignore[arg-type]  # of several types
        self.leads = asyncio.Event()
        self.began = self.ended = -1.0
        self.holder_at_end = ""
        self.client = client
        self.may_end = asyncio.Event()
        self.drain = 0.0
        self.is_stubborn = False
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        ASKING.set(self.election.identity)
        await self.election.run(self.lead)

    async def lead(self) -> None:
        assert self.election.is_leader
        self.began = asyncio.get_running_loop().time()
        self.leads.set()
        try:
            while True:
                try:
                    await self.may_end.wait()
                    break
                except asyncio.CancelledError:
                    if self.is_stubborn:
                        continue
                    await asyncio.sleep(self.drain)
                    raise
        finally:
            self.ended = asyncio.get_running_loop().time()

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task

    async def lost(self) -> LeadershipLost:
        assert self.task is not None
        with pytest.raises(LeadershipLost) as lost:
            await self.task
        return lost.value


@asynccontextmanager
async def started(plane: EmbeddedControlPlane, *identities: str, **options: float) -> AsyncIterator[list[Candidate]]:
    """Candidates that compete, the first of which leads already."""
    async with plane.client() as client:
        candidates = [Candidate(client, identity, **options) for identity in identities]
        try:
            for candidate in candidates:
                candidate.start()
                await candidates[0].leads.wait()
            yield candidates
        finally:
            for candidate in candidates:
                if candidate.task is not None and not candidate.task.done():
                    candidate.may_end.set()
                    candidate.task.cancel()
                    await asyncio.wait([candidate.task])


def virtually(test: Callable[[EmbeddedControlPlane], Coroutine[None, None, None]]) -> Callable[[], None]:
    """The test on an embedded control plane, in virtual time, of which it has an hour."""

    async def main() -> None:
        async with asyncio.timeout(3600), ControlPlane.embedded(controllers=(), nodes=0) as plane:
            await test(plane)

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def by(identity: str, *verbs: str) -> Callable[[Target], bool]:
    """Requests of one candidate for leases."""
    return lambda target: (
        target.resource == "leases" and ASKING.get() == identity and (not verbs or target.verb in verbs)
    )


def now() -> float:
    return asyncio.get_running_loop().time()


async def stored(client: Client) -> Lease:
    return await client.get(Lease, NAME, namespace="default")
