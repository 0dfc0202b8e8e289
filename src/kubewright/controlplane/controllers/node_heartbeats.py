"""The heartbeats of simulated nodes: a Lease that is renewed every 10 s, and the times in the status every 5 minutes.

Beside an embedded server they are written only when a client can see them: before it reads, and as long as it watches.
A control plane that is at rest for a day would do little else otherwise. To any other server they are always sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Protocol

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Node
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.time import MicroTime
from kubewright.client import Client
from kubewright.controlplane.controllers.clock import Clock, Timer
from kubewright.controlplane.controllers.node_script import NodeScript

NAMESPACE = "kube-node-lease"

_LEASE_SECONDS, _RENEWAL_SECONDS = 40, 10.0
_STATUS_SECONDS = 300.0
_RESOURCES = ("leases", "nodes")


class Readers(Protocol):
    """The clients of a server that are not part of the control plane."""

    def before_read(self, resource: str, refresh: Callable[[], Awaitable[None]]) -> None:
        """Call `refresh` before a client gets, lists or watches objects of a resource."""

    def is_watched(self, resource: str) -> bool:
        """Whether a client watches objects of a resource now."""


class Heartbeats:
    """Keeps the Leases and the statuses of nodes fresh, except of those that have failed."""

    def __init__(self, client: Client, script: NodeScript, clock: Clock, readers: Readers | None) -> None:
        self._client = client
        self._script = script
        self._clock = clock
        self._readers = readers
        self._uids: dict[str, str] = {}
        self._leases: dict[str, Lease] = {}
        self._reported: dict[str, datetime] = {}
        # Of two clients that read at the same time, both are to see what the first one causes to be written.
        self._lock = asyncio.Lock()
        self._due = asyncio.Event()
        self._timer: Timer | None = None

    def add(self, node: Node) -> None:
        """A node that was just registered, or has just reported its status."""
        name = node.metadata.name
        if self._uids.get(name) != node.metadata.uid:
            self._leases.pop(name, None)
        self._uids[name] = node.metadata.uid
        self._reported[name] = self._clock.now()
        if self._readers is None:
            self._due.set()

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        if self._readers is not None:
            for resource in _RESOURCES:
                self._readers.before_read(resource, self._before_read)
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                if self._readers is None or any(map(self._readers.is_watched, _RESOURCES)):
                    await self.send()
                    self._send_later()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def send(self) -> None:
        """Write what is due."""
        async with self._lock:
            for name in list(self._uids):
                if self._script.failed_at(name) is not None:
                    continue
                try:
                    await self._send(name)
                except KubernetesError:
                    # As for a kubelet: the next one may succeed.
                    self._leases.pop(name, None)

    async def _before_read(self) -> None:
        await self.send()
        # Again if this is the beginning of a watch, which is known when it has begun.
        self._send_later()

    def _send_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(_RENEWAL_SECONDS, self._due.set)

    async def _send(self, name: str) -> None:
        now = self._clock.now()
        lease = self._leases.get(name)
        if lease is None or lease.spec.renew_time is None or _is_past(lease.spec.renew_time, _RENEWAL_SECONDS, now):
            await self._renew(name, lease, now)
        if _is_past(self._reported[name], _STATUS_SECONDS, now):
            node = await self._client.find(Node, name)
            if node is None or node.metadata.uid != self._uids[name]:
                return
            for condition in node.status.conditions:
                condition.last_heartbeat_time = now.replace(microsecond=0)
            await self._client.status.patch(node)
            self._reported[name] = now

    async def _renew(self, name: str, lease: Lease | None, now: datetime) -> None:
        lease = lease or await self._client.find(Lease, name, namespace=NAMESPACE)
        is_new = lease is None
        if lease is None:
            if await self._client.find(Node, name) is None:
                return
            lease = Lease(metadata=ObjectMeta(name=name, namespace=NAMESPACE))
        # One that an earlier node of this name has left is about to be deleted with its owner.
        owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=self._uids[name])
        lease.metadata.owner_references = [owner]
        lease.spec.holder_identity, lease.spec.lease_duration_seconds = name, _LEASE_SECONDS
        lease.spec.renew_time = MicroTime.from_datetime(now)
        self._leases[name] = await (self._client.create(lease) if is_new else self._client.update(lease))


def _is_past(since: datetime, seconds: float, now: datetime) -> bool:
    return since + timedelta(seconds=seconds) <= now
