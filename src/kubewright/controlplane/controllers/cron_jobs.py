"""CronJobs: creates a Job whenever the schedule is due, and keeps a few of those that have ended."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from kubewright.api.batch.v1 import CronJob, CronJobStatus, Job
from kubewright.api.core.v1 import ObjectReference
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client.errors import AlreadyExists
from kubewright.controller import Event, Handler, Request, Watched, for_owner
from kubewright.controlplane.controllers.cron_schedule import Schedule, parsed_schedule
from kubewright.controlplane.controllers.job_state import is_finished
from kubewright.controlplane.controllers.ownership import Owned, controller_of
from kubewright.controlplane.controllers.reporting import ReportingController, is_refused_by_deletion, message_of

_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY = 100
# Timers may be a little early.
_DELTA = 0.1


class CronJobs(ReportingController):
    """Creates the Jobs of every CronJob, and keeps its status true."""

    name = "cronjobs"
    component = "cronjob-controller"

    _jobs: Owned[Job]

    async def run(self) -> None:
        """Watch and act until cancelled."""
        cache = self._runtime.cache
        with cache.watch(Job) as jobs:
            self._jobs = Owned(cache, jobs)
            await self._runtime.run(
                self.name,
                self.reconcile,
                Watched(cache, CronJob, Handler(self._changed)),
                Watched(cache, Job, for_owner(CronJob)),
                self._alarms,
                beside=(self._events.run,),
            )

    def _changed(self, event: Event[Object]) -> Iterable[Request]:
        """The CronJob, at once; after a change of its schedule when that is next due, not for what it missed."""
        old, new = event.old_object, event.new_object
        if isinstance(old, CronJob) and isinstance(new, CronJob) and _timing(old) != _timing(new):
            zone, now = _zone(new), self._clock.now()
            following = parsed_schedule(new.spec.schedule, zone).after(now) if zone is not None else None
            if following is not None:
                self._alarms.set(new.key, (following - now).total_seconds() + _DELTA)
                return ()
        return (event.key,)

    async def reconcile(self, request: Request) -> None:
        """Create the Job that is due for one CronJob, and look after those that it has."""
        cron = await self._client.find(CronJob, request)
        if cron is None:
            return
        status = msgspec.structs.replace(cron.status, active=list(cron.status.active))
        await self._clean_up(cron, status)
        await self._follow_jobs(cron, status)
        try:
            if cron.metadata.deletion_timestamp is None:
                await self._schedule(cron, status)
        finally:
            if status != cron.status:
                changed = copy.copy(cron)
                changed.status = status
                await self._client.status.update(changed)

    async def _follow_jobs(self, cron: CronJob, status: CronJobStatus) -> None:
        """Take the Jobs that have ended, or are gone, off the active ones."""
        jobs = {job.metadata.uid: job for job in self._jobs.by(cron)}
        active = {reference.uid for reference in status.active}
        for uid, job in jobs.items():
            if not is_finished(job):
                if uid not in active:
                    note = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                    self._recorder.warning(cron, "UnexpectedJob", note)
                continue
            end = next(one.type for one in job.status.conditions if one.type in ("Complete", "Failed"))
            if uid in active:
                status.active = [one for one in status.active if one.uid != uid]
                note = f"Saw completed job: {job.metadata.name}, condition: {end}"
                self._recorder.normal(cron, "SawCompletedJob", note)
            done, last = job.status.completion_time, status.last_successful_time
            if end == "Complete" and done is not None and (last is None or done > last):
                status.last_successful_time = done
        for reference in list(status.active):
            key = ObjectKey(cron.metadata.namespace, reference.name or "")
            if reference.uid not in jobs and await self._client.find(Job, key, consistency="live") is None:
                status.active.remove(reference)
                self._recorder.normal(cron, "MissingJob", f"Active job went missing: {reference.name}")

    async def _schedule(self, cron: CronJob, status: CronJobStatus) -> None:
        now = self._clock.now()
        zone = _zone(cron)
        if zone is None:
            name = cron.spec.time_zone
            note = f'invalid timeZone: "{name}": unknown time zone {name}'
            self._recorder.warning(cron, "UnknownTimeZone", note)
            return
        if cron.spec.suspend:
            return
        schedule = parsed_schedule(cron.spec.schedule, zone)
        if schedule.after(now) is None:
            why = "time difference between two schedules is less than 1 second"
            self._recorder.warning(cron, "InvalidSchedule", f"invalid schedule: {cron.spec.schedule} : {why}")
            return
        due, missed = _last_due(cron, schedule, now)
        if missed > _MANY:
            note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._recorder.warning(cron, "TooManyMissedTimes", note)
        following = schedule.after(due if due is not None else now)
        if following is not None:
            self._alarms.set(cron.key, max(0.0, (following - now).total_seconds()) + _DELTA)
        if due is None or due == status.last_schedule_time:
            return
        deadline = cron.spec.starting_deadline_seconds
        if deadline is not None and due + timedelta(seconds=deadline) < now:
            note = f"Missed scheduled time to start a job: {due.astimezone(UTC):%a, %d %b %Y %H:%M:%S +0000}"
            self._recorder.warning(cron, "MissSchedule", note)
            return
        name = f"{cron.metadata.name}-{int(due.timestamp()) // 60}"
        if any(reference.name == name for reference in status.active):
            return
        if cron.spec.concurrency_policy == "Forbid" and status.active:
            note = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._recorder.normal(cron, "JobAlreadyActive", note)
            return
        if cron.spec.concurrency_policy == "Replace":
            for reference in list(status.active):
                job = await self._client.find(Job, ObjectKey(cron.metadata.namespace, reference.name or ""))
                if job is not None:
                    await self._delete(cron, status, job)
        created = await self._create(cron, name, due.astimezone(zone))
        if created is not None and all(one.uid != created.metadata.uid for one in status.active):
            status.active.append(_reference(created))
            status.last_schedule_time = due

    async def _create(self, cron: CronJob, name: str, due: datetime) -> Job | None:
        template = cron.spec.job_template
        shown = due.isoformat(timespec="seconds")
        job = Job(
            metadata=ObjectMeta(
                name=name,
                namespace=cron.metadata.namespace,
                labels=dict(template.metadata.labels),
                annotations=template.metadata.annotations | {_SCHEDULED_AT: shown.replace("+00:00", "Z")},
                owner_references=[cron.as_owner()],
            ),
            spec=template.spec,
        )
        try:
            created = await self._client.create(job)
        except AlreadyExists:
            found = await self._client.get(Job, job.key, consistency="live")
            controller = controller_of(found)
            return found if controller is not None and controller.uid == cron.metadata.uid else None
        except KubernetesError as error:
            if is_refused_by_deletion(error):
                return None
            self._recorder.warning(cron, "FailedCreate", f"Error creating job: {message_of(error)}")
            raise
        self._recorder.normal(cron, "SuccessfulCreate", f"Created job {created.metadata.name}")
        return created

    async def _delete(self, cron: CronJob, status: CronJobStatus, job: Job) -> None:
        await self._client.delete(job, propagation="Background", uid=job.metadata.uid, missing_ok=True)
        status.active = [one for one in status.active if one.uid != job.metadata.uid]
        self._recorder.normal(cron, "SuccessfulDelete", f"Deleted job {job.metadata.name}")

    async def _clean_up(self, cron: CronJob, status: CronJobStatus) -> None:
        """Delete the oldest of those that have ended, beyond the limits."""
        ended = [job for job in self._jobs.by(cron) if is_finished(job) and job.metadata.deletion_timestamp is None]
        ended.sort(key=lambda job: (str(job.status.start_time or job.metadata.creation_timestamp), job.metadata.name))
        limits = {"Complete": cron.spec.successful_jobs_history_limit, "Failed": cron.spec.failed_jobs_history_limit}
        for type_, limit in limits.items():
            alike = [job for job in ended if any(one.type == type_ for one in job.status.conditions)]
            for job in alike[: max(0, len(alike) - limit)] if limit is not None else ():
                await self._delete(cron, status, job)


def _timing(cron: CronJob) -> tuple[str, str | None]:
    return cron.spec.schedule, cron.spec.time_zone


def _zone(cron: CronJob) -> tzinfo | None:
    """The time zone of the schedule; None for one that is not known here."""
    if cron.spec.time_zone is None:
        return UTC
    try:
        return ZoneInfo(cron.spec.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _last_due(cron: CronJob, schedule: Schedule, now: datetime) -> tuple[datetime | None, int]:
    """The last time that was due since the last one that was dealt with, and about how many there were."""
    earliest = cron.status.last_schedule_time or cron.metadata.creation_timestamp or now
    if cron.spec.starting_deadline_seconds is not None:
        earliest = max(earliest, now - timedelta(seconds=cron.spec.starting_deadline_seconds))
    first = schedule.after(earliest)
    if first is None or first > now:
        return None, 0
    second = schedule.after(first)
    if second is None or second > now:
        return first, 1
    interval = (second - first).total_seconds()
    missed = int((now - first).total_seconds() / interval) + 1
    # Nearly there in one step, as schedules may have been missed for years.
    recent = first + timedelta(seconds=max(0, missed - 2) * interval) - timedelta(seconds=1)
    found = first
    while (following := schedule.after(recent)) is not None and following <= now:
        found = recent = following
    return found, missed


def _reference(job: Job) -> ObjectReference:
    return ObjectReference(
        api_version="batch/v1",
        kind="Job",
        namespace=job.metadata.namespace,
        name=job.metadata.name,
        uid=job.metadata.uid,
        resource_version=job.metadata.resource_version,
    )
