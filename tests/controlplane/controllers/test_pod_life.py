from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Literal

import pytest

from kubewright.api.core.v1 import Container, Pod, PodCondition, PodReadinessGate, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane.controllers.pod_behaviour import Behaviour
from kubewright.controlplane.controllers.pod_life import (
    Addresses,
    ended,
    entered_at,
    evicted,
    seconds_to_next,
    stage_of,
    step,
)
from kubewright.controlplane.controllers.pods import is_ready
from kubewright.patterns.conditions import get_condition

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Addresses("10.0.0.1", "10.244.0.1")
RestartPolicy = Literal["Always", "Never", "OnFailure"]


def pod(restart_policy: RestartPolicy = "Always", *, init: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="web", namespace="shop", uid="7", generation=1),
        spec=PodSpec(
            containers=[Container(name="main", image="web:1"), Container(name="proxy", image="proxy:1")],
            init_containers=[Container(name="setup", image="setup:1")] if init else [],
            restart_policy=restart_policy,
        ),
    )


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def lived(subject: Pod, behaviour: Behaviour, seconds: float) -> list[str]:
    """Lets time jump from stage to stage up to `seconds`, and lists each: time, phase, state, restarts, readiness."""
    stages, now, entered = [], START, START
    while True:
        while (next_ := step(subject, behaviour, PLACE, entered, now)) is not None:
            subject.status, is_new = next_
            entered = now if is_new else entered
            status = subject.status.container_statuses[0]
            waiting, terminated = status.state.waiting, status.state.terminated
            state = f"{waiting.reason}" if waiting else f"exit {terminated.exit_code}" if terminated else "running"
            passed = (now - START).total_seconds()
            ready = "ready" if is_ready(subject) else "not ready"
            stages.append(f"{passed:g}: {subject.status.phase}, {state}, {status.restart_count}, {ready}")
        wait = seconds_to_next(subject, behaviour, entered, now)
        if wait is None or now + timedelta(seconds=wait) > after(seconds):
            return stages
        assert wait > 0, "a pod that has nothing to do must not be looked at over and over"
        now += timedelta(seconds=wait)


def test_a_pod_without_delays_is_ready_in_one_step() -> None:
    assert lived(pod(), Behaviour(), 1000) == ["0: Running, running, 0, ready"]


def test_each_delay_is_a_stage_of_its_own() -> None:
    assert lived(pod("Never"), Behaviour(start=2, ready=3, run=10), 1000) == [
        "0: Pending, ContainerCreating, 0, not ready",
        "2: Running, running, 0, not ready",
        "5: Running, running, 0, ready",
        "12: Succeeded, exit 0, 0, not ready",
    ]


@pytest.mark.parametrize(
    ("policy", "exit_code", "phase"), [("Never", 0, "Succeeded"), ("Never", 3, "Failed"), ("OnFailure", 0, "Succeeded")]
)
def test_a_pod_that_is_not_restarted_ends_with_its_result(policy: RestartPolicy, exit_code: int, phase: str) -> None:
    assert lived(pod(policy), Behaviour(run=1, exit_code=exit_code), 1000) == [
        "0: Running, running, 0, ready",
        f"1: {phase}, exit {exit_code}, 0, not ready",
    ]


def test_a_crash_loop_restarts_at_once_and_then_after_10_s_20_s_and_so_on() -> None:
    assert lived(pod("OnFailure"), Behaviour(run=1, exit_code=1), 36) == [
        "0: Running, running, 0, ready",
        "1: Running, running, 1, ready",
        "2: Running, CrashLoopBackOff, 1, not ready",
        "12: Running, running, 2, ready",
        "13: Running, CrashLoopBackOff, 2, not ready",
        "33: Running, running, 3, ready",
        "34: Running, CrashLoopBackOff, 3, not ready",
    ]


def test_the_back_off_message_has_duration_and_container_and_never_exceeds_five_minutes() -> None:
    subject = pod()
    lived(subject, Behaviour(run=0, exit_code=1), 3000)

    waiting = subject.status.container_statuses[0].state.waiting
    last = subject.status.container_statuses[0].last_state.terminated
    assert waiting is not None
    assert waiting.message == "back-off 5m0s restarting failed container=main pod=web_shop(7)"
    assert last is not None
    assert (last.exit_code, last.reason) == (1, "Error")


def test_a_pod_that_crashes_some_times_then_runs_on() -> None:
    assert lived(pod(), Behaviour(run=1, exit_code=1, crashes=2), 1000) == [
        "0: Running, running, 0, ready",
        "1: Running, running, 1, ready",
        "2: Running, CrashLoopBackOff, 1, not ready",
        "12: Running, running, 2, ready",
    ]


def test_images_that_cannot_be_pulled_are_tried_again_after_10_s_20_s_and_so_on() -> None:
    subject = pod()

    assert lived(subject, Behaviour(start=0.1, failed_pulls=2), 1000) == [
        "0: Pending, ContainerCreating, 0, not ready",
        "0.1: Pending, ErrImagePull, 0, not ready",
        "1.1: Pending, ImagePullBackOff, 0, not ready",
        "10.1: Pending, ErrImagePull, 0, not ready",
        "11.1: Pending, ImagePullBackOff, 0, not ready",
        "30.1: Running, running, 0, ready",
    ]


