"""One process of the operator: a manager on a connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from kubewright.client import Client, Config
from kubewright.manager import Manager
from kubewright.manager.leader_election import LeaderElection
from kubewright.testing.exploration.wire import Wire

_LEASE = "explored"
_MAX_CANCELS = 10
_SECONDS_TO_END = 30.0


class Process:
    """Runs from the moment it is made until it is killed, or fails by itself."""

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
        self.name = name
        self.wire = wire
        self._client = Client(config, transport=wire, user_agent="explored", on_warning=lambda warning: None)
        self.manager = make(
            self._client,
            # Renewed less often than usual: in virtual time nothing is slow, and each renewal costs.
            election=LeaderElection(self._client, _LEASE, namespace="default", identity=name, retry_period=5.0)
            if is_elected
            else None,
            preflight=False,
            grace=0.0,
            webhook_address="0",  # no API server calls them in virtual time
            instance="operator",
            name=name,
        )
        self._setup = setup
        self._is_set_up = asyncio.Event()
        self.task = asyncio.create_task(self._run(), name=name)

    async def _run(self) -> None:
        await self._setup(self.manager)
        self._is_set_up.set()
        await self.manager.run()

    @property
    def is_leading(self) -> bool:
        """Whether it works: it lives and needs no lease, or has it."""
        return not self.task.done() and not self.wire.is_dead and self.manager.elected.is_set()

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

    @property
    def hot_loop(self) -> str | None:
        """The controller that reconciles one object over and over, if there is one."""
        return next((each.name for each in self.manager.controllers if each.statistics.hot_loops), None)

    def kill(self) -> None:
        """Nothing of it reaches the server any more; it is not waited for."""
        self.wire.die()
        self.task.cancel()

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
