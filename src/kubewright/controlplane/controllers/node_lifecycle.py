"""The health of nodes: Ready=Unknown without heartbeats, the taints that follow from conditions, pods not ready.

A node that has sent no heartbeat for 50 s is unreachable. Its taints with the effect NoExecute, by which its pods are
evicted (see `taint_eviction`), are set only while a node is ready: when none is, the network of the control plane is
the more likely cause. The heartbeats of simulated nodes need not be read: they report themselves when they fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Node, NodeCondition, Pod, Taint
from kubewright.api.resources import Object
from kubewright.cache import Cache, WatchHandle
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.node_heartbeats import NAMESPACE
from kubewright.controlplane.controllers.node_script import NodeScript
from kubewright.controlplane.controllers.nodes import SIMULATED
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.patterns.conditions import get_condition, is_true

_GRACE, _STARTUP_GRACE = timedelta(seconds=50), timedelta(seconds=60)
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")

_PREFIX = "node.kubernetes.io/"
_NOT_READY, _UNREACHABLE = f"{_PREFIX}not-ready", f"{_PREFIX}unreachable"
_UNSCHEDULABLE = f"{_PREFIX}unschedulable"
_TAINTS = {
    ("Ready", "False"): _NOT_READY,
    ("Ready", "Unknown"): _UNREACHABLE,
    ("MemoryPressure", "True"): f"{_PREFIX}memory-pressure",
    ("DiskPressure", "True"): f"{_PREFIX}disk-pressure",
    ("NetworkUnavailable", "True"): f"{_PREFIX}network-unavailable",
    ("PIDPressure", "True"): f"{_PREFIX}pid-pressure",
}
_MANAGED = {
    *((key, "NoSchedule") for key in (*_TAINTS.values(), _UNSCHEDULABLE)),
    *((key, "NoExecute") for key in (_NOT_READY, _UNREACHABLE)),
}

# All nodes are reconciled at once: whether pods are evicted from one depends on the others.
_ALL = Request("", "nodes")


class NodeLifecycle(ReportingController):
    """Marks nodes without heartbeats, and taints nodes by their conditions."""

    name = "node-lifecycle"
    component = "node-controller"

    _nodes: WatchHandle[Node]
    _pods: WatchHandle[Pod]

    def __init__(
        self,
        client: Client,
        *,
        script: NodeScript | None = None,
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        super().__init__(client, clock=clock, cache=cache)
        self._script = script
        self._first_seen: dict[str, datetime] = {}

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        cache.index(Pod, "spec.nodeName")
        unsubscribe = self._script.subscribe(lambda name: self._alarms.send(_ALL)) if self._script else lambda: None
        try:
            with cache.watch(Node) as self._nodes, cache.watch(Pod) as self._pods:
                await self._runtime.run(
                    self.name,
                    self.reconcile,
                    Watched(cache, Node, Handler(_node_changed)),
                    # For their list to be complete.
                    Watched(cache, Pod, Handler(lambda event: ())),
                    self._alarms,
                    workers=1,
                    beside=(self._events.run,),
                )
        finally:
            unsubscribe()

    async def reconcile(self, request: Request) -> None:
        """Check the heartbeats of all nodes, then taint them."""
        nodes = [await self._probed(node) for node in self._nodes.list()]
        self._first_seen = {uid: at for uid, at in self._first_seen.items() if uid in {n.metadata.uid for n in nodes}}
        evicts = any(is_true(node, "Ready") for node in nodes)
        for node in nodes:
            await self._taint(node, evicts=evicts)

    async def _probed(self, node: Node) -> Node:
        """The node, marked when its grace period without heartbeats is over."""
        last = await self._last_heartbeat(node)
        if last is None:
            return node
        before = get_condition(node, "Ready")
        now, due = self._clock.now(), last + (_GRACE if before is not None else _STARTUP_GRACE)
        if now < due:
            self._alarms.set(_ALL, (due - now).total_seconds())
            return node
        if before is not None and before.status == "Unknown":
            return node
        was_ready = before is not None and before.status == "True"
        for type_ in _CONDITIONS:
            _make_unknown(node, type_, now.replace(microsecond=0))
        node = await self._client.status.update(node)
        if was_ready:
            name = node.metadata.name
            self._recorder.normal(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            for pod in self._pods.list(index=("spec.nodeName", name)):
                await self._make_unready(pod, now)
        return node

    async def _last_heartbeat(self, node: Node) -> datetime | None:
        """When the node was last seen to be alive; None for one that is known to be."""
        name = node.metadata.name
        if self._script is not None and SIMULATED in node.metadata.labels:
            return self._script.failed_at(name)
        now = self._clock.now()
        ready, created = get_condition(node, "Ready"), node.metadata.creation_timestamp or now
        times = [created if ready is None else self._first_seen.setdefault(node.metadata.uid, now)]
        if ready is not None and ready.last_heartbeat_time is not None:
            times.append(ready.last_heartbeat_time)
        lease = await self._client.find(Lease, name, namespace=NAMESPACE)
        if lease is not None and lease.spec.renew_time is not None:
            times.append(lease.spec.renew_time)
        return max(times)

    async def _make_unready(self, pod: Pod, now: datetime) -> None:
        ready = get_condition(pod, "Ready")
        if ready is None or ready.status == "False":
            return
        ready.status, ready.last_transition_time = "False", now.replace(microsecond=0)
        try:
            pod = await self._client.status.patch(pod)
        except NotFound:
            return
        self._recorder.warning(pod, "NodeNotReady", "Node is not ready")

    async def _taint(self, node: Node, *, evicts: bool) -> None:
        wanted = {(key, "NoSchedule") for one in node.status.conditions if (key := _TAINTS.get((one.type, one.status)))}
        if node.spec.unschedulable:
            wanted.add((_UNSCHEDULABLE, "NoSchedule"))
        ready = get_condition(node, "Ready")
        if evicts and ready is not None and (key := _TAINTS.get(("Ready", ready.status))):
            wanted.add((key, "NoExecute"))
        kept = [one for one in node.spec.taints if (pair := (one.key, one.effect)) not in _MANAGED or pair in wanted]
        missing = sorted(wanted - {(one.key, one.effect) for one in kept})
        if not missing and len(kept) == len(node.spec.taints):
            return
        now = self._clock.now().replace(microsecond=0)
        node.spec.taints = [
            *kept,
            *(
                Taint(key=key, effect="NoExecute" if effect == "NoExecute" else "NoSchedule", time_added=now)
                for key, effect in missing
            ),
        ]
        await self._client.patch(node)


def _make_unknown(node: Node, type_: str, now: datetime) -> None:
    condition = get_condition(node, type_)
    if condition is None:
        condition = NodeCondition(
            type=type_,
            status="Unknown",
            reason="NodeStatusNeverUpdated",
            message="Kubelet never posted node status.",
            last_heartbeat_time=node.metadata.creation_timestamp,
            last_transition_time=now,
        )
        node.status.conditions.append(condition)
    elif condition.status != "Unknown":
        condition.status, condition.last_transition_time = "Unknown", now
        condition.reason, condition.message = "NodeStatusUnknown", "Kubelet stopped posting node status."


def _node_changed(event: Event[Object]) -> Iterable[Request]:
    old, new = event.old_object, event.new_object
    if isinstance(old, Node) and isinstance(new, Node) and _health(old) == _health(new):
        return ()
    return (_ALL,)


def _health(node: Node) -> tuple[object, ...]:
    spec = node.spec
    return spec.unschedulable, spec.taints, [(one.type, one.status) for one in node.status.conditions]
