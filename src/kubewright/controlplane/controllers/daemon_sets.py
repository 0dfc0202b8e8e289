"""DaemonSets: one pod on every node that its template fits."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime

import msgspec

from kubewright.api.apps.v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from kubewright.api.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    Toleration,
)
from kubewright.api.errors import KubernetesError
from kubewright.api.int_or_string import scaled_value
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Event, Handler, Request, Watched, for_object, for_owner
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.controller_revisions import POD_REVISION, History, Present
from kubewright.controlplane.controllers.owned_pods import OwnedPods, watched_pods
from kubewright.controlplane.controllers.placement import objections
from kubewright.controlplane.controllers.pod_control import BURST, PodControl, pod_from
from kubewright.controlplane.controllers.pods import ENDED, available_in, is_ready
from kubewright.controlplane.controllers.reporting import ReportingController

_GENERATION, _GENERATION_LABEL = "deprecated.daemonset.template.generation", "pod-template-generation"
_PREFIX = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_LACKS_ROOM = ("Too many pods", "Insufficient ")


class DaemonSets(ReportingController):
    """Keeps the pods of every DaemonSet on their nodes, and its status true."""

    name = "daemonsets"
    component = "daemonset-controller"

    _pods: OwnedPods
    _history: History

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        super().__init__(client, clock=clock, cache=cache)
        self._control = PodControl(self._client, self._recorder)

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(Pod) as pods, cache.watch(ControllerRevision) as revisions, cache.watch(DaemonSet) as sets:
            self._pods = OwnedPods(self._client, cache, pods)
            self._history = History(self._client, cache, revisions)

            def all_sets(event: Event[Object]) -> Iterable[Request]:
                return [one.key for one in sets.list()] if _matters(event) else ()

            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, DaemonSet, for_object),
                Watched(cache, Node, Handler(all_sets)),
                Watched(cache, ControllerRevision, for_owner(DaemonSet)),
                *watched_pods(self._client, cache, DaemonSet, lambda one: one.spec.selector),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Create, replace and delete the pods of one DaemonSet and write its status."""
        daemons = await self._client.find(DaemonSet, request)
        if daemons is None:
            return
        nodes = sorted(await self._client.list(Node), key=lambda node: node.metadata.name)
        pods = await self._pods.claimed(daemons, daemons.spec.selector)
        present = await self._history.present(daemons)
        hashed = present.newest.metadata.labels[POD_REVISION]
        failure: KubernetesError | None = None
        if daemons.metadata.deletion_timestamp is None:
            try:
                if not await self._place(daemons, nodes, _by_node(pods), hashed):
                    await self._replace(daemons, nodes, _by_node(pods), hashed)
            except KubernetesError as error:
                failure = error
        pods = self._pods.by(daemons, daemons.spec.selector)
        await self._write_status(daemons, nodes, pods, present)
        used = {hashed, *(pod.metadata.labels.get(POD_REVISION, "") for pod in pods)}
        kept = {one.metadata.name for one in present.all if one.metadata.labels.get(POD_REVISION) in used}
        await self._history.truncate(daemons, present, kept)
        if failure is not None:
            raise failure

    async def _place(self, daemons: DaemonSet, nodes: list[Node], pods: dict[str, list[Pod]], hashed: str) -> bool:
        """Have one pod on each node where it should be, and none where it must not. True when something was done."""
        missing, doomed = list[str](), list[Pod]()
        for node in nodes:
            name = node.metadata.name
            should_run, may_stay = _fits(daemons, node)
            found = [pod for pod in pods.get(name, ()) if pod.metadata.deletion_timestamp is None]
            if not may_stay:
                doomed += found
                continue
            if should_run and name not in pods:
                missing.append(name)
            running = sorted((pod for pod in found if pod.status.phase not in ENDED), key=_age)
            for pod in found:
                if pod.status.phase in ENDED:
                    self._report_end(daemons, pod, name)
                    doomed.append(pod)
            if not _surge(daemons, 1):
                doomed += running[1:]
                continue
            doomed += _surplus(daemons, running, hashed, self._clock.now())
            if not running and should_run and name in pods:
                missing.append(name)
        there = {node.metadata.name for node in nodes}
        doomed += [
            pod
            for name, found in pods.items()
            for pod in found
            if name not in there and not pod.spec.node_name and pod.metadata.deletion_timestamp is None
        ]
        await self._control.create_all(daemons, [_new_pod(daemons, name, hashed) for name in missing[:BURST]])
        await self._control.delete_all(daemons, doomed[:BURST])
        return bool(missing or doomed)

    def _report_end(self, daemons: DaemonSet, pod: Pod, node: str) -> None:
        where = f"daemon pod {pod.metadata.namespace}/{pod.metadata.name} on node {node}"
        if pod.status.phase == "Failed":
            self._recorder.warning(daemons, "FailedDaemonPod", f"Found failed {where}, will try to kill it")
        else:
            self._recorder.normal(daemons, "SucceededDaemonPod", f"Found succeeded {where}, will try to delete it")

    async def _replace(self, daemons: DaemonSet, nodes: list[Node], pods: dict[str, list[Pod]], hashed: str) -> None:
        """Take the next step of a rolling update: as many nodes at a time as may be without a pod, or with two."""
        if daemons.spec.update_strategy.type == "OnDelete":
            return
        now = self._clock.now()
        there = [node.metadata.name for node in nodes]
        wanted = {node.metadata.name for node in nodes if _fits(daemons, node)[0]}
        found = {name: _new_and_old(pods.get(name, ()), hashed) for name in there if name in wanted or name in pods}
        if surge := _surge(daemons, len(wanted)):
            new_nodes, doomed = _surged(daemons, found, wanted, surge, now)
        else:
            new_nodes, doomed = [], _outdated(daemons, found, _unavailable(daemons, len(wanted)), now)
        await self._control.create_all(daemons, [_new_pod(daemons, name, hashed) for name in new_nodes[:BURST]])
        await self._control.delete_all(daemons, doomed[:BURST])

    async def _write_status(self, daemons: DaemonSet, nodes: list[Node], pods: list[Pod], present: Present) -> None:
        now, by_node, hashed = self._clock.now(), _by_node(pods), present.newest.metadata.labels[POD_REVISION]
        wanted = {node.metadata.name for node in nodes if _fits(daemons, node)[0]}
        first = {name: min(found, key=_age) for name, found in by_node.items()}
        placed = [pod for name, pod in first.items() if name in wanted]
        available = sum(_is_available(pod, daemons, now) for pod in placed)
        there = {node.metadata.name for node in nodes}
        status = DaemonSetStatus(
            observed_generation=daemons.metadata.generation,
            desired_number_scheduled=len(wanted),
            current_number_scheduled=len(placed),
            number_misscheduled=sum(name in there and name not in wanted for name in first),
            number_ready=sum(map(is_ready, placed)),
            updated_number_scheduled=sum(pod.metadata.labels.get(POD_REVISION) == hashed for pod in placed) or None,
            number_available=available or None,
            number_unavailable=len(wanted) - available or None,
            collision_count=present.collisions or daemons.status.collision_count,
            conditions=list(daemons.status.conditions),
        )
        if status != daemons.status:
            changed = copy.copy(daemons)
            changed.status = status
            await self._client.status.update(changed)
        waits = [available_in(pod, daemons.spec.min_ready_seconds or 0, now) for pod in pods]
        if pending := [wait for wait in waits if wait]:
            self._alarms.set(daemons.key, min(pending))


