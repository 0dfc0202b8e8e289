"""Simulated nodes: Ready, with ample capacity, and labelled so that they are not mistaken for machines.

They are registered once, at the start. Later changes, cordons and deletions are left alone, as a test of
their effect on pods needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime

from kubewright.api.core.v1 import Node, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo
from kubewright.api.meta import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.controller import Channel, Request
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.patterns.conditions import is_true

SIMULATED = "kubewright.dev/simulated"
"""The label of a node on which the pod simulator, and nothing else, runs the pods."""

CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}

_NOT_READY = "node.kubernetes.io/not-ready"


class SimulatedNodes:
    """Registers `count` nodes, `node-1` and so on, each with `capacity`."""

    name = "nodes"

    def __init__(
        self,
        client: Client,
        *,
        count: int = 1,
        capacity: Mapping[str, str] = CAPACITY,
        version: str = "v1.36.4",
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._client = client
        self._runtime = Runtime(client, cache)
        self._clock = clock or SystemClock()
        self._capacity = {name: Quantity(amount) for name, amount in capacity.items()}
        self._version = version
        self._left = count
        self.registered = asyncio.Event()
        """Set when all nodes are there and Ready."""
        self._numbers = {Request("", f"node-{number}"): number for number in range(1, count + 1)}

    async def run(self) -> None:
        """Register the nodes, then wait until cancelled."""
        if not self._numbers:
            self.registered.set()
        nodes = Channel[Request]("start")
        for request in self._numbers:
            nodes.send(request)
        await self._runtime.run(self.name, self.reconcile, nodes)

    async def reconcile(self, request: Request) -> None:
        """Make sure that one node is registered and Ready."""
        node = Node(metadata=ObjectMeta(name=request.name, labels=_labels(request.name)))
        try:
            node = await self._client.create(node)
        except AlreadyExists:
            node = await self._client.get(Node, request.name)
        # A node without a status is soon Ready=Unknown: kube-controller-manager sets that without heartbeats.
        if not is_true(node, "Ready"):
            node.status = self._status(request.name, self._numbers[request], self._clock.now().replace(microsecond=0))
            node = await self._client.status.update(node)
        # The server taints every new node until its first sign of life.
        node.spec.taints = [taint for taint in node.spec.taints if taint.key != _NOT_READY]
        await self._client.patch(node)
        self._left -= 1
        if not self._left:
            self.registered.set()

    def _status(self, name: str, number: int, now: datetime) -> NodeStatus:
        return NodeStatus(
            addresses=[
                NodeAddress(type="InternalIP", address=f"10.0.{number // 256}.{number % 256}"),
                NodeAddress(type="Hostname", address=name),
            ],
            capacity=self._capacity,
            allocatable=self._capacity,
            conditions=[
                NodeCondition(
                    type=type_,
                    status=status,
                    reason=reason,
                    message=message,
                    last_heartbeat_time=now,
                    last_transition_time=now,
                )
                for type_, status, reason, message in _CONDITIONS
            ],
            node_info=NodeSystemInfo(
                architecture="amd64",
                operating_system="linux",
                os_image="simulated",
                kernel_version="simulated",
                container_runtime_version="simulated://1",
                kubelet_version=self._version,
            ),
        )


_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def _labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        SIMULATED: "true",
    }
