"""Jobs, by kube-controller-manager and by ours: nothing runs their pods but these tests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.conformance.workload_steps import end, events, make_ready, pods, until

from kubewright.api.batch.v1 import Job
from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import Pod, ServiceAccount
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client, MergePatch
from kubewright.client.errors import NotFound
from kubewright.client.wait import deleted, exists


@pytest.fixture
async def client(client: Client) -> Client:
    """Admits pods."""
    await client.wait_for(ServiceAccount, "default", exists, timeout=60)
    return client


async def job(client: Client, name: str = "work", **spec: JSONValue) -> Job:
    template: JSONObject = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "work"}]}}
    return await client.create(from_json(Job, {"metadata": {"name": name}, "spec": {"template": template, **spec}}))


def conditions(found: Job) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.type, one.status, one.reason, one.message) for one in found.status.conditions]


def is_over(found: Job) -> bool:
    return any(one.type in ("Complete", "Failed") and one.status == "True" for one in found.status.conditions)


def is_live(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase == "Pending"


async def test_a_job_runs_its_pods_until_enough_have_succeeded(client: Client) -> None:
    made = await job(client, completions=3, parallelism=2)
    first, second = await pods(client, 2)
    assert first.metadata.generate_name == "work-"
    assert first.metadata.finalizers == ["batch.kubernetes.io/job-tracking"]
    assert first.metadata.owner_references == [made.as_owner()]
    assert sorted(first.metadata.labels) == [
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "controller-uid",
        "job-name",
    ]
    await make_ready(client, first)
    running = await until(client, made, lambda found: found.status.ready == 1)
    assert (running.status.active, running.status.terminating, running.status.failed) == (2, 0, None)
    assert running.status.start_time is not None

    await end(client, first, exit_code=1)
    failed = await until(client, made, lambda found: found.status.failed == 1)
    assert failed.status.active == 2, "a pod that failed long ago is replaced at once"
    await end(client, second)
    succeeded = await until(client, made, lambda found: found.status.succeeded == 1)
    assert to_json(succeeded.status.uncounted_terminated_pods) == {}
    for pod in await pods(client, 2, is_live):
        await end(client, pod)
    done = await until(client, made, is_over)
    message = "Reached expected number of succeeded pods"
    assert conditions(done) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached", message),
        ("Complete", "True", "CompletionsReached", message),
    ]
    assert done.status.completion_time is not None
    assert (done.status.succeeded, done.status.failed, done.status.active, done.status.ready) == (3, 1, None, 0)
    assert all(not pod.metadata.finalizers for pod in await client.list(Pod))

    names = sorted(pod.metadata.name for pod in await client.list(Pod))
    assert await events(client, made, 5) == [
        ("Normal", "Completed", "Job completed", "job-controller"),
        *(("Normal", "SuccessfulCreate", f"Created pod: {name}", "job-controller") for name in names),
    ]
    await client.patch(made, MergePatch({"spec": {"ttlSecondsAfterFinished": 0}}))
    assert await client.wait_for(made, deleted, timeout=60) is None
    await pods(client, 0)


async def test_a_job_fails_with_too_many_of_its_pods(client: Client) -> None:
    made = await job(client, parallelism=3, completions=3, backoffLimit=0)
    first, *others = await pods(client, 3)
    await end(client, first, exit_code=1)
    failed = await until(client, made, is_over)
    message = "Job has reached the specified backoff limit"
    assert conditions(failed) == [
        ("FailureTarget", "True", "BackoffLimitExceeded", message),
        ("Failed", "True", "BackoffLimitExceeded", message),
    ]
    assert (failed.status.failed, failed.status.active, failed.status.completion_time) == (3, None, None)
    assert [pod.metadata.name for pod in await pods(client, 1)] == [first.metadata.name]
    found = await events(client, made, 6)
    assert ("Warning", "BackoffLimitExceeded", message, "job-controller") in found
    for pod in others:
        assert ("Normal", "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}", "job-controller") in found

    late = await job(client, "late", activeDeadlineSeconds=1)
    over = await until(client, late, is_over)
    assert conditions(over)[1][2:] == ("DeadlineExceeded", "Job was active longer than specified deadline")
    on_purpose: JSONValue = {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        ]
    }
    strict = await job(client, "strict", podFailurePolicy=on_purpose)
    (pod,) = await pods(client, 1, lambda pod: pod.metadata.generate_name == "strict-")
    await end(client, pod, exit_code=42)
    over = await until(client, strict, is_over)
    why = f"Container main for pod {pod.metadata.namespace}/{pod.metadata.name} failed with exit code 42"
    assert conditions(over)[1][2:] == ("PodFailurePolicy", f"{why} matching FailJob rule at index 1")


async def test_indexes_succeed_and_fail_one_by_one(client: Client) -> None:
    made = await job(client, completions=5, parallelism=5, completionMode="Indexed", backoffLimitPerIndex=0)
    found = await pods(client, 5)
    key = "batch.kubernetes.io/job-completion-index"
    third = found[2]
    assert third.metadata.generate_name == "work-2-"
    assert third.spec.hostname == "work-2"
    assert (third.metadata.labels[key], third.metadata.annotations) == (
        "2",
        {key: "2", "batch.kubernetes.io/job-index-failure-count": "0"},
    )
    reference: JSONObject = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{key}']"}
    assert to_json(third.spec.containers[0].env) == [
        {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": reference}}
    ]
    for index in (0, 1, 2, 4):
        await end(client, found[index])
    some = await until(client, made, lambda found: found.status.completed_indexes == "0-2,4")
    assert (some.status.succeeded, some.status.failed_indexes) == (4, "")
    await end(client, found[3], exit_code=1)
    over = await until(client, made, is_over)
    assert (over.status.completed_indexes, over.status.failed_indexes, over.status.failed) == ("0-2,4", "3", 1)
    assert conditions(over)[1][1:] == ("True", "FailedIndexes", "Job has failed indexes")

    policy: JSONValue = {"rules": [{"succeededIndexes": "0,2", "succeededCount": 1}]}
    lucky = await job(client, "lucky", completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)
    *_, last = await pods(client, 3, lambda pod: pod.metadata.labels["job-name"] == "lucky")
    await end(client, last)
    over = await until(client, lucky, is_over)
    assert conditions(over) == [
        ("SuccessCriteriaMet", "True", "SuccessPolicy", "Matched rules at index 0"),
        ("Complete", "True", "SuccessPolicy", "Matched rules at index 0"),
    ]
    assert (over.status.succeeded, over.status.failed, over.status.completed_indexes) == (1, None, "2")


async def test_a_suspended_job_runs_nothing(client: Client) -> None:
    made = await job(client, suspend=True, parallelism=2)
    halted = await until(client, made, lambda found: bool(found.status.conditions))
    assert conditions(halted) == [("Suspended", "True", "JobSuspended", "Job suspended")]
    assert halted.status.start_time is None
    halted.spec.suspend = False
    await client.patch(halted)
    first, _ = await pods(client, 2)
    resumed = await until(client, made, lambda found: found.status.active == 2)
    assert conditions(resumed) == [("Suspended", "False", "JobResumed", "Job resumed")]
    resumed.spec.suspend = True
    await client.patch(resumed)
    await pods(client, 0)
    again = await until(client, made, lambda found: found.status.conditions[0].status == "True")
    # Pods that are deleted for it have not failed.
    assert (again.status.active, again.status.start_time, again.status.failed) == (None, None, None)
    found = {(reason, message) for _, reason, message, _ in await events(client, made, 6)}
    assert found >= {
        ("Suspended", "Job suspended"),
        ("Resumed", "Job resumed"),
        ("SuccessfulDelete", f"Deleted pod: {first.metadata.name}"),
    }


async def test_the_pods_of_a_deleted_job_are_released(client: Client) -> None:
    made, orphaned = await job(client), await job(client, "other")
    for one in (made, orphaned):
        await until(client, one, lambda found: found.status.active == 1)
    await client.delete(made, propagation="Background")
    await client.delete(orphaned, propagation="Orphan")
    (left,) = await pods(client, 1)
    free = await until(client, left, lambda pod: not pod.metadata.finalizers)
    assert free.metadata.labels["job-name"] == "other"
    assert free.metadata.owner_references == []


async def test_what_counts_as_failed_of_a_pod_that_is_being_deleted(client: Client) -> None:
    either = await job(client, "either")
    patient = await job(client, "patient", podReplacementPolicy="Failed", parallelism=2, completions=2)
    (gone,) = await pods(client, 1, is_of(either))
    ending, stays = await pods(client, 2, is_of(patient))
    for one in (gone, ending):
        await client.delete(one)
    await until(client, either, lambda found: found.status.failed == 1 and found.status.terminating == 0)
    await pods(client, 0, lambda pod: pod.metadata.uid == gone.metadata.uid)

    # It is held by its finalizer until it has ended, and not replaced before that. Pod garbage collection, which comes
    # by every 20 s, may be faster: it ends pods that were never scheduled.
    waiting = await until(client, patient, lambda found: found.status.terminating == 1 or found.status.failed == 1)
    if waiting.status.terminating == 1:
        assert (waiting.status.failed, waiting.status.active) == (None, 1)
    with suppress(NotFound):
        await end(client, ending, exit_code=1)
    replaced = await until(client, patient, lambda found: found.status.failed == 1 and found.status.active == 2)
    assert replaced.status.terminating == 0
    assert stays.metadata.uid in {pod.metadata.uid for pod in await pods(client, 2, is_of(patient))}


def is_of(job: Job) -> Callable[[Pod], bool]:
    return lambda pod: pod.metadata.labels["job-name"] == job.metadata.name
