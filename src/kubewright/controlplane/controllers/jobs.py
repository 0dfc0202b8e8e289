"""Jobs: runs pods until enough of them have succeeded, or too many have failed.

How a Job stands is in `job_state`, which pods it needs in `job_pods`, how long it waits after failures in
`job_backoff`, and what single failures mean in `job_policies`.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable

from kubewright.api.batch.v1 import Job, JobStatus
from kubewright.api.core.v1 import Pod
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import LabelSelector
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client, StrategicMergePatch
from kubewright.client.errors import Invalid, NotFound
from kubewright.controller import Event, Handler, Request, Watched, for_object
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.decoded import Decoded
from kubewright.controlplane.controllers.job_backoff import JobBackoff
from kubewright.controlplane.controllers.job_indexes import formatted, index_of
from kubewright.controlplane.controllers.job_pods import (
    desired_active,
    failed_before,
    missing,
    new_pod,
    pending_indexes,
    ready_indexes,
    surplus,
)
from kubewright.controlplane.controllers.job_policies import has_failed, verdict
from kubewright.controlplane.controllers.job_state import (
    TRACKING,
    JobState,
    condition,
    ending,
    is_finished,
    is_indexed,
    is_suspended,
    new_condition,
    ready_pods,
    seconds_to_deadline,
    state_of,
)
from kubewright.controlplane.controllers.owned_pods import OwnedPods, watched_pods
from kubewright.controlplane.controllers.ownership import controller_of
from kubewright.controlplane.controllers.pod_control import PodControl
from kubewright.controlplane.controllers.pods import is_active, is_terminating
from kubewright.controlplane.controllers.reporting import ReportingController

_JOB_NAME = "batch.kubernetes.io/job-name"
_MANAGER = "kubernetes.io/job-controller"
_INDEX = "tracked-job"
_MAX_UNCOUNTED = 500


class Jobs(ReportingController):
    """Runs every Job that no other controller manages, and keeps its status true."""

    name = "jobs"
    component = "job-controller"

    _pods: OwnedPods
    _tracked: Decoded[Pod]

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        super().__init__(client, clock=clock, cache=cache)
        self._control = PodControl(self._client, self._recorder)
        self._backoffs: dict[str, JobBackoff] = {}

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        cache.index(Pod, _INDEX, _job_of)
        with cache.watch(Pod) as pods:
            self._pods, self._tracked = OwnedPods(self._client, cache, pods), Decoded(pods)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, Job, for_object),
                *watched_pods(self._client, cache, Job, _selector),
                Watched(cache, Pod, Handler(_job_of_stray)),
                self._alarms,
                beside=(self._events.run,),
            )

    async def reconcile(self, request: Request) -> None:
        """Take the next step of one Job."""
        job = await self._client.find(Job, request)
        await self._release_strays(request, job)
        if job is None or job.spec.managed_by not in (None, _MANAGER):
            return
        if is_finished(job):
            self._backoffs.pop(job.metadata.uid, None)
            return
        now = self._clock.now()
        state = state_of(job, await self._pods.claimed(job, _selector(job)))
        if state.status.start_time is None and not is_suspended(job):
            state.status.start_time = now.replace(microsecond=0)
        backoff = self._backoffs.get(job.metadata.uid, JobBackoff()).after(state.new_succeeded, state.new_failed)
        state.finished = ending(state, now)
        failure: KubernetesError | None = None
        try:
            await self._run_pods(state, backoff)
        except KubernetesError as error:
            failure, state.finished = error, None
        if state.finished is None and (left := seconds_to_deadline(state, now)) is not None:
            self._alarms.set(request, left)
        pods = self._pods.by(job, _selector(job))
        active = [pod for pod in pods if is_active(pod)]
        state.status.active = len(active) or None
        state.status.ready = ready_pods(active)
        state.status.terminating = sum(map(is_terminating, pods))
        if state.finished is None and failure is None and job.metadata.deletion_timestamp is None:
            self._note_progress(state)
        await self._track(state, backoff)
        if failure is not None:
            raise failure

    async def _run_pods(self, state: JobState, backoff: JobBackoff) -> None:
        """Create and delete the pods that the Job needs and has too many of, all of them when it ends."""
        job = state.job
        if state.finished is not None:
            await self._control.delete_all(job, state.active)
            return
        if job.metadata.deletion_timestamp is not None:
            return
        desired = desired_active(state)
        if doomed := surplus(state, desired):
            # First, so that they do not count as failed.
            await asyncio.gather(*(self._release(pod) for pod in doomed))
            await self._control.delete_all(job, doomed)
            return
        count, now = missing(state, desired), self._clock.now()
        if count <= 0:
            return
        indexes: list[int | None] = [None] * count
        replaced = failed_before(state)
        wait = 0.0 if job.spec.backoff_limit_per_index is not None else backoff.remaining(now)
        if is_indexed(job):
            due, pause = ready_indexes(pending_indexes(state, count), replaced, now)
            indexes, wait = [*due], wait or pause
        if wait:
            self._alarms.set(job.key, wait)
            return
        new = [new_pod(job, index, replaced.get(index) if index is not None else None) for index in indexes]
        await self._control.create_all(job, new)

    def _note_progress(self, state: JobState) -> None:
        """The Job is complete, suspended or resumed."""
        job, status, now = state.job, state.status, self._clock.now()
        enough = job.spec.completions if job.spec.completions is not None else 1
        if state.succeeded >= enough and not status.active:
            message = "Reached expected number of succeeded pods"
            state.finished = new_condition("SuccessCriteriaMet", "CompletionsReached", message, now)
            return
        present = condition(status, "Suspended")
        was = present is not None and present.status == "True"
        if is_suspended(job) == was:
            return
        reason, word = ("JobSuspended", "suspended") if is_suspended(job) else ("JobResumed", "resumed")
        held = "True" if is_suspended(job) else "False"
        changed = new_condition("Suspended", reason, f"Job {word}", now, status=held)
        status.conditions = [*(one for one in status.conditions if one.type != "Suspended"), changed]
        status.start_time = None if is_suspended(job) else now.replace(microsecond=0)
        self._recorder.normal(job, word.capitalize(), f"Job {word}")

    # Counting the pods that have ended

    async def _track(self, state: JobState, backoff: JobBackoff) -> None:
        """Count the pods that have ended, each once, and end the Job when all are counted."""
        job, status, now = state.job, state.status, self._clock.now()
        tracked = {pod.metadata.uid for pod in state.pods if TRACKING in pod.metadata.finalizers}
        _count_released(state, tracked)
        released, is_full = _counted(state)
        if is_indexed(job):
            status.succeeded = len(state.succeeded_indexes) or None
            status.completed_indexes = formatted(state.succeeded_indexes) or None
            if state.failed_indexes is not None:
                status.failed_indexes = formatted(state.failed_indexes)
        if state.finished is not None and condition(status, state.finished.type) is None:
            status.conditions.append(state.finished)
        job = await self._write(job, status)
        self._backoffs[job.metadata.uid] = backoff
        await asyncio.gather(*(self._release(pod) for pod in released))
        _count_released(state, tracked - {pod.metadata.uid for pod in released})
        uncounted = state.uncounted.succeeded or state.uncounted.failed
        is_over = state.finished is not None and not is_full and not uncounted and not status.terminating
        if is_over and state.finished is not None:
            type_ = "Complete" if state.finished.type == "SuccessCriteriaMet" else "Failed"
            reason, message = state.finished.reason or "", state.finished.message or ""
            status.conditions = [*status.conditions, new_condition(type_, reason, message, now)]
            if type_ == "Complete":
                status.completion_time = now.replace(microsecond=0)
        job = await self._write(job, status)
        if is_over and state.finished is not None:
            self._report_end(job, state)

    async def _write(self, job: Job, status: JobStatus) -> Job:
        if status == job.status:
            return job
        changed = copy.copy(job)
        changed.status = copy.deepcopy(status)
        return await self._client.status.update(changed)

    def _report_end(self, job: Job, state: JobState) -> None:
        if state.finished is None:
            return
        if state.finished.type != "SuccessCriteriaMet":
            self._recorder.warning(job, state.finished.reason or "", state.finished.message or "")
            return
        if job.spec.completions is not None and (job.status.succeeded or 0) > job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._recorder.warning(job, "TooManySucceededPods", message)
        self._recorder.normal(job, "Completed", "Job completed")

    async def _release(self, pod: Pod) -> None:
        finalizers = {"$deleteFromPrimitiveList/finalizers": [TRACKING]}
        try:
            await self._client.patch(pod, StrategicMergePatch({"metadata": {"uid": pod.metadata.uid, **finalizers}}))
        except (NotFound, Invalid):
            # It is gone, or another one of the same name has taken its place.
            return

    async def _release_strays(self, request: Request, job: Job | None) -> None:
        """No Job counts the pods of one that is gone: they must not wait for that."""
        for pod in self._tracked.list(index=(_INDEX, str(request))):
            controller = controller_of(pod)
            if job is None or controller is None or controller.uid != job.metadata.uid:
                if job is not None and controller is None and pod.metadata.deletion_timestamp is None:
                    # It may be adopted yet.
                    continue
                await self._release(pod)


def _selector(job: Job) -> LabelSelector:
    return job.spec.selector or LabelSelector()


def _job_of(pod: Pod) -> Iterable[str]:
    """The Job that has to count a pod, by its controller, or by its label when it has lost that."""
    if TRACKING not in pod.metadata.finalizers:
        return ()
    controller = controller_of(pod)
    if controller is not None:
        return (str(ObjectKey(pod.metadata.namespace, controller.name)),) if controller.kind == "Job" else ()
    name = pod.metadata.labels.get(_JOB_NAME)
    return (str(ObjectKey(pod.metadata.namespace, name)),) if name else ()


def _job_of_stray(event: Event[Object]) -> Iterable[Request]:
    entry = event.new
    if entry is None or any(owner.controller for owner in entry.owners) or _JOB_NAME not in entry.label_names:
        return ()
    return (ObjectKey(entry.namespace, entry.labels[_JOB_NAME]),)


def _count_released(state: JobState, tracked: set[str]) -> None:
    """Those in the status whose finalizer is off become part of the counts."""
    status, uncounted = state.status, state.uncounted
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded = (status.succeeded or 0) + len(uncounted.succeeded) - len(succeeded) or None
    status.failed = (status.failed or 0) + len(uncounted.failed) - len(failed) or None
    uncounted.succeeded, uncounted.failed = succeeded, failed


def _counted(state: JobState) -> tuple[list[Pod], bool]:
    """The pods to release, after their uids are in the status; and whether there are more of them than fit."""
    job, released, waiting = state.job, list[Pod](), failed_before(state)
    fails_all = state.finished is not None and state.finished.type != "SuccessCriteriaMet"
    ends = job.metadata.deletion_timestamp is not None or state.finished is not None
    for pod in state.pods:
        if TRACKING not in pod.metadata.finalizers:
            continue
        succeeded, failed, uid = pod.status.phase == "Succeeded", has_failed(pod, job), pod.metadata.uid
        index = index_of(pod)
        if not ends and not succeeded and (not failed or (index is not None and waiting.get(index) is pod)):
            continue
        released.append(pod)
        if succeeded and uid not in state.uncounted.failed:
            if not is_indexed(job) and uid not in state.uncounted.succeeded:
                state.uncounted.succeeded.append(uid)
        elif (failed or fails_all) and uid not in state.uncounted.failed:
            is_valid = not is_indexed(job) or (index is not None and index < (job.spec.completions or 0))
            if is_valid and verdict(job, pod).action != "Ignore":
                state.uncounted.failed.append(uid)
        if len(state.uncounted.succeeded) + len(state.uncounted.failed) >= _MAX_UNCOUNTED:
            return released, True
    return released, False
