from __future__ import annotations

import asyncio

import pytest

from kubewright import AlreadyExists, Conflict
from kubewright.client.errors import APIError, Status
from kubewright.patterns import retry_on_conflict
from kubewright.testing import run_virtual


class Change:
    """Fails a number of times."""

    def __init__(self, failures: int, error: type[APIError] = Conflict) -> None:
        self.calls: list[float] = []
        self._failures = failures
        self._error = error

    async def __call__(self) -> str:
        self.calls.append(asyncio.get_running_loop().time())
        if len(self.calls) <= self._failures:
            raise self._error(Status(code=409, reason="Conflict", message=f"conflict {len(self.calls)}"))
        return "done"


@pytest.mark.parametrize("failures", range(5))
def test_item_54_a_conflict_is_retried_up_to_five_times(failures: int) -> None:
    change = Change(failures)
    assert run_virtual(lambda: retry_on_conflict(change)) == "done"
    assert len(change.calls) == failures + 1
    pauses = [later - earlier for earlier, later in zip(change.calls, change.calls[1:], strict=False)]
    assert all(0.01 <= pause <= 0.011 for pause in pauses)


def test_item_54_the_last_conflict_is_raised() -> None:
    change = Change(9)
    with pytest.raises(Conflict, match="conflict 5"):
        run_virtual(lambda: retry_on_conflict(change))
    assert len(change.calls) == 5


def test_item_54_other_errors_are_raised_at_once() -> None:
    change = Change(1, AlreadyExists)
    with pytest.raises(AlreadyExists):
        run_virtual(lambda: retry_on_conflict(change))
    assert len(change.calls) == 1


def test_pauses_grow_by_the_factor() -> None:
    change = Change(3)
    run_virtual(lambda: retry_on_conflict(change, tries=4, pause=0.01, factor=5, jitter=0))
    assert [round(later - earlier, 6) for earlier, later in zip(change.calls, change.calls[1:], strict=False)] == [
        0.01,
        0.05,
        0.25,
    ]


def test_no_tries_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="tries=0"):
        run_virtual(lambda: retry_on_conflict(Change(0), tries=0))


async def test_what_is_not_a_function_is_refused() -> None:
    async def change() -> None: ...

    called = change()
    with pytest.raises(TypeError, match="expected an async function, which is called for each try"):
        await retry_on_conflict(called)  # type: ignore[arg-type]  # what is tested
    await called
