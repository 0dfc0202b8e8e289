from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kubewright.api.apps.v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdateDeployment,
)
from kubewright.api.core.v1 import PodSpec, PodTemplateSpec
from kubewright.api.int_or_string import IntOrString
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.controlplane.controllers.revisions import DESIRED_REPLICAS, MAX_REPLICAS
from kubewright.controlplane.controllers.rollout import (
    first_size,
    max_surge,
    max_unavailable,
    next_sizes,
    scaled_sizes,
    was_scaled,
)

TEMPLATE = PodTemplateSpec(spec=PodSpec(containers=[]))


def deployment(
    replicas: int, surge: IntOrString = "25%", unavailable: IntOrString = "25%", strategy: str = "RollingUpdate"
) -> Deployment:
    limits = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(),
            template=TEMPLATE,
            strategy=DeploymentStrategy(type="Recreate")
            if strategy == "Recreate"
            else DeploymentStrategy(type="RollingUpdate", rolling_update=limits),
        ),
        status=DeploymentStatus(),
    )


def replica_set(
    name: str, replicas: int, available: int | None = None, *, age: int = 0, desired: int = 0, most: int = 0
) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(
            name=name,
            creation_timestamp=datetime(2026, 1, 1, tzinfo=UTC) - timedelta(seconds=age),
            annotations={DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(most)} if desired else {},
        ),
        spec=ReplicaSetSpec(replicas=replicas, selector=LabelSelector(), template=TEMPLATE),
        status=ReplicaSetStatus(available_replicas=replicas if available is None else available, replicas=replicas),
    )


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (4, "25%", "25%", (1, 1)),
        (1, "25%", "25%", (1, 0)),
        (3, 0, 0, (0, 1)),
        (10, "0%", "5%", (0, 1)),
        (2, 0, 5, (0, 2)),
    ],
)
def test_surge_rounds_up_and_unavailability_down_and_they_are_never_both_zero(
    replicas: int, surge: IntOrString, unavailable: IntOrString, expected: tuple[int, int]
) -> None:
    subject = deployment(replicas, surge, unavailable)

    assert (max_surge(subject), max_unavailable(subject)) == expected


def test_a_new_replica_set_begins_with_what_the_surge_leaves_room_for() -> None:
    assert first_size(deployment(10, 3, 2), []) == 10
    assert first_size(deployment(10, 3, 2), [replica_set("old", 10)]) == 3
    assert first_size(deployment(10, 0, 2), [replica_set("old", 10)]) == 0
    assert first_size(deployment(10, strategy="Recreate"), [replica_set("old", 0)]) == 10


def test_the_new_one_grows_before_the_old_one_shrinks() -> None:
    assert next_sizes(deployment(10, 3, 2), replica_set("new", 0), [replica_set("old", 10)]) == {"new": 3}


def test_old_ones_shrink_only_as_far_as_availability_allows() -> None:
    new, old = replica_set("new", 3, 0), replica_set("old", 10)

    assert next_sizes(deployment(10, 3, 2), new, [old]) == {"old": 8}
    assert next_sizes(deployment(10, 3, 2), replica_set("new", 5, 0), [replica_set("old", 8)]) == {}
    assert next_sizes(deployment(10, 3, 2), replica_set("new", 5, 1), [replica_set("old", 8)]) == {"old": 7}


def test_pods_that_are_already_to_go_are_not_counted_on() -> None:
    """A ReplicaSet's status counts them until its controller has seen that it shrinks; new pods may serve before."""
    assert next_sizes(deployment(4, 1, 1), replica_set("new", 2, 1), [replica_set("old", 3, 4)]) == {"old": 2}

    # Undone while it still shrinks, it is the new one.
    assert next_sizes(deployment(4, 0, 1), replica_set("new", 2, 4), [replica_set("old", 2, 2)]) == {"old": 1}


def test_replicas_that_do_not_serve_go_first_and_older_sets_before_younger_ones() -> None:
    crashing = replica_set("crashing", 4, 0, age=10)
    good, older = replica_set("good", 5, age=20), replica_set("older", 4, age=30)

    sizes = next_sizes(deployment(10, 3, 2), replica_set("new", 0), [crashing, good, older])

    # 13 pods, of which 9 serve and 8 must: the 4 that do not serve go, and one that does, of the oldest.
    assert sizes == {"crashing": 0, "older": 3}


def test_a_new_one_that_is_too_large_comes_down_at_once() -> None:
    assert next_sizes(deployment(2), replica_set("new", 5), []) == {"new": 2}


def test_nothing_is_left_to_do_when_all_is_new() -> None:
    assert next_sizes(deployment(3), replica_set("new", 3), [replica_set("old", 0)]) == {}


def test_a_change_of_the_deployments_number_is_seen_by_the_annotation_of_active_sets() -> None:
    assert was_scaled(deployment(5), [replica_set("new", 3, desired=3)])
    assert not was_scaled(deployment(5), [replica_set("new", 5, desired=5), replica_set("old", 0, desired=3)])
    assert not was_scaled(deployment(5), [replica_set("adopted", 3)])


def test_scaling_outside_of_a_rollout_sizes_the_one_active_set() -> None:
    old = replica_set("old", 0, age=10)

    assert scaled_sizes(deployment(7), replica_set("new", 3), [old]) == {"new": 7}
    assert scaled_sizes(deployment(7), None, [old, replica_set("older", 0, age=20)]) == {"old": 7}
    assert scaled_sizes(deployment(7), None, []) == {}


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportions() -> None:
    new = replica_set("new", 5, desired=10, most=13)
    old = replica_set("old", 8, age=10, desired=10, most=13)

    sizes = scaled_sizes(deployment(20, 3, 2), new, [old])

    # 23 instead of 13: 8 x 23/13 = 14.2 and 5 x 23/13 = 8.8.
    assert sizes == {"old": 14, "new": 9}


def test_the_remainder_of_proportional_scaling_goes_to_the_largest_and_the_sum_is_exact() -> None:
    sets = [replica_set(name, 1, age=age, desired=3, most=3) for name, age in (("a", 30), ("b", 20), ("c", 10))]

    sizes = scaled_sizes(deployment(5, 0, 1), sets[2], sets[:2])

    assert sum(sizes.values()) == 5
    assert sizes["c"] == 2


def test_scaling_to_zero_in_the_middle_of_a_rollout_leaves_nothing() -> None:
    new, old = replica_set("new", 2, desired=4, most=5), replica_set("old", 3, desired=4, most=5)

    assert scaled_sizes(deployment(0, 1, 1), new, [old]) == {"new": 0, "old": 0}


def test_old_sets_go_to_zero_when_the_new_one_has_all_desired_pods() -> None:
    new = replica_set("new", 4, desired=4, most=5)

    assert scaled_sizes(deployment(4), new, [replica_set("adopted", 2, age=5)]) == {"adopted": 0}
