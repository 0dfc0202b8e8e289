"""The processes of a world: managers, each on a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TypedDict

from kubewright.client import Client, Config
from kubewright.client.http.transport import Transport
from kubewright.manager import Manager
from kubewright.manager.leader_election import LeaderElection
from kubewright.testing.exploration.wire import Wire

_LEASE = "explored"
_MAX_CANCELS = 10
_SECONDS_TO_END = 30.0


class _Options(TypedDict):
    preflight: bool
    grace: float
    webhook_address: str


# No API server calls webhooks in virtual time.
_OPTIONS: _Options = {"preflight": False, "grace": 0.0, "webhook_address": "0"}


class ManagerProcess:
    """A manager that runs from the moment it is made until it is cancelled, or fails by itself."""

    def __init__(
        self, name: str, client: Client, manager: Manager, setup: Callable[[Manager], Awaitable[None]]
    ) -> None:
        self.name = name
        self.manager = manager
        self._client = client
        self._setup = setup
        self._is_set_up = asyncio.Event()
        self.task = asyncio.create_task(self._run(), name=name)

    async def _run(self) -> None:
        await self._setup(self.manager)
        self._is_set_up.set()
        await self.manager.run()

    async def begun(self) -> None:
        """Return when its caches are complete, or it has ended before."""
        started = asyncio.create_task(self._synced())
        try:
            await asyncio.wait((self.task, started), return_when=asyncio.FIRST_COMPLETED)
        finally:
            started.cancel()
            await asyncio.wait((started,))

    async def _synced(self) -> None:
        await self._is_set_up.wait()
        await self.manager.synced()

    def activity(self) -> Iterator[str]:
        """What it has to do at once, or failed to do and is going to retry."""
        for controller in self.manager.controllers:
            keys = [*controller.queue.running(), *controller.queue.failed()]
            if keys or len(controller.queue):
                yield f"{controller.name} has work: {', '.join(sorted(map(str, keys))) or 'keys are due'}"

    async def buried(self) -> None:
        """Return when nothing of it runs any more."""
        for _ in range(_MAX_CANCELS):
            self.task.cancel()
            await asyncio.wait((self.task,), timeout=_SECONDS_TO_END)
            if self.task.done():
                break
        else:
            raise RuntimeError(f"{self.name} did not end, although it was cancelled {_MAX_CANCELS} times")
        if not self.task.cancelled():
            self.task.exception()  # or asyncio would log that it was never retrieved
        await self._client.aclose()


class Process(ManagerProcess):
    """A process of the operator: faults strike it, and it may be killed."""

    def __init__(
        self,
        name: str,
        config: Config,
        wire: Wire,
        make: Callable[..., Manager],
        setup: Callable[[Manager], Awaitable[None]],
        *,
        is_elected: bool,
    ) -> None:
        self.wire = wire
        client = Client(config, transport=wire, user_agent="explored", on_warning=lambda warning: None)
        election = None
        if is_elected:
            # Renewed less often than usual: in virtual time nothing is slow, and each renewal costs.
            election = LeaderElection(client, _LEASE, namespace="default", identity=name, retry_period=5.0)
        manager = make(client, election=election, instance="operator", name=name, **_OPTIONS)
        super().__init__(name, client, manager, setup)

    @property
    def is_leading(self) -> bool:
        """Whether it works: it lives and needs no lease, or has it."""
        return not self.task.done() and not self.wire.is_dead and self.manager.elected.is_set()

    @property
    def hot_loop(self) -> str | None:
        """The controller that reconciles one object over and over, if there is one."""
        return next((each.name for each in self.manager.controllers if each.statistics.hot_loops), None)

    def kill(self) -> None:
        """Nothing of it reaches the server any more; it is not waited for."""
        self.wire.die()
        self.task.cancel()


class Others(ManagerProcess):
    """The controllers of others, which no fault strikes."""

    def __init__(self, config: Config, transport: Transport, setup: Callable[[Manager], Awaitable[None]]) -> None:
        client = Client(
            config, transport=transport, user_agent="others", field_manager="others", on_warning=lambda warning: None
        )
        super().__init__("others", client, Manager(client, instance="others", name="others", **_OPTIONS), setup)
