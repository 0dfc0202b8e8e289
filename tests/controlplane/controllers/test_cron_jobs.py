"""Cron schedules, and CronJobs on simulated nodes in virtual time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kubewright.api.batch.v1 import CronJob, Job
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.time import now
from kubewright.client import MergePatch
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.cron_schedule import parsed_schedule
from kubewright.testing.virtual_time import run_virtual


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2026-01-01T00:00:30", "2026-01-01T00:01:00"),
        ("*/15 3 * * *", "2026-01-01T03:45:00", "2026-01-02T03:00:00"),
        ("0 0 31 * *", "2026-01-31T00:00:00", "2026-03-31T00:00:00"),
        ("0 0 13 * fri", "2026-01-01T00:00:00", "2026-01-02T00:00:00"),
        ("0 0 * * 1-3", "2026-01-01T00:00:00", "2026-01-05T00:00:00"),
        ("5/20 0 1 jan,JUL *", "2026-01-01T00:45:00", "2026-07-01T00:05:00"),
        ("@monthly", "2026-01-01T00:00:00", "2026-02-01T00:00:00"),
        ("@every 90m", "2026-01-01T00:00:00", "2026-01-01T01:30:00"),
    ],
)
def test_the_next_time_of_a_schedule(schedule: str, after: str, due: str) -> None:
    found = parsed_schedule(schedule, UTC).after(datetime.fromisoformat(f"{after}Z"))
    assert found == datetime.fromisoformat(f"{due}Z")


def test_a_schedule_goes_by_its_time_zone() -> None:
    found = parsed_schedule("0 3 * * *", ZoneInfo("Asia/Tokyo")).after(datetime(2026, 1, 1, tzinfo=UTC))
    assert found == datetime(2026, 1, 1, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        # In spring the hour from two to three is left out, in autumn it comes twice.
        ("30 2 * * *", "2026-03-28T12:00:00", "2026-03-30T00:30:00"),
        ("30 * * * *", "2026-03-29T00:30:00", "2026-03-29T01:30:00"),
        ("30 2 * * *", "2026-10-25T00:30:00", "2026-10-25T01:30:00"),
        ("0 3 * * *", "2026-10-24T12:00:00", "2026-10-25T02:00:00"),
    ],
)
def test_a_schedule_goes_by_the_clocks_of_its_zone_when_they_are_changed(schedule: str, after: str, due: str) -> None:
    """The times are those of robfig/cron, which kube-controller-manager uses."""
    found = parsed_schedule(schedule, ZoneInfo("Europe/Berlin")).after(datetime.fromisoformat(f"{after}Z"))
    assert found == datetime.fromisoformat(f"{due}Z")


def test_a_day_that_never_comes_has_no_time() -> None:
    assert parsed_schedule("0 0 30 2 *", UTC).after(datetime(2026, 1, 1, tzinfo=UTC)) is None


def test_jobs_are_created_on_time_and_a_few_are_kept() -> None:
    async def scenario() -> None:
        pod: JSONObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}
        template: JSONValue = {"spec": {"template": {"spec": pod}}}
        async with ControlPlane.embedded() as plane, plane.client() as client:
            for name, more in (("often", {}), ("never", {"suspend": True})):
                spec: JSONValue = {"schedule": "*/10 * * * *", "jobTemplate": template, **more}
                given: JSONValue = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
                await client.create(from_json(CronJob, given))
            await asyncio.sleep(2 * 3600)
            jobs = await client.list(Job, namespace="default")
            assert len(jobs) == 3
            assert all(job.metadata.name.startswith("often-") for job in jobs)
            assert all(
                job.metadata.creation_timestamp is not None and job.metadata.creation_timestamp.minute % 10 == 0
                for job in jobs
            )
            often = await client.get(CronJob, "often", namespace="default")
            assert often.status.active == []
            assert often.status.last_successful_time is not None

    run_virtual(scenario)


def test_a_changed_schedule_counts_from_its_next_time() -> None:
    async def scenario() -> None:
        pod: JSONObject = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}
        spec: JSONValue = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}
        async with ControlPlane.embedded() as plane, plane.client() as admin:
            client = admin.in_namespace("default")
            cron = await client.create(from_json(CronJob, {"metadata": {"name": "rare"}, "spec": spec}))
            await asyncio.sleep(3600)
            await client.patch(cron, MergePatch({"spec": {"schedule": "*/10 * * * *"}}))
            at = now()
            await asyncio.sleep(1)
            assert await client.list(Job) == [], "what the new schedule would have been due for before"
            await asyncio.sleep(600)
            (job,) = await client.list(Job)
            assert job.metadata.creation_timestamp is not None
            assert job.metadata.creation_timestamp > at

    run_virtual(scenario)
