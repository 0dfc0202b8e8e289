"""What is read from the status of a pod, as kubelets write it."""

from __future__ import annotations

from operators.devbox.pod import describe, ended_at, observe
from operators.devbox.tests.world import devbox
from operators.devbox.types import CommitRecord

from kubewright import ObjectMeta, now
from kubewright.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodSpec,
)

INITIALIZING = ContainerState(waiting=ContainerStateWaiting(reason="PodInitializing"))
DONE = ContainerState(terminated=ContainerStateTerminated(exit_code=0, reason="Completed"))


def status(name: str, state: ContainerState) -> ContainerStatus:
    return ContainerStatus(name=name, state=state, image="dev:1", image_id="", ready=False, restart_count=0)


def pod(*states: ContainerState) -> Pod:
    made = Pod(metadata=ObjectMeta(name="it"), spec=PodSpec(containers=[Container(name="it", image="dev:1")]))
    made.status.phase = "Pending"
    made.status.init_container_statuses = [status(f"init-{n}", state) for n, state in enumerate(states[:-1])]
    made.status.container_statuses = [status("it", states[-1])]
    return made


def test_an_image_that_the_first_container_cannot_pull_is_the_reason() -> None:
    waiting = ContainerState(waiting=ContainerStateWaiting(reason="ImagePullBackOff", message="no such image"))
    assert describe(pod(DONE, waiting, INITIALIZING)) == "ImagePullBackOff no such image"
    assert describe(pod(INITIALIZING, INITIALIZING, waiting)) == "ImagePullBackOff no such image"
    assert describe(pod(INITIALIZING, INITIALIZING, INITIALIZING)) == "PodInitializing"


def test_an_archive_that_cannot_be_unpacked_is_how_the_pod_ended() -> None:
    time = now()
    broken = ContainerState(terminated=ContainerStateTerminated(exit_code=2, reason="Error", finished_at=time))
    failed, made = pod(broken, INITIALIZING, INITIALIZING), devbox()
    failed.status.phase = "Failed"
    made.status.content_id = "content"
    made.status.commit_records["content"] = CommitRecord(base_image="dev:1")
    assert (describe(failed), ended_at(failed)) == ("Error, exit code 2", time)
    observe(made, failed)
    assert made.status.last_container_status == failed.status.init_container_statuses[0]