def test_an_image_that_can_never_be_pulled_is_tried_every_five_minutes() -> None:
    subject = pod()
    stages = lived(subject, Behaviour(failed_pulls=inf), 1300)

    attempts = [int(stage.partition(":")[0]) for stage in stages if "ErrImagePull" in stage]
    assert attempts == [0, 10, 30, 70, 150, 310, 610, 910, 1210]
    main, proxy = (status.state.waiting for status in subject.status.container_statuses)
    assert main is not None
    assert proxy is not None
    assert main.message == (
        'Back-off pulling image "web:1": ErrImagePull: failed to pull and unpack image "web:1": not found'
    )
    assert '"proxy:1"' in (proxy.message or "")
    # It is mended in the middle of a pause.
    assert lived(subject, Behaviour(), 0) == ["0: Running, running, 0, ready"]


def test_a_pod_may_never_become_ready_and_cease_to_be() -> None:
    subject = pod()
    assert lived(subject, Behaviour(ready=inf), 1000) == ["0: Running, running, 0, not ready"]
    assert lived(subject, Behaviour(), 0) == ["0: Running, running, 0, ready"]

    assert lived(subject, Behaviour(ready=inf), 1000) == ["0: Running, running, 0, not ready"]


def test_an_evicted_pod_has_failed_with_its_reason() -> None:
    subject = pod()
    lived(subject, Behaviour(), 0)

    subject.status = evicted(subject, "The node was low on resource: memory. ", after(2))

    status, target = subject.status, get_condition(subject, "DisruptionTarget")
    assert (status.phase, status.reason, status.message) == (
        "Failed",
        "Evicted",
        "The node was low on resource: memory. ",
    )
    assert target is not None
    assert (target.status, target.reason) == ("True", "TerminationByKubelet")
    assert not is_ready(subject)


def test_a_pod_that_waits_stays_pending_until_it_no_longer_must() -> None:
    subject = pod()

    assert lived(subject, Behaviour(waiting="CreateContainerError"), 1000) == [
        "0: Pending, CreateContainerError, 0, not ready"
    ]
    assert lived(subject, Behaviour(), 1000) == ["0: Running, running, 0, ready"]


def test_a_running_pod_can_be_made_to_end() -> None:
    subject = pod("Never")
    lived(subject, Behaviour(), 1000)

    assert lived(subject, Behaviour(run=0, exit_code=4), 1000) == ["0: Failed, exit 4, 0, not ready"]


def test_a_running_pod_shows_what_a_kubelet_would() -> None:
    subject = pod(init=True)
    lived(subject, Behaviour(), 0)

    status = subject.status
    assert (status.host_ip, status.pod_ip, status.start_time) == (PLACE.host, PLACE.pod, START)
    assert [(one.type, one.status, one.observed_generation) for one in status.conditions] == [
        (type_, "True", 1)
        for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    assert [(one.name, one.ready, one.started) for one in status.container_statuses] == [
        ("main", True, True),
        ("proxy", True, True),
    ]
    initialized = status.init_container_statuses[0].state.terminated
    assert initialized is not None
    assert initialized.reason == "Completed"
    assert (stage_of(subject), entered_at(subject)) == ("running", START)


def test_an_unready_pod_names_its_containers() -> None:
    subject = pod()
    lived(subject, Behaviour(start=1), 0)

    ready = get_condition(subject, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "ContainersNotReady")
    assert ready.message == "containers with unready status: [main proxy]"


def test_conditions_of_others_stay_and_open_readiness_gates() -> None:
    subject = pod()
    subject.spec.readiness_gates = [PodReadinessGate(condition_type="example.com/open")]
    lived(subject, Behaviour(), 0)
    ready, containers = get_condition(subject, "Ready"), get_condition(subject, "ContainersReady")
    assert ready is not None
    assert containers is not None
    assert (ready.status, ready.reason, containers.status) == ("False", "ReadinessGatesNotReady", "True")

    subject.status.conditions.append(PodCondition(type="example.com/open", status="True"))
    next_ = step(subject, Behaviour(), PLACE, START, after(5))

    assert next_ is not None
    subject.status = next_[0]
    assert is_ready(subject)
    assert get_condition(subject, "example.com/open") is not None
    turned = get_condition(subject, "Ready")
    assert turned is not None
    assert turned.last_transition_time == after(5)


def test_ending_for_good_overrules_the_restart_policy() -> None:
    subject = pod("Always")
    lived(subject, Behaviour(), 0)
    before = copy.deepcopy(subject.status)

    status = ended(subject, 137, after(1.5), for_good=True)

    assert status.phase == "Failed"
    terminated = status.container_statuses[0].state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.started_at, terminated.finished_at) == (137, START, after(1))
    assert subject.status == before, "what is shared must not be changed"
