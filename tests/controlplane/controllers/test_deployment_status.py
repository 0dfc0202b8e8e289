from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kubewright.api.apps.v1 import (
    Deployment,
    DeploymentCondition,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetCondition,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from kubewright.api.core.v1 import PodSpec, PodTemplateSpec
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.controlplane.controllers.deployment_status import (
    condition,
    counted,
    note_pause,
    note_progress,
    seconds_to_deadline,
    set_deployment_condition,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
TEMPLATE = PodTemplateSpec(spec=PodSpec(containers=[]))


def deployment(replicas: int = 4, deadline: int | None = 60) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", generation=2),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(),
            template=TEMPLATE,
            progress_deadline_seconds=deadline,
            strategy=DeploymentStrategy(
                type="RollingUpdate", rolling_update=RollingUpdateDeployment(max_surge=1, max_unavailable=1)
            ),
        ),
    )


def replica_set(name: str, desired: int, there: int, ready: int, terminating: int | None = 0) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name),
        spec=ReplicaSetSpec(replicas=desired, selector=LabelSelector(), template=TEMPLATE),
        status=ReplicaSetStatus(
            replicas=there,
            ready_replicas=ready or None,
            available_replicas=ready or None,
            terminating_replicas=terminating,
            observed_generation=1,
        ),
    )


def words(status: DeploymentStatus, type_: str) -> tuple[str, str | None, str | None]:
    found = condition(status, type_)
    assert found is not None
    return found.status, found.reason, found.message


def test_the_numbers_are_the_sums_over_the_replica_sets_and_zeros_are_absent() -> None:
    new, old = replica_set("new", 2, 2, 1, terminating=1), replica_set("old", 3, 3, 2)

    status = counted(deployment(), new, [old], NOW)

    assert (status.replicas, status.updated_replicas, status.ready_replicas) == (5, 2, 3)
    assert (status.available_replicas, status.unavailable_replicas) == (3, 2)
    assert (status.terminating_replicas, status.observed_generation) == (1, 2)
    empty = counted(deployment(0), None, [], NOW)
    assert (empty.replicas, empty.unavailable_replicas, empty.terminating_replicas) == (None, None, 0)


def test_available_means_no_more_pods_missing_than_may_be() -> None:
    assert words(counted(deployment(), replica_set("new", 4, 4, 3), [], NOW), "Available") == (
        "True",
        "MinimumReplicasAvailable",
        "Deployment has minimum availability.",
    )
    assert words(counted(deployment(), replica_set("new", 4, 4, 2), [], NOW), "Available") == (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )


def progressed(subject: Deployment, new: ReplicaSet, *old: ReplicaSet, now: datetime = NOW) -> DeploymentStatus:
    status = counted(subject, new, old, now)
    note_progress(subject, status, new, old, now)
    return status


def test_progress_completion_and_the_lack_of_both_have_kubernetes_messages() -> None:
    subject = deployment()

    subject.status = progressed(subject, replica_set("new", 4, 2, 0))
    assert words(subject.status, "Progressing") == ("True", "ReplicaSetUpdated", 'ReplicaSet "new" is progressing.')

    stuck = progressed(subject, replica_set("new", 4, 2, 0), now=NOW + timedelta(seconds=61))
    assert words(stuck, "Progressing") == (
        "False",
        "ProgressDeadlineExceeded",
        'ReplicaSet "new" has timed out progressing.',
    )

    done = progressed(subject, replica_set("new", 4, 4, 4))
    assert words(done, "Progressing") == (
        "True",
        "NewReplicaSetAvailable",
        'ReplicaSet "new" has successfully progressed.',
    )


def test_each_progress_moves_the_deadline_and_only_a_turn_moves_the_transition() -> None:
    subject = deployment()
    subject.status = progressed(subject, replica_set("new", 4, 2, 0))

    later = progressed(subject, replica_set("new", 4, 3, 1), now=NOW + timedelta(seconds=50))

    found = condition(later, "Progressing")
    assert found is not None
    assert (found.last_transition_time, found.last_update_time) == (NOW, NOW + timedelta(seconds=50))
    assert seconds_to_deadline(subject, later, NOW + timedelta(seconds=80)) == 31


def test_a_complete_rollout_does_not_time_out_when_a_pod_dies_later() -> None:
    subject = deployment()
    subject.status = progressed(subject, replica_set("new", 4, 4, 4))

    later = progressed(subject, replica_set("new", 4, 4, 2), now=NOW + timedelta(hours=1))

    assert words(later, "Progressing")[1] == "NewReplicaSetAvailable"
    assert words(later, "Available")[0] == "False"
    assert seconds_to_deadline(subject, later, NOW) is None


def test_without_a_deadline_nothing_is_reported_of_progress() -> None:
    for deadline in (None, 2**31 - 1):
        subject = deployment(deadline=deadline)
        subject.status.conditions = [DeploymentCondition(type="Progressing", status="True", reason="ReplicaSetUpdated")]

        status = progressed(subject, replica_set("new", 4, 2, 0))

        assert condition(status, "Progressing") is None
        assert seconds_to_deadline(subject, status, NOW) is None


def test_pausing_and_resuming_are_reported_but_never_over_a_missed_deadline() -> None:
    subject = deployment()
    subject.spec.paused = True
    note_pause(subject, subject.status, NOW)
    assert words(subject.status, "Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
    assert seconds_to_deadline(subject, subject.status, NOW) is None

    subject.spec.paused = False
    note_pause(subject, subject.status, NOW)
    assert words(subject.status, "Progressing") == ("Unknown", "DeploymentResumed", "Deployment is resumed")

    set_deployment_condition(subject.status, "Progressing", "False", "ProgressDeadlineExceeded", "", NOW)
    subject.spec.paused = True
    note_pause(subject, subject.status, NOW)
    assert words(subject.status, "Progressing")[1] == "ProgressDeadlineExceeded"


def test_a_replica_set_that_cannot_make_pods_is_reported_until_it_can() -> None:
    subject, new = deployment(), replica_set("new", 4, 0, 0)
    new.status.conditions = [
        ReplicaSetCondition(
            type="ReplicaFailure", status="True", reason="FailedCreate", message="quota", last_transition_time=NOW
        )
    ]

    subject.status = progressed(subject, new)
    assert words(subject.status, "ReplicaFailure") == ("True", "FailedCreate", "quota")

    assert condition(progressed(subject, replica_set("new", 4, 4, 0)), "ReplicaFailure") is None
