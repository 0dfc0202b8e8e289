"""The kubelet of nodes that exist in name only: takes pods through their life without running anything.

It touches no pod but those on nodes labelled `kubewright.dev/simulated`, so that it may run against a real cluster too.
What each pod does is a rule's to say; by default the pod's own annotations (see `pod_behaviour`).
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from ipaddress import IPv4Network

from kubewright.api.core.v1 import Node, Pod, PodStatus
from kubewright.api.kinds import ObjectKey
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.controlplane.controllers import loop
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue
from kubewright.controlplane.controllers.nodes import SIMULATED
from kubewright.controlplane.controllers.pod_behaviour import Behaviour, Rule, annotated
from kubewright.controlplane.controllers.pod_life import (
    Addresses,
    Stage,
    ended,
    entered_at,
    seconds_to_next,
    stage_of,
    step,
)
from kubewright.controlplane.controllers.pods import ENDED

_POD_NETWORK = IPv4Network("10.244.0.0/16")
_KILLED, _TERMINATED = 137, 143


class PodSimulator:
    """Runs the pods on simulated nodes: starts them, makes them ready, ends and restarts them, and lets them go."""

    name = "pod-simulator"

    def __init__(self, client: Client, *, rule: Rule = annotated, clock: Clock | None = None) -> None:
        self._client = client
        self._rule = rule
        self._clock = clock or SystemClock()
        self._queue = Queue[ObjectKey](self._clock)
        self._nodes = Mirror(client, Node, changed=self._node_changed, labels={SIMULATED: True})
        self._pods = Mirror(client, Pod, changed=self._pod_changed, index=_node_and_address, fields="spec.nodeName!=")
        self._addresses = _addresses()
        # Times in a status are whole seconds; these are exact, and only as good as the stage they belong to.
        self._entered: dict[str, tuple[Stage, datetime]] = {}
        self._asked_to_go: dict[str, datetime] = {}

    async def run(self) -> None:
        """Watch and act until cancelled."""
        await loop.run(self._nodes, self._pods, queue=self._queue, reconcile=self.reconcile, workers=16)

    async def reconcile(self, key: ObjectKey) -> None:
        """Take one pod as far as it has come by now."""
        pod = self._pods.get(key)
        node = self._nodes.get(ObjectKey("", pod.spec.node_name or "")) if pod is not None else None
        if pod is None or node is None:
            return
        behaviour = self._rule(pod)
        if pod.metadata.deletion_timestamp is not None:
            await self._let_go(pod, behaviour)
            return
        now = self._clock.now()
        next_ = step(pod, behaviour, self._where(pod, node), self._entered_at(pod, now), now)
        if next_ is not None:
            status, is_new_stage = next_
            pod = await self._write(pod, status)
            if is_new_stage:
                self._entered[pod.metadata.uid] = stage_of(pod), now
        now = self._clock.now()
        wait = seconds_to_next(pod, behaviour, self._entered_at(pod, now), now)
        if wait is not None:
            self._queue.add_after(key, wait)

    async def _let_go(self, pod: Pod, behaviour: Behaviour) -> None:
        grace, now = pod.metadata.deletion_grace_period_seconds, self._clock.now()
        if grace == 0:
            # Its containers are gone already; only finalizers hold it.
            return
        asked = self._asked_to_go.setdefault(pod.metadata.uid, now)
        allowed = behaviour.stop if grace is None else min(behaviour.stop, grace)
        left = (asked + timedelta(seconds=allowed) - now).total_seconds()
        if left > 0:
            self._queue.add_after(pod.key, left)
            return
        if pod.metadata.finalizers and pod.status.phase not in ENDED:
            # Somebody will still look at it, and must see that it no longer runs.
            code = _KILLED if behaviour.stop > allowed else _TERMINATED
            await self._write(pod, ended(pod, code, now, for_good=True))
        with contextlib.suppress(NotFound):
            await self._client.delete(pod, grace_period=0, uid=pod.metadata.uid)

    async def _write(self, pod: Pod, status: PodStatus) -> Pod:
        changed = copy.copy(pod)
        changed.status = status
        return self._pods.record(await self._client.status.update(changed))

    def _entered_at(self, pod: Pod, now: datetime) -> datetime:
        stage, exact = self._entered.get(pod.metadata.uid, (None, now))
        return exact if stage == stage_of(pod) else entered_at(pod) or now

    def _where(self, pod: Pod, node: Node) -> Addresses:
        host = next((one.address for one in node.status.addresses if one.type == "InternalIP"), "127.0.0.1")
        if pod.spec.host_network:
            return Addresses(host, host)
        return Addresses(host, pod.status.pod_ip or self._free_address())

    def _free_address(self) -> str:
        return next(address for address in self._addresses if not self._pods.indexed(address))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and old is None:
            for pod in self._pods.indexed(new.metadata.name):
                self._queue.add(pod.key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self._queue.add(new.key)
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._entered.pop(old.metadata.uid, None)
            self._asked_to_go.pop(old.metadata.uid, None)


def _node_and_address(pod: Pod) -> tuple[str, str]:
    return pod.spec.node_name or "", pod.status.pod_ip or ""


def _addresses() -> Iterator[str]:
    """The addresses of the pod network, over and over, so that one is used again as late as possible."""
    return map(str, itertools.cycle(_POD_NETWORK.hosts()))
