"""What a manager serves: probes, metrics and debugging, each on an address of its own or nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from kubewright.manager.health import Checks
from kubewright.manager.metrics import Metrics
from kubewright.manager.serving import Server


class Endpoints:
    """The servers of one manager."""

    def __init__(self, *, health_address: str, metrics_address: str, debug_address: str) -> None:
        self.health = Checks("healthz")
        self.ready = Checks("readyz")
        self.metrics = Metrics()
        self.debug_server = Server(debug_address, option="debug_address")
        self._health_server = Server(health_address, option="health_address")
        self._metrics_server = Server(metrics_address, option="metrics_address")
        self.health.serve(self._health_server)
        self.ready.serve(self._health_server)
        self._metrics_server.route("/metrics", self.metrics.answer)

    @property
    def serves_metrics(self) -> bool:
        """Whether anybody can scrape the metrics."""
        return self._metrics_server.is_enabled

    @property
    def ports(self) -> dict[str, int]:
        """Where the servers listen, by name; 0 for those that are off."""
        return {
            "health": self._health_server.port,
            "metrics": self._metrics_server.port,
            "debug": self.debug_server.port,
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        async with AsyncExitStack() as servers:
            for server in (self._health_server, self._metrics_server, self.debug_server):
                await servers.enter_async_context(server)
            yield
