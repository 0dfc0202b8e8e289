"""The operator of the Widget workload on kubewright: kubewright_widgets operate|read|sync, server in KUBECONFIG.

The modes, the lines on standard output and the signals are those of controller_runtime/main.go, its peer. With
PAGED_LIST=true the cache reads lists in pages instead of having them streamed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time

import msgspec
import uvloop

from bench.peers.widget import STAMP, Widget
from kubewright.api import Condition, ObjectMeta, OwnerReference
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.time import now
from kubewright.client import Client
from kubewright.controller.builder import controller_for
from kubewright.controller.reconcile import Request, Result
from kubewright.controller.source import Channel
from kubewright.manager.log import configure
from kubewright.manager.manager import Manager
from kubewright.manager.program import tune_collector
from kubewright.manager.recorder import Recorder
from kubewright.manager.signals import stop_on_signals

WORKERS = 16

_log = logging.getLogger("widgets")


class Operator:
    """Keeps one ConfigMap per Widget and reports in the status for which generation it did."""

    def __init__(self, client: Client, events: Recorder) -> None:
        self.reconciles = 0
        self._client = client
        self._events = events

    async def reconcile(self, request: Request) -> Result:
        """One reconcile."""
        self.reconciles += 1
        widget = await self._client.find(Widget, request)
        if widget is None or widget.metadata.deletion_timestamp is not None:
            return Result()
        data = {"size": str(widget.spec.size), "payload": widget.spec.payload}
        owner = _controller_reference(widget)
        child = await self._client.find(ConfigMap, request)
        if child is None:
            metadata = ObjectMeta(name=request.name, namespace=request.namespace, owner_references=[owner])
            child = await self._client.create(ConfigMap(metadata=metadata, data=data))
            _log.info("created the ConfigMap")
            self._events.normal(widget, "Created", f"created ConfigMap {request.name}", action="Create", related=child)
        elif child.data != data or owner not in child.metadata.owner_references:
            child.data = data
            child.metadata.owner_references = [owner]
            await self._client.update(child)
        if _set_ready(widget):
            await self._client.status.update(widget)
        return Result()


class Reader:
    """Gets the Widget from the cache, has nothing to do, and notes how old the newest stamp on it is.

    Stamps from before the program do not count.
    """

    def __init__(self, client: Client) -> None:
        self.reconciles = 0
        self.latencies: list[int] = []
        self._client = client
        self._started = time.time_ns()
        self._seen: dict[Request, str] = {}

    async def reconcile(self, request: Request) -> Result:
        """One reconcile."""
        self.reconciles += 1
        widget = await self._client.find(Widget, request)
        if widget is None:
            return Result()
        stamp = widget.metadata.annotations.get(STAMP)
        if stamp is not None and self._seen.get(request) != stamp:
            self._seen[request] = stamp
            if int(stamp) > self._started:
                self.latencies.append((time.time_ns() - int(stamp)) // 1000)
        return Result()


def _controller_reference(widget: Widget) -> OwnerReference:
    return OwnerReference(
        api_version=widget.api_version,
        kind=widget.kind,
        name=widget.metadata.name,
        uid=widget.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def _set_ready(widget: Widget) -> bool:
    """Say that the Widget is as it should be; False when its status says so already."""
    status, generation = widget.status, widget.metadata.generation
    known = next((condition for condition in status.conditions if condition.type == "Ready"), None)
    ready = Condition(
        type="Ready",
        status="True",
        observed_generation=generation,
        last_transition_time=known.last_transition_time if known is not None and known.status == "True" else now(),
        reason="ConfigMapWritten",
        message="the ConfigMap is as the spec says",
    )
    if known == ready and status.observed_generation == generation:
        return False
    status.conditions = [*(condition for condition in status.conditions if condition is not known), ready]
    status.observed_generation = generation or 0
    return True


class Requeuer:
    """On SIGUSR1, enqueues every cached Widget `REQUEUES` times, each time after the time before was worked off."""

    def __init__(self, manager: Manager, reconciler: Operator | Reader, channel: Channel[Request]) -> None:
        self._manager = manager
        self._reconciler = reconciler
        self._channel = channel

    async def run(self) -> None:
        """Wait for the signal, again and again."""
        signalled = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, signalled.set)
        await _say_when_synced(self._manager)
        while True:
            await signalled.wait()
            signalled.clear()
            requests = [widget.key for widget in await self._manager.client.list(Widget)]
            for _ in range(int(os.environ["REQUEUES"])):
                done = self._reconciler.reconciles + len(requests)
                for request in requests:
                    self._channel.send(request)
                while self._reconciler.reconciles < done:
                    await asyncio.sleep(0.001)
            print("requeued", flush=True)


async def _say_when_synced(manager: Manager) -> None:
    # The controller's watch and this one are the same as long as both last.
    with manager.cache.watch(Widget) as widgets:
        await widgets.synced()
        print("synced", flush=True)


async def _sync(manager: Manager) -> None:
    with manager.cache.watch(Widget):
        await _say_when_synced(manager)
        await asyncio.Event().wait()


async def main(mode: str) -> None:
    """Run until SIGTERM, and print what was counted."""
    configure()
    async with Client() as client:
        # The metrics server is on, as its peer's is.
        manager = Manager(client, metrics_address="127.0.0.1:0", stream=os.environ.get("PAGED_LIST") != "true")
        reconciler: Operator | Reader | None = None
        if mode == "sync":
            manager.add(lambda: _sync(manager))
        else:
            builder = controller_for(manager, Widget, workers=WORKERS)
            if mode == "operate":
                reconciler = Operator(manager.client, manager.recorder("widgets"))
                builder.owns(ConfigMap)
            else:
                reconciler = Reader(manager.client)
            channel = Channel[Request]()
            builder.source(channel).complete(reconciler)
            manager.add(Requeuer(manager, reconciler, channel))
        tune_collector(manager)
        async with stop_on_signals(manager.stop):
            await manager.run()
    if reconciler is not None:
        latencies = reconciler.latencies if isinstance(reconciler, Reader) else []
        print(msgspec.json.encode({"reconciles": reconciler.reconciles, "latencies": latencies}).decode())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1]))
