from __future__ import annotations

import pytest

from kubewright.controller.statistics import QUEUE_BOUNDS, RECONCILE_BOUNDS, ControllerStatistics, HistogramCounts


def test_a_value_counts_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    histogram = HistogramCounts([1.0, 2.0])

    for value in (0.5, 1.0, 1.5, 2.0, 7.0):
        histogram.observe(value)

    assert histogram.bounds == (1.0, 2.0)
    assert histogram.counts == [2, 2, 1]
    assert histogram.sum == 12.0


@pytest.mark.parametrize("bounds", [[], [1.0, 1.0], [2.0, 1.0], [1.0, float("nan")]])
def test_bounds_that_do_not_increase_are_refused(bounds: list[float]) -> None:
    with pytest.raises(ValueError, match="must be one or more increasing numbers"):
        HistogramCounts(bounds)


def test_the_bounds_are_those_of_controller_runtime() -> None:
    assert (len(RECONCILE_BOUNDS), RECONCILE_BOUNDS[0], RECONCILE_BOUNDS[-1]) == (40, 0.005, 60.0)
    assert list(QUEUE_BOUNDS) == pytest.approx([1e-8 * 10**power for power in range(12)])
    HistogramCounts(RECONCILE_BOUNDS)
    HistogramCounts(QUEUE_BOUNDS)


def test_steps_of_any_number_of_names_take_a_bounded_amount_of_memory() -> None:
    statistics = ControllerStatistics(1)
    for number in range(1000):
        statistics.observe_step(f"step {number}", "done", 0.1)
    statistics.observe_step("step 1", "done", 0.1)
    assert len(statistics.steps) <= 201
    assert sum(statistics.steps["step 1", "done"].counts) == 2
    assert sum(sum(histogram.counts) for histogram in statistics.steps.values()) == 1001
