from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from kubewright.api.core.v1 import Container, Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane.controllers.pod_behaviour import Behaviour
from kubewright.controlplane.controllers.pod_events import (
    PodEvent,
    events_of_deletion,
    events_of_eviction,
    events_of_step,
)
from kubewright.controlplane.controllers.pod_life import Addresses, step

START = datetime(2026, 1, 1, tzinfo=UTC)
WHERE = Addresses("10.0.0.1", "10.244.0.1")
PULLED = 'Successfully pulled image "web:1" in {0} ({0} including waiting). Image size: 0 bytes.'
PRESENT = 'Container image "web:1" already present on machine and can be accessed by the pod'


def pod(policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent", *, init: bool = False) -> Pod:
    main = Container(name="main", image="web:1", image_pull_policy=policy)
    before = Container(name="setup", image="tool:1", image_pull_policy=policy)
    return Pod(
        metadata=ObjectMeta(name="web-1", namespace="shop", uid="u"),
        spec=PodSpec(containers=[main], init_containers=[before] if init else []),
    )


def stepped(before: Pod, behaviour: Behaviour, seconds: float = 0) -> tuple[Pod, list[PodEvent]]:
    """The pod and its events, when its present stage began that long ago."""
    next_ = step(before, behaviour, WHERE, START, START + timedelta(seconds=seconds))
    assert next_ is not None
    after = copy.copy(before)
    after.status = next_[0]
    return after, list(events_of_step(before, after, behaviour))


def words(events: list[PodEvent]) -> list[tuple[str, str]]:
    return [(event.reason, event.message) for event in events]


def test_a_first_start_pulls_creates_and_starts() -> None:
    _, events = stepped(pod(), Behaviour())

    path = "spec.containers{main}"
    assert events == [
        PodEvent("Normal", "Pulling", 'Pulling image "web:1"', path),
        PodEvent("Normal", "Pulled", PULLED.format("0s"), path),
        PodEvent("Normal", "Created", "Container created", path),
        PodEvent("Normal", "Started", "Container started", path),
    ]


@pytest.mark.parametrize(("start", "text"), [(0.5, "500ms"), (1.5, "1.5s"), (90, "1m30s")])
def test_a_slow_start_is_announced_and_timed(start: float, text: str) -> None:
    behaviour = Behaviour(start=start)
    creating, events = stepped(pod(), behaviour)
    assert words(events) == [("Pulling", 'Pulling image "web:1"')]

    _, events = stepped(creating, behaviour, start)
    assert words(events)[0] == ("Pulled", PULLED.format(text))
    assert [event.reason for event in events] == ["Pulled", "Created", "Started"]


def test_init_containers_come_first() -> None:
    _, events = stepped(pod(init=True), Behaviour())

    paths = [event.field_path for event in events]
    assert paths == ["spec.initContainers{setup}"] * 4 + ["spec.containers{main}"] * 4


def test_a_restart_finds_its_image_and_a_second_crash_backs_off() -> None:
    behaviour = Behaviour(run=1, exit_code=1)
    running, _ = stepped(pod(init=True), behaviour)

    restarted, events = stepped(running, behaviour, 1)
    assert words(events) == [("Pulled", PRESENT), ("Created", "Container created"), ("Started", "Container started")]

    crashed, events = stepped(restarted, behaviour, 2)
    message = "Back-off restarting failed container main in pod web-1_shop(u)"
    assert events == [PodEvent("Warning", "BackOff", message, "spec.containers{main}")]

    _, events = stepped(crashed, behaviour, 3600)
    assert words(events)[0] == ("Pulled", PRESENT)


def test_the_pull_policy_is_heeded() -> None:
    behaviour = Behaviour(run=1, exit_code=1)
    running, events = stepped(pod("Never"), behaviour)
    assert words(events)[0] == ("Pulled", PRESENT)

    running, _ = stepped(pod("Always"), behaviour)
    _, events = stepped(running, behaviour, 1)
    assert [event.reason for event in events] == ["Pulling", "Pulled", "Created", "Started"]


def test_each_failed_pull_and_each_back_off_is_reported() -> None:
    behaviour = Behaviour(failed_pulls=2)
    pulling = ("Pulling", 'Pulling image "web:1"')
    failed = [
        ("Failed", 'Failed to pull image "web:1": failed to pull and unpack image "web:1": not found'),
        ("Failed", "Error: ErrImagePull"),
    ]
    backing_off = [("BackOff", 'Back-off pulling image "web:1"'), ("Failed", "Error: ImagePullBackOff")]

    subject, events = stepped(pod(init=True), behaviour)
    assert words(events) == [pulling, *failed]
    assert {event.type for event in events[1:]} == {"Warning"}
    subject, events = stepped(subject, behaviour, 1)
    assert words(events) == backing_off
    subject, events = stepped(subject, behaviour, 10)
    assert words(events) == [pulling, *failed]
    subject, events = stepped(subject, behaviour, 11)
    assert words(events) == backing_off
    _, events = stepped(subject, behaviour, 30)
    assert [event.reason for event in events] == ["Pulling", "Pulled", "Created", "Started"]


def test_a_slow_pull_that_fails_is_announced_once() -> None:
    behaviour = Behaviour(start=5, failed_pulls=1)
    subject, events = stepped(pod(), behaviour)
    assert [event.reason for event in events] == ["Pulling"]

    _, events = stepped(subject, behaviour, 5)
    assert [event.reason for event in events] == ["Failed", "Failed"]


def test_a_pod_that_waits_for_its_volumes_has_nothing_to_report() -> None:
    subject, events = stepped(pod(), Behaviour(waiting="ContainerCreating"))
    assert events == []

    _, events = stepped(subject, Behaviour())
    assert [event.reason for event in events] == ["Pulling", "Pulled", "Created", "Started"]


def test_an_evicted_pod_is_reported_with_its_containers() -> None:
    running, _ = stepped(pod(), Behaviour())

    assert list(events_of_eviction(running, "low on memory")) == [
        PodEvent("Warning", "Evicted", "low on memory", ""),
        PodEvent("Normal", "Killing", "Stopping container main", "spec.containers{main}"),
    ]


def test_a_pod_that_never_starts_has_a_reason() -> None:
    _, events = stepped(pod(), Behaviour(waiting="CreateContainerConfigError", message="no such thing"))
    assert words(events) == [("Failed", "Error: no such thing")]


def test_becoming_ready_is_no_event() -> None:
    behaviour = Behaviour(ready=1)
    running, _ = stepped(pod(), behaviour)

    _, events = stepped(running, behaviour, 1)
    assert events == []


def test_containers_that_run_are_stopped_when_their_pod_is_deleted() -> None:
    running, _ = stepped(pod(init=True), Behaviour())

    assert list(events_of_deletion(running)) == [
        PodEvent("Normal", "Killing", "Stopping container main", "spec.containers{main}")
    ]
    assert list(events_of_deletion(pod())) == []
