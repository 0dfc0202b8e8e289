"""Taint-based eviction: pods that do not tolerate a taint with the effect NoExecute are deleted, in time.

A pod with tolerationSeconds stays for so long from when the taint is seen on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kubewright.api.core.v1 import Node, ObjectReference, Pod, Taint
from kubewright.api.resources import Object
from kubewright.cache import WatchHandle
from kubewright.client.errors import NotFound
from kubewright.controller import Event, Handler, Request, Watched
from kubewright.controlplane.controllers.placement import covers
from kubewright.controlplane.controllers.reporting import ReportingController
from kubewright.patterns.conditions import set_condition


class TaintEviction(ReportingController):
    """Deletes the pods that may no longer be on their node."""

    name = "taint-eviction"
    component = "taint-eviction-controller"

    _pods: WatchHandle[Pod]
    _taints: dict[str, list[Taint]]

    async def run(self) -> None:
        """Watch and act until cancelled."""
        # Only those with the effect NoExecute.
        self._taints = {}
        self._since: dict[Request, datetime] = {}
        cache = self._runtime.cache
        cache.index(Pod, "spec.nodeName")
        with cache.watch(Pod) as self._pods:
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Node, Handler(self._node_changed)),
                Watched(cache, Pod, Handler(self._pod_changed)),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Delete one pod if its time is over."""
        pod = await self._client.find(Pod, request)
        taints = self._taints.get(pod.spec.node_name or "", []) if pod is not None else []
        if pod is None or pod.metadata.deletion_timestamp is not None:
            self._since.pop(request, None)
            return
        allowed = tolerated_seconds(pod, taints)
        if allowed is None:
            if self._since.pop(request, None) is not None:
                self._report(request, "Cancelling deletion of")
            return
        now = self._clock.now()
        due = self._since.setdefault(request, now) + timedelta(seconds=allowed)
        if due > now:
            self._alarms.set(request, (due - now).total_seconds())
            return
        self._report(request, "Marking for deletion")
        note = "Taint manager: deleting due to NoExecute taint"
        try:
            if set_condition(pod, "DisruptionTarget", True, "DeletionByTaintManager", note, at=now):
                pod = await self._client.status.patch(pod)
            await self._client.delete(pod, uid=pod.metadata.uid)
        except NotFound:
            pass
        self._since.pop(request, None)

    def _report(self, pod: Request, what: str) -> None:
        about = ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name)
        self._recorder.normal(about, "TaintManagerEviction", f"{what} Pod {pod.namespace}/{pod.name}")

    def _node_changed(self, event: Event[Object]) -> Iterable[Request]:
        node, name = event.new_object, event.key.name
        taints = [one for one in node.spec.taints if one.effect == "NoExecute"] if isinstance(node, Node) else []
        if taints == self._taints.get(name, []):
            return ()
        if taints:
            self._taints[name] = taints
        else:
            del self._taints[name]
        return [pod.key for pod in self._pods.list(index=("spec.nodeName", name))]

    def _pod_changed(self, event: Event[Object]) -> Iterable[Request]:
        return (event.key,) if self._taints else ()


def tolerated_seconds(pod: Pod, taints: Iterable[Taint]) -> float | None:
    """How long the pod may stay on a node with such taints; None when for ever."""
    allowed: float | None = None
    for taint in taints:
        toleration = next((one for one in pod.spec.tolerations if covers(one, taint)), None)
        if toleration is None:
            return 0.0
        if (seconds := toleration.toleration_seconds) is not None:
            allowed = max(0.0, seconds if allowed is None else min(allowed, seconds))
    return allowed
