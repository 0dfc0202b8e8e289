from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.patterns.parcels import Parcel, parcel

from kubewright import Conflict, Model, ObjectMeta, Resource, now
from kubewright.api.apps.v1 import DeploymentStatus
from kubewright.api.core.v1 import (
    Namespace,
    NamespaceCondition,
    NamespaceStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from kubewright.client.errors import Status
from kubewright.patterns import (
    NotYet,
    get_condition,
    is_true,
    remove_condition,
    reporting,
    set_condition,
    summarize,
)


def described(obj: Parcel, type: str) -> tuple[str, str, str]:
    condition = get_condition(obj, type)
    assert condition is not None
    return condition.status, condition.reason, condition.message


def test_item_48_there_is_one_condition_of_a_type_and_others_are_untouched() -> None:
    obj = parcel()
    set_condition(obj, "Ready", False, "Starting", "0 of 3")
    set_condition(obj, "Healthy", None, "Unprobed")
    healthy = get_condition(obj, "Healthy")
    set_condition(obj, "Ready", True, "Done", "3 of 3")
    assert [condition.type for condition in obj.status.conditions] == ["Ready", "Healthy"]
    assert described(obj, "Ready") == ("True", "Done", "3 of 3")
    assert get_condition(obj, "Healthy") is healthy
    assert described(obj, "Healthy") == ("Unknown", "Unprobed", "")


def test_item_49_a_condition_has_status_reason_message_generation_and_the_time_of_its_last_transition() -> None:
    obj = parcel(generation=4)
    set_condition(obj, "Ready", False, "Starting", "0 of 3")
    condition = get_condition(obj, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", "Starting", "0 of 3")
    assert condition.observed_generation == 4
    earlier = condition.last_transition_time = now() - timedelta(hours=1)
    set_condition(obj, "Ready", False, "Starting", "1 of 3")
    same = get_condition(obj, "Ready")
    assert same is not None
    assert same.last_transition_time == earlier
    set_condition(obj, "Ready", True, "Done")
    flipped = get_condition(obj, "Ready")
    assert flipped is not None
    assert flipped.last_transition_time > earlier


def test_a_change_is_reported_once() -> None:
    obj = parcel()
    assert set_condition(obj, "Ready", False, "Starting", "0 of 3")
    assert not set_condition(obj, "Ready", False, "Starting", "0 of 3")
    assert set_condition(obj, "Ready", False, "Starting", "1 of 3")
    obj.metadata.generation = 2
    assert not set_condition(obj, "Ready", False, "Starting", "1 of 3")
    condition = get_condition(obj, "Ready")
    assert condition is not None
    assert condition.observed_generation == 2


@pytest.mark.parametrize("reason", ["", "not a word", "ends-with-dash", "Ünicode", "x" * 1025])
def test_a_reason_that_the_server_would_refuse_is_refused_here(reason: str) -> None:
    obj = parcel()
    with pytest.raises(ValueError, match="the reason of the condition Ready is"):
        set_condition(obj, "Ready", True, reason)
    assert obj.status.conditions == []


def test_a_verdict_that_is_a_string_is_refused() -> None:
    """Kubernetes has strings there, and "False" would be true."""
    obj = parcel()
    with pytest.raises(TypeError, match=r"'False', …\): expected True, False or None for Unknown"):
        set_condition(obj, "Ready", "False", "Broken")  # type: ignore[arg-type]  # what is tested
    assert obj.status.conditions == []


def test_a_message_that_is_too_long_for_the_server_is_cut() -> None:
    obj = parcel()
    set_condition(obj, "Ready", False, "Failed", "x" * 40000)
    assert len(described(obj, "Ready")[2]) == 32768


def test_a_removed_condition_is_gone() -> None:
    obj = parcel()
    set_condition(obj, "Ready", True, "Done")
    set_condition(obj, "Healthy", True, "Done")
    assert remove_condition(obj, "Ready")
    assert not remove_condition(obj, "Ready")
    assert [condition.type for condition in obj.status.conditions] == ["Healthy"]


def test_what_was_true_of_an_earlier_generation_is_not_true() -> None:
    obj = parcel()
    assert not is_true(obj, "Ready")
    set_condition(obj, "Ready", True, "Done")
    assert is_true(obj, "Ready")
    obj.metadata.generation = 2
    assert not is_true(obj, "Ready")


def test_conditions_of_built_in_kinds_can_be_read() -> None:
    pod = Pod(spec=PodSpec(containers=[]), status=PodStatus(conditions=[PodCondition(type="Ready", status="True")]))
    assert is_true(pod, "Ready")
    assert not is_true(pod, "Initialized")
    condition = get_condition(pod, "Ready")
    assert condition is not None
    assert condition.last_probe_time is None


def test_conditions_of_built_in_kinds_can_be_set() -> None:
    """As a controller does that is named in the readiness gates of pods."""
    pod = Pod(metadata=ObjectMeta(name="web", generation=2), spec=PodSpec(containers=[]))
    at = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    assert set_condition(pod, "example.com/Connected", False, "NoRoute", "no route yet", at=at)
    assert pod.status.conditions == [
        PodCondition(
            type="example.com/Connected",
            status="False",
            reason="NoRoute",
            message="no route yet",
            last_transition_time=at.replace(microsecond=0),
            observed_generation=2,
        )
    ]
    assert not set_condition(pod, "example.com/Connected", False, "NoRoute", "no route yet")
    assert set_condition(pod, "example.com/Connected", True, "Connected")
    assert is_true(pod, "example.com/Connected")
    assert remove_condition(pod, "example.com/Connected")


def test_what_a_condition_does_not_have_is_not_looked_for_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that names the fields there are costs ten times as much as the condition."""

    def refuse(self: object, name: str) -> object:
        raise AssertionError(f"{name} was looked for")

    namespace = Namespace(metadata=ObjectMeta(name="shop"))
    monkeypatch.setattr(Model, "__getattr__", refuse)
    set_condition(namespace, "A", True, "So")
    set_condition(namespace, "A", False, "No")
    assert not is_true(namespace, "A")


def test_a_condition_without_generation_or_message_and_one_with_another_time() -> None:
    namespace = Namespace(status=NamespaceStatus(conditions=[NamespaceCondition(type="A", status="True", reason="So")]))
    assert not set_condition(namespace, "A", True, "So"), "no message is an empty one"
    deployment = DeploymentStatus()
    at = datetime(2026, 1, 1, tzinfo=UTC)

    class Rollout(Resource[PodSpec, DeploymentStatus]):
        """Has the conditions of a Deployment."""

    rollout = Rollout(spec=PodSpec(containers=[]), status=deployment)
    for minute in (0, 1):
        set_condition(rollout, "Progressing", True, "Updated", f"{minute}", at=at + timedelta(minutes=minute))
    (condition,) = deployment.conditions
    assert (condition.last_transition_time, condition.last_update_time) == (at, at + timedelta(minutes=1))


def test_a_summary_is_true_when_all_are() -> None:
    obj = parcel()
    set_condition(obj, "A", True, "Done")
    set_condition(obj, "B", True, "Done")
    assert summarize(obj, "A", "B")
    assert described(obj, "Ready") == ("True", "Done", "")
    assert not summarize(obj, "A", "B")


def test_a_summary_names_what_is_not_true_and_has_the_reason_of_the_first() -> None:
    obj = parcel(generation=2)
    set_condition(obj, "A", True, "Done")
    set_condition(obj, "B", False, "QuotaExceeded", "too many pods")
    set_condition(obj, "C", True, "Done")
    stale = get_condition(obj, "C")
    assert stale is not None
    stale.observed_generation = 1
    summarize(obj, "A", "B", "C", "D", into="Available")
    assert described(obj, "Available") == (
        "False",
        "QuotaExceeded",
        "B: too many pods; C is about an earlier generation; D is not known yet",
    )


def test_item_50_nothing_known_is_not_ready() -> None:
    obj = parcel()
    summarize(obj, "A", "B")
    assert described(obj, "Ready")[:2] == ("False", "NotReady")
    with pytest.raises(ValueError, match="needs the types"):
        summarize(obj)


def test_item_47_a_block_sets_its_condition_however_it_ends() -> None:
    obj = parcel()

    def early() -> None:
        with reporting(obj, "Early"):
            return

    early()
    assert described(obj, "Early") == ("True", "Done", "")
    with pytest.raises(NotYet), reporting(obj, "Waits"):
        raise NotYet("no node yet", reason="Unscheduled")
    assert described(obj, "Waits") == ("False", "Unscheduled", "no node yet")
    conflict = Conflict(Status(code=409, reason="Conflict", message="taken"), "create Pod a/b")
    with pytest.raises(Conflict), reporting(obj, "Refused"):
        raise conflict
    assert described(obj, "Refused") == ("False", "Conflict", "create Pod a/b: taken")
    with pytest.raises(KeyError), reporting(obj, "Early"):
        raise KeyError("x")
    assert described(obj, "Early") == ("False", "KeyError", "'x'")


def test_a_cancellation_says_nothing_about_the_object() -> None:
    obj = parcel()
    with pytest.raises(asyncio.CancelledError), reporting(obj, "Ready"):
        raise asyncio.CancelledError
    assert obj.status.conditions == []


def test_a_lost_race_says_nothing_about_the_object() -> None:
    obj = parcel()
    message = "the object has been modified; please apply your changes to the latest version and try again"
    with pytest.raises(Conflict), reporting(obj, "Ready"):
        raise Conflict(Status(code=409, reason="Conflict", message=message), "update Pod a/b")
    assert obj.status.conditions == []


class _Private(Exception):
    pass


class Größe(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "reason"),
    [(_Private("no"), "Private"), (Größe("no"), "Error"), (NotYet("no", reason="no word"), "NotYet")],
)
def test_an_exception_whose_name_is_no_reason_is_reported_nevertheless(error: Exception, reason: str) -> None:
    obj = parcel()
    with pytest.raises(type(error)), reporting(obj, "Ready"):
        raise error
    assert described(obj, "Ready") == ("False", reason, "no")


def test_a_summary_of_a_reason_that_is_none_is_not_an_error() -> None:
    obj = parcel()
    set_condition(obj, "Disk", False, "Full")
    obj.status.conditions[0].reason = "disk is full"
    summarize(obj, "Disk")
    assert described(obj, "Ready")[:2] == ("False", "NotReady")
