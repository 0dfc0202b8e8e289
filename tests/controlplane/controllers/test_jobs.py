"""Jobs on simulated nodes, in virtual time."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

from kubewright.api.batch.v1 import Job
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client
from kubewright.client.wait import condition, deleted
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.controllers.job_indexes import formatted, parsed
from kubewright.testing.virtual_time import run_virtual


def job(name: str, annotations: JSONObject | None = None, policy: str = "Never", **spec: JSONValue) -> Job:
    template: JSONObject = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": policy, "containers": [{"name": "main", "image": "work"}]},
    }
    given: JSONObject = {"metadata": {"name": name, "namespace": "default"}, "spec": {"template": template, **spec}}
    return from_json(Job, given)


def crash(seconds: str = "0") -> JSONObject:
    return {"simulate.kubewright.dev/run": seconds, "simulate.kubewright.dev/exit-code": "1"}


async def _times(client: Client, name: str) -> list[timedelta]:
    """When the pods of a Job were created, from the first one on."""
    pods = await client.list(Pod, namespace="default", labels={"job-name": name})
    created = sorted(pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp is not None)
    return [time - created[0] for time in created]


def test_jobs_run_to_their_end_by_themselves() -> None:
    async def scenario() -> None:
        async with ControlPlane.embedded() as plane, plane.client() as client:
            whole = await client.create(job("whole", completions=4, parallelism=2, ttlSecondsAfterFinished=100))
            broken = await client.create(job("broken", crash(), backoffLimit=3))
            looping = await client.create(job("looping", crash(), "OnFailure", backoffLimit=2))
            done = await client.wait_for(whole, condition("Complete"), timeout=60)
            assert done is not None
            assert done.status.succeeded == 4
            assert done.status.completion_time is not None
            assert done.status.start_time is not None
            assert done.status.completion_time - done.status.start_time < timedelta(seconds=5)
            await client.wait_for(broken, condition("Failed"), timeout=200)
            seconds = [time.total_seconds() for time in await _times(client, "broken")]
            pauses = [round(later - earlier, -1) for earlier, later in pairwise(seconds)]
            assert pauses == [10, 20, 40], "failed pods are replaced ever later"
            await client.wait_for(looping, condition("Failed"), timeout=200)
            assert len(await client.list(Pod, namespace="default", labels={"job-name": "looping"})) == 0
            await client.wait_for(whole, deleted, timeout=200)

    run_virtual(scenario)


def test_indexes_are_written_as_ranges() -> None:
    for text in ("", "0", "0,1", "0-2", "1,3-5,7,8"):
        assert formatted(parsed(text, 100)) == text
    assert parsed("0-9", 3) == {0, 1, 2}
