"""The table of phases, row by row."""

from __future__ import annotations

from typing import Literal

import pytest
from operators.devbox.phase import phase_of
from operators.devbox.tests.world import devbox
from operators.devbox.types import CommitRecord, Devbox, Phase, State

from kubewright import ObjectMeta, now
from kubewright.api.core.v1 import Container, Pod, PodSpec

PodIs = Literal["absent", "Pending", "Running", "Failed", "Succeeded", "terminating"]

TABLE: list[tuple[State, PodIs, str, Phase]] = [
    ("Running", "absent", "", "Pending"),
    ("Running", "Pending", "", "Pending"),
    ("Running", "Running", "node-1", "Running"),
    ("Running", "Succeeded", "node-1", "Pending"),
    ("Running", "Failed", "node-1", "Error"),
    ("Running", "terminating", "node-1", "Pending"),
    ("Paused", "absent", "node-1", "Paused"),
    ("Paused", "Running", "node-1", "Pausing"),
    ("Paused", "terminating", "node-1", "Pausing"),
    ("Paused", "Failed", "node-1", "Error"),
    ("Stopped", "Running", "node-1", "Stopping"),
    ("Stopped", "absent", "node-1", "Stopping"),
    ("Stopped", "absent", "", "Stopped"),
    ("Stopped", "Failed", "node-1", "Error"),
    ("Shutdown", "Running", "node-1", "Shutting"),
    ("Shutdown", "absent", "node-1", "Shutting"),
    ("Shutdown", "absent", "", "Shutdown"),
]


def pod(is_: PodIs) -> Pod | None:
    if is_ == "absent":
        return None
    made = Pod(metadata=ObjectMeta(name="it"), spec=PodSpec(containers=[Container(name="it", image="dev:1")]))
    if is_ == "terminating":
        made.metadata.deletion_timestamp, made.status.phase = now(), "Running"
    else:
        made.status.phase = is_
    return made


def in_state(state: State, reached: State, node: str) -> Devbox:
    made = devbox(state=state)
    made.status.state, made.status.content_id = reached, "content"
    made.status.commit_records["content"] = CommitRecord(base_image="dev:1", node=node)
    return made


@pytest.mark.parametrize(("state", "is_", "node", "phase"), TABLE)
def test_the_phase_of_a_state_and_a_pod(state: State, is_: PodIs, node: str, phase: Phase) -> None:
    assert phase_of(in_state(state, state, node), pod(is_)) == phase


def test_a_state_that_is_not_reached_is_on_the_way() -> None:
    assert phase_of(in_state("Stopped", "Running", ""), None) == "Stopping"
    assert phase_of(in_state("Shutdown", "Stopped", ""), None) == "Shutting"
    # A commit that is given up still reads the content.
    assert phase_of(in_state("Paused", "Running", ""), None) == "Pausing"


def test_a_state_of_a_later_version_is_unknown() -> None:
    made = in_state("Running", "Running", "")
    setattr(made.spec, "state", "Hibernating")  # noqa: B010  # no type checker takes it
    assert phase_of(made, None) == "Unknown"
