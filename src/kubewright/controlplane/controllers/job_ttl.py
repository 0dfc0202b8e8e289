"""The time to live of finished Jobs: after it they are deleted, and their pods before them."""

from __future__ import annotations

from datetime import datetime, timedelta

from kubewright.api.batch.v1 import Job
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.runtime import Alarms, Runtime


class JobTTL:
    """Deletes every finished Job once its ttlSecondsAfterFinished are over."""

    name = "ttl-after-finished"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)

    async def run(self) -> None:
        """Watch and delete until cancelled."""
        jobs = Watched(self._runtime.cache, Job, for_object)
        await self._runtime.run(self.name, self.reconcile, jobs, self._alarms)

    async def reconcile(self, request: Request) -> None:
        """Delete one Job when it is time."""
        job = await self._client.find(Job, request)
        due = _due(job) if job is not None else None
        if job is None or due is None or job.metadata.deletion_timestamp is not None:
            return
        left = (due - self._clock.now()).total_seconds()
        if left > 0:
            self._alarms.set(request, left)
            return
        # A live read: its time to live may have been prolonged.
        fresh = await self._client.find(Job, request, consistency="live")
        if fresh is not None and _due(fresh) == due:
            await self._client.delete(fresh, propagation="Foreground", uid=fresh.metadata.uid, missing_ok=True)


def _due(job: Job) -> datetime | None:
    ends = (one for one in job.status.conditions if one.type in ("Complete", "Failed") and one.status == "True")
    end = next(ends, None)
    if end is None or end.last_transition_time is None or job.spec.ttl_seconds_after_finished is None:
        return None
    return end.last_transition_time + timedelta(seconds=job.spec.ttl_seconds_after_finished)
