from __future__ import annotations

from datetime import timedelta

import pytest

from kubewright.api.core.v1 import Pod, PodSpec
from kubewright.api.kinds import ObjectKey
from kubewright.controller.reconcile import Request, Result, TerminalError, checked_result


def test_a_request_reads_as_kubectl_writes_it() -> None:
    assert str(Request("shop", "web")) == "shop/web"
    assert str(Request("", "node-1")) == "node-1"


def test_a_request_is_the_key_of_its_object() -> None:
    by_key: dict[object, int] = {ObjectKey("shop", "web"): 1}
    assert by_key[Request("shop", "web")] == 1


@pytest.mark.parametrize(
    ("result", "seconds"),
    [
        (Result(), 0.0),
        (Result(requeue=True), 0.0),
        (Result(requeue_after=5), 5.0),
        (Result(requeue_after=0.25), 0.25),
        (Result(requeue_after=timedelta(minutes=2, milliseconds=500)), 120.5),
    ],
)
def test_the_delay_is_in_seconds(result: Result, seconds: float) -> None:
    assert result.delay == seconds
    assert isinstance(result.delay, float)


def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Result().requeue = True  # type: ignore[misc]  # that is what is tested


def test_none_means_done() -> None:
    assert checked_result(None) == Result()


@pytest.mark.parametrize("result", [Result(), Result(requeue=True), Result(requeue_after=3), Result(priority=7)])
def test_a_result_is_taken_as_it_is(result: Result) -> None:
    assert checked_result(result) is result


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (True, r"returned True: expected a Result or None; to requeue, return Result\(requeue=True\)"),
        (30.0, r"returned 30.0: expected a Result or None; to requeue .* return Result\(requeue_after=30.0\)"),
        (timedelta(1), r"to requeue after that time, return Result\(requeue_after=datetime.timedelta\(days=1\)\)"),
        (Result, r"returned the class Result: write Result\(\), with parentheses"),
        (TerminalError("no"), r"returned TerminalError\('no'\): an error is raised, not returned"),
        (Pod(spec=PodSpec(containers=[])), r"returned the Pod .*: expected a Result or None"),
        ({"phase": "Ready"}, r"returned {'phase': 'Ready'}: expected a Result or None"),
        (Result(30), "requeue=30: expected True or False; a time is given as requeue_after="),  # type: ignore[arg-type]
        (Result(requeue_after="30"), "requeue_after='30': expected seconds or a timedelta"),  # type: ignore[arg-type]
        (Result(priority="high"), "priority='high': expected an integer"),  # type: ignore[arg-type]
    ],
)
def test_any_other_result_is_an_error_that_names_it(returned: object, message: str) -> None:
    """The types of a result are not checked where it is made, and mypy is not everybody's."""
    with pytest.raises(TypeError, match=message):
        checked_result(returned)
