"""Classic mistakes in small operators: each is found, by the fault that shows it and with the difference it makes."""

from __future__ import annotations

import pytest
from tests.testing.exploration.broken import BUGS


@pytest.mark.parametrize("name", BUGS)
def test_the_mistake_is_found_and_its_report_shows_it(name: str) -> None:
    bug = BUGS[name]
    found = bug.findings()
    assert [each.world for each in found] == [bug.world]
    report = str(found[0])
    assert bug.shown in report
    # What was done to the operator, at which call, and how to do only that again.
    assert f'same_end(only="{bug.world}")' in report or f"KUBEWRIGHT_EXPLORE={bug.world} pytest" in report
    assert [fault.kind for fault, _ in found[0].faults] == [
        kind for kind, at, _ in [bug.world.partition("@")] if at and kind != "jitter"
    ]
    for _, call in found[0].faults:
        assert str(call) in report
