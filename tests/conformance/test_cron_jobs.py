"""CronJobs, by kube-controller-manager and by ours. That one was due long ago makes it due now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.conformance.workload_steps import end, events, eventually, pods, until

from kubewright.api.batch.v1 import CronJob, Job
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ServiceAccount
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.time import now
from kubewright.client import Client, MergePatch
from kubewright.client.wait import exists


@pytest.fixture
async def client(client: Client) -> Client:
    """Admits pods."""
    await client.wait_for(ServiceAccount, "default", exists, timeout=60)
    return client


async def cron(client: Client, name: str, **spec: JSONValue) -> CronJob:
    """A suspended CronJob that last ran three days ago."""
    template: JSONValue = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}}
    given: JSONObject = {
        "schedule": "0 3 * * *",
        "suspend": True,
        "jobTemplate": {"metadata": {"labels": {"of": name}}, "spec": {"template": template, "backoffLimit": 0}},
    }
    made = await client.create(from_json(CronJob, {"metadata": {"name": name}, "spec": {**given, **spec}}))
    await client.status.patch(made, LONG_AGO)
    return made


LONG_AGO = MergePatch({"status": {"lastScheduleTime": f"{now() - timedelta(days=3):%Y-%m-%dT%H:%M:%SZ}"}})
RESUMED = MergePatch({"spec": {"suspend": False}})


async def jobs(client: Client, of: CronJob, count: int) -> list[Job]:
    """The Jobs of a CronJob by name, once there are so many."""
    found = await eventually(
        lambda: client.list(Job, labels={"of": of.metadata.name}),
        lambda found: len([job for job in found if job.metadata.deletion_timestamp is None]) == count,
    )
    return sorted(found, key=lambda job: job.metadata.name)


async def reasons(client: Client, of: CronJob, wanted: set[str]) -> set[tuple[str, str, str]]:
    """The events about a CronJob, once all wanted reasons are among them: type, reason and message."""

    async def get() -> set[tuple[str, str, str]]:
        return {one[:3] for one in await events(client, of, 0)}

    return await eventually(get, lambda found: wanted <= {reason for _, reason, _ in found})


async def test_a_cron_job_creates_the_job_that_is_due(client: Client) -> None:
    made = await cron(client, "night", timeZone="America/New_York")
    await client.patch(made, RESUMED)
    (job,) = await jobs(client, made, 1)
    busy = await until(client, made, lambda found: bool(found.status.active))
    due = busy.status.last_schedule_time
    assert due is not None
    assert timedelta(0) < now() - due < timedelta(days=1)
    assert job.metadata.name == f"night-{int(due.timestamp()) // 60}"
    assert (job.metadata.labels["of"], job.metadata.owner_references) == ("night", [made.as_owner()])
    at = due.astimezone(ZoneInfo("America/New_York"))
    assert (at.hour, at.minute) == (3, 0)
    assert job.metadata.annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == at.isoformat()
    (reference,) = busy.status.active
    assert (reference.kind, reference.name, reference.uid) == ("Job", job.metadata.name, job.metadata.uid)
    (pod,) = await pods(client, 1)
    await end(client, pod)
    idle = await until(client, made, lambda found: not found.status.active)
    assert idle.status.last_successful_time is not None
    assert await events(client, made, 2) == [
        (
            "Normal",
            "SawCompletedJob",
            f"Saw completed job: {job.metadata.name}, condition: Complete",
            "cronjob-controller",
        ),
        ("Normal", "SuccessfulCreate", f"Created job {job.metadata.name}", "cronjob-controller"),
    ]


async def test_a_job_that_is_due_while_another_runs_goes_by_the_concurrency_policy(client: Client) -> None:
    made = {
        policy: await cron(client, policy.lower(), concurrencyPolicy=policy)
        for policy in ("Allow", "Forbid", "Replace")
    }
    first: dict[str, Job] = {}
    for policy, one in made.items():
        await client.patch(one, RESUMED)
        (first[policy],) = await jobs(client, one, 1)
    for one in made.values():
        await until(client, one, lambda found: len(found.status.active) == 1)
        # The same minute of another hour: what is due is another Job.
        await client.patch(one, MergePatch({"spec": {"schedule": "0 15 * * *"}}))
        await client.status.patch(one, LONG_AGO)

    both = await until(client, made["Allow"], lambda found: len(found.status.active) == 2)
    assert len(await jobs(client, both, 2)) == 2
    (replacing,) = (await until(client, made["Replace"], _has_other(first["Replace"]))).status.active
    assert [job.metadata.name for job in await jobs(client, made["Replace"], 1)][-1:] == [replacing.name]
    found = await reasons(client, made["Replace"], {"SuccessfulDelete"})
    assert ("Normal", "SuccessfulDelete", f"Deleted job {first['Replace'].metadata.name}") in found
    note = "Not starting job because prior execution is running and concurrency policy is Forbid"
    found = await reasons(client, made["Forbid"], {"JobAlreadyActive"})
    assert ("Normal", "JobAlreadyActive", note) in found
    (alone,) = await jobs(client, made["Forbid"], 1)
    assert alone.metadata.name == first["Forbid"].metadata.name


def _has_other(job: Job) -> Callable[[CronJob], bool]:
    return lambda found: [one.uid for one in found.status.active] not in ([], [job.metadata.uid])


async def test_only_a_few_of_the_jobs_that_have_ended_are_kept(client: Client) -> None:
    made = await cron(client, "kept", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    await client.patch(made, RESUMED)
    (first,) = await jobs(client, made, 1)
    await end(client, (await pods(client, 1))[0])
    await until(client, made, lambda found: found.status.last_successful_time is not None)
    await client.patch(made, MergePatch({"spec": {"schedule": "0 15 * * *"}}))
    await client.status.patch(made, LONG_AGO)
    second = next(job for job in await jobs(client, made, 2) if job.metadata.uid != first.metadata.uid)
    (pod,) = await pods(client, 1, lambda pod: pod.metadata.labels["job-name"] == second.metadata.name)
    await end(client, pod, exit_code=1)
    (left,) = await jobs(client, made, 1)
    assert left.metadata.name == first.metadata.name, "those that failed are counted apart"
    found = await reasons(client, made, {"SuccessfulDelete"})
    assert ("Normal", "SuccessfulDelete", f"Deleted job {second.metadata.name}") in found

    await client.patch(made, MergePatch({"spec": {"successfulJobsHistoryLimit": 0}}))
    await jobs(client, made, 0)


async def test_schedules_that_were_missed_too_often_or_are_never_due_are_reported(client: Client) -> None:
    often = await cron(client, "often", schedule="30 * * * *", concurrencyPolicy="Forbid")
    ages = MergePatch({"status": {"lastScheduleTime": f"{now() - timedelta(days=9):%Y-%m-%dT%H:%M:%SZ}"}})
    await client.status.patch(often, ages)
    never = await cron(client, "never", schedule="0 0 31 2 *")
    for one in (often, never):
        await client.patch(one, RESUMED)
    note = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert ("Warning", "TooManyMissedTimes", note) in await reasons(client, often, {"TooManyMissedTimes"})
    assert len(await jobs(client, often, 1)) == 1
    note = "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second"
    assert ("Warning", "InvalidSchedule", note) in await reasons(client, never, {"InvalidSchedule"})
