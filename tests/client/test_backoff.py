from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.backoff import Backoff


def test_the_delay_doubles_with_each_failure_up_to_the_limit() -> None:
    backoff = Backoff(0.1, 1.0)
    assert [backoff.delay(failures) for failures in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_without_a_failure_there_is_no_delay() -> None:
    assert Backoff(0.1, 1.0, jitter=0.5).delay(0) == 0.0


def test_any_number_of_failures_has_a_delay() -> None:
    assert Backoff(0.005, 1000.0).delay(10**9) == 1000.0


@given(st.integers(1, 100), st.floats(0, 1))
def test_jitter_shortens_a_delay_by_no_more_than_its_fraction(failures: int, jitter: float) -> None:
    exact = Backoff(0.1, 30.0).delay(failures)
    assert exact * (1 - jitter) <= Backoff(0.1, 30.0, jitter).delay(failures) <= exact


def test_jitter_spreads_callers_that_failed_together() -> None:
    backoff = Backoff(0.1, 30.0, jitter=0.5)
    assert len({backoff.delay(5) for _ in range(20)}) > 1


@pytest.mark.parametrize(("base", "limit", "jitter"), [(0.0, 1.0, 0.0), (2.0, 1.0, 0.0), (1.0, 2.0, 1.5)])
def test_a_schedule_that_makes_no_sense_is_refused(base: float, limit: float, jitter: float) -> None:
    with pytest.raises(ValueError, match="a back-off"):
        Backoff(base, limit, jitter)
