"""Simulated nodes: Ready, with ample capacity, and labelled so that they are not mistaken for machines.

They are registered at the start and when they recover from a failure, and they have heartbeats. Other changes,
cordons and deletions are left alone, as a test of their effect on pods needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Address

from kubewright.api.core.v1 import Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo
from kubewright.api.meta import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.controller import Channel, Request
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.node_heartbeats import Heartbeats, Readers
from kubewright.controlplane.controllers.node_script import NodeScript
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.patterns.conditions import is_true

SIMULATED = "kubewright.dev/simulated"
"""The label of a node on which the pod simulator, and nothing else, runs the pods."""

CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}

# Set aside for tests of networks (RFC 2544): no Service, pod or machine has an address there.
_NODE_NETWORK = IPv4Address("198.18.0.0")
# Each node has a part of 256 addresses, as kube-controller-manager assigns them.
_POD_NETWORK = IPv4Address("10.244.0.0")

_NOT_READY = "node.kubernetes.io/not-ready"


class SimulatedNodes:
    """Registers `count` nodes, `node-1` and so on, each with `capacity`, and sends their heartbeats."""

    name = "nodes"

    def __init__(
        self,
        client: Client,
        *,
        count: int = 1,
        capacity: Mapping[str, str] = CAPACITY,
        version: str = "v1.36.4",
        script: NodeScript | None = None,
        readers: Readers | None = None,
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._client = client
        self._runtime = Runtime(client, cache)
        self._clock = clock or SystemClock()
        self._capacity = {name: Quantity(amount) for name, amount in capacity.items()}
        self._version = version
        self._script = script or NodeScript(self._clock)
        self._heartbeats = Heartbeats(client, self._script, self._clock, readers)
        self._numbers = {Request("", f"node-{number}"): number for number in range(1, count + 1)}
        for request in self._numbers:
            self._script.register(request.name)
        self._unregistered = set(self._numbers)
        self.registered = asyncio.Event()
        """Set when all nodes are there and Ready."""

    async def run(self) -> None:
        """Register the nodes and send heartbeats until cancelled."""
        if not self._numbers:
            self.registered.set()
        nodes = Channel[Request]("start")
        for request in self._numbers:
            nodes.send(request)
        unsubscribe = self._script.subscribe(lambda name: nodes.send(Request("", name)))
        try:
            await self._runtime.run(self.name, self.reconcile, nodes, beside=(self._heartbeats.run,))
        finally:
            unsubscribe()

    async def reconcile(self, request: Request) -> None:
        """Make sure that one node is registered and Ready, unless it has failed."""
        if request not in self._numbers or self._script.failed_at(request.name) is not None:
            return
        number = self._numbers[request]
        try:
            node = await self._client.create(_node(request.name, number))
        except AlreadyExists:
            node = await self._client.get(Node, request.name)
        # A node without a status is soon Ready=Unknown: kube-controller-manager sets that without heartbeats.
        if not is_true(node, "Ready"):
            node.status = self._status(request.name, number, self._clock.now().replace(microsecond=0))
            node = await self._client.status.update(node)
        # The server taints every new node until its first sign of life.
        node.spec.taints = [taint for taint in node.spec.taints if taint.key != _NOT_READY]
        node = await self._client.patch(node)
        self._heartbeats.add(node)
        self._unregistered.discard(request)
        if not self._unregistered:
            self.registered.set()

    def _status(self, name: str, number: int, now: datetime) -> NodeStatus:
        return NodeStatus(
            addresses=[
                NodeAddress(type="InternalIP", address=str(_NODE_NETWORK + number)),
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


def _node(name: str, number: int) -> Node:
    pods = f"{_POD_NETWORK + 256 * (number - 1)}/24"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        SIMULATED: "true",
    }
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(pod_cidr=pods, pod_cidrs=[pods]))
