"""Starts the pod of a ChaosPod, stops it at its time, and starts it again.

The pod has the name of its ChaosPod, which makes its creation idempotent. `status.lastRun` is the time of creation of
the pod that `spec.nextStop` is about: a pod of another time has no time to stop yet, whatever was interrupted before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from kubewright import CachedClient, NotFound, ObjectMeta, Recorder, Request, Result, now, set_controller_reference
from kubewright.api.core.v1 import Pod

from .types import ChaosPod


def ten_or_twenty_seconds() -> timedelta:
    """How long a pod runs."""
    return timedelta(seconds=random.choice((10, 20)))  # noqa: S311  # not a secret


class ChaosPodReconciler:
    """Reconciles ChaosPods."""

    def __init__(
        self, client: CachedClient, events: Recorder, lifetime: Callable[[], timedelta] = ten_or_twenty_seconds
    ) -> None:
        self.client = client
        self.events = events
        self.lifetime = lifetime

    async def reconcile(self, request: Request) -> Result | None:
        """Make sure that the pod runs, until its time has come."""
        chaos = await self.client.find(ChaosPod, request)
        if chaos is None or chaos.metadata.deletion_timestamp is not None:
            return None  # the garbage collector takes the pod
        pod = await self.client.find(Pod, request)
        if pod is None:
            pod = await self.client.create(self.pod_of(chaos))
            self.events.normal(chaos, "Started", f"Started pod {pod.metadata.name}")
        elif pod.metadata.deletion_timestamp is not None:
            return None  # its end enqueues us again
        elif not any(owner.uid == chaos.metadata.uid for owner in pod.metadata.owner_references):
            problem = f"The pod {pod.key} is not that of this ChaosPod: delete it, or choose another name"
            self.events.warning(chaos, "NameTaken", problem)
            return Result(requeue_after=10)  # its end does not enqueue us
        if chaos.status.last_run != pod.metadata.creation_timestamp or chaos.spec.next_stop is None:
            chaos.status.last_run = pod.metadata.creation_timestamp
            chaos.spec.next_stop = now() + self.lifetime()
            try:
                chaos = await self.client.patch(chaos)
            except NotFound:
                return None  # deleted meanwhile
        remaining = ((chaos.spec.next_stop or now()) - now()).total_seconds()
        if remaining > 0:
            return Result(requeue_after=remaining + 1)
        await self.client.delete(pod, uid=pod.metadata.uid, missing_ok=True)
        self.events.normal(chaos, "Stopped", f"Stopped pod {pod.metadata.name}")
        return None

    def pod_of(self, chaos: ChaosPod) -> Pod:
        """A pod of the template."""
        template = chaos.spec.template
        pod = Pod(
            metadata=ObjectMeta(
                name=chaos.metadata.name,
                namespace=chaos.metadata.namespace,
                labels=dict(template.metadata.labels),
                annotations=dict(template.metadata.annotations),
            ),
            spec=template.spec,
        )
        set_controller_reference(chaos, pod)
        return pod