def _matters(event: Event[Object]) -> bool:
    """Whether a node has changed in what decides where pods are."""
    old, new = event.old_object, event.new_object
    if not isinstance(old, Node) or not isinstance(new, Node):
        return not event.initial
    return (old.metadata.labels, old.spec.taints) != (new.metadata.labels, new.spec.taints)


def _node_of(pod: Pod) -> str:
    """The node of a pod, also of one that is yet to be scheduled to it."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def _by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods by their nodes. One that has ended and is being deleted takes no other's place."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.metadata.deletion_timestamp is None or pod.status.phase not in ENDED:
            found.setdefault(_node_of(pod), []).append(pod)
    return found


def _age(pod: Pod) -> tuple[bool, str, str]:
    return not pod.spec.node_name, str(pod.metadata.creation_timestamp), pod.metadata.name


def _new_and_old(pods: Iterable[Pod], hashed: str) -> tuple[Pod | None, Pod | None]:
    """Of the pods on one node, the one of the present template, and the one of another."""
    live = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    return (
        next((pod for pod in live if pod.metadata.labels.get(POD_REVISION) == hashed), None),
        next((pod for pod in live if pod.metadata.labels.get(POD_REVISION) != hashed), None),
    )


def _surplus(daemons: DaemonSet, running: list[Pod], hashed: str, now: datetime) -> list[Pod]:
    """Of the pods on one node, oldest first, those that an update with surge has no use for.

    There may be two, one of them new, while the old one serves and the new one does not.
    """
    new = [pod for pod in running if pod.metadata.labels.get(POD_REVISION) == hashed]
    old = [pod for pod in running if pod.metadata.labels.get(POD_REVISION) != hashed]
    is_replaced = bool(new and old) and (not is_ready(old[0]) or _is_available(new[0], daemons, now))
    return [*new[1:], *old[0 if is_replaced else 1 :]]


def _outdated(
    daemons: DaemonSet, found: dict[str, tuple[Pod | None, Pod | None]], unavailable: int, now: datetime
) -> list[Pod]:
    """The old pods to delete without surge: those that do not serve, and so many that no more nodes are without one."""
    doomed, candidates = list[Pod](), list[Pod]()
    for new, old in found.values():
        serving = old if new is None else new
        if serving is None or (new and old) or not _is_available(serving, daemons, now):
            unavailable -= 1
            doomed += [old] if old is not None and new is None else []
        elif old is not None:
            candidates.append(old)
    return doomed + candidates[: max(0, unavailable)]


def _surged(
    daemons: DaemonSet,
    found: dict[str, tuple[Pod | None, Pod | None]],
    wanted: set[str],
    surge: int,
    now: datetime,
) -> tuple[list[str], list[Pod]]:
    """The nodes that get a new pod beside their old one, and the old pods to delete.

    A pod that serves on a node where none is wanted any more goes once as many serve as there should be.
    """
    new_nodes, candidates, doomed, leaving = list[str](), list[str](), list[Pod](), list[Pod]()
    available = 0
    for name, (new, old) in found.items():
        first = new if old is None else old
        available += first is not None and _is_available(first, daemons, now)
        if old is None:
            continue
        if new is not None:
            if _is_available(new, daemons, now):
                doomed.append(old)
            else:
                surge -= 1
        elif name not in wanted:
            (leaving if _is_available(old, daemons, now) else doomed).append(old)
        else:
            (candidates if _is_available(old, daemons, now) else new_nodes).append(name)
    doomed += leaving[: max(0, available - len(wanted))]
    return new_nodes + candidates[: max(0, surge)], doomed


def _is_available(pod: Pod, daemons: DaemonSet, now: datetime) -> bool:
    return available_in(pod, daemons.spec.min_ready_seconds or 0, now) == 0


def _surge(daemons: DaemonSet, nodes: int) -> int:
    rolling = daemons.spec.update_strategy.rolling_update
    if daemons.spec.update_strategy.type == "OnDelete" or rolling is None:
        return 0
    return scaled_value(rolling.max_surge or 0, nodes, round_up=True)


def _unavailable(daemons: DaemonSet, nodes: int) -> int:
    rolling = daemons.spec.update_strategy.rolling_update
    limit = rolling.max_unavailable if rolling is not None and rolling.max_unavailable is not None else 1
    return scaled_value(limit, nodes, round_up=True) or 1


def _fits(daemons: DaemonSet, node: Node) -> tuple[bool, bool]:
    """Whether a pod of the template should run on the node, and whether one that does may stay."""
    pod = pod_from(daemons.spec.template, daemons)
    pod.spec.tolerations = _tolerations(pod)
    if pod.spec.node_name not in (None, "", node.metadata.name):
        return False, False
    if not _refusals(pod, node):
        return True, True
    evicting = copy.copy(node)
    evicting.spec = msgspec.structs.replace(
        node.spec, taints=[taint for taint in node.spec.taints if taint.effect == "NoExecute"]
    )
    return False, not _refusals(pod, evicting)


def _refusals(pod: Pod, node: Node) -> list[str]:
    """Why the node is none for the pod; that it is full is the scheduler's concern."""
    return [reason for reason in objections(pod, node, ()) if not reason.startswith(_LACKS_ROOM)]


def _tolerations(pod: Pod) -> list[Toleration]:
    network = (("network-unavailable", "NoSchedule"),) if pod.spec.host_network else ()
    added = [
        Toleration(key=f"{_PREFIX}{name}", operator="Exists", effect=effect) for name, effect in (*_TOLERATED, *network)
    ]
    return [*pod.spec.tolerations, *(one for one in added if one not in pod.spec.tolerations)]


def _new_pod(daemons: DaemonSet, node: str, hashed: str) -> Pod:
    pod = pod_from(daemons.spec.template, daemons)
    pod.spec.tolerations = _tolerations(pod)
    pod.metadata.labels[POD_REVISION] = hashed
    if (generation := daemons.metadata.annotations.get(_GENERATION)) is not None:
        pod.metadata.labels[_GENERATION_LABEL] = generation
    here = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])])
    before = pod.spec.affinity or Affinity()
    nodes = msgspec.structs.replace(
        before.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[here]),
    )
    pod.spec.affinity = msgspec.structs.replace(before, node_affinity=nodes)
    return pod
