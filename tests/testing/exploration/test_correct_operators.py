"""The same operators without mistakes: nothing is found in any world.

There are 200 seeds, divided between them. KUBEWRIGHT_EXPLORE_SEEDS=1000 runs that many for each.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.testing.exploration.operators import (
    counted_crews,
    explore_crews,
    explore_expiring_mails,
    explore_living_machines,
    explore_machines,
    explore_mails,
    explore_teams,
)


@pytest.mark.parametrize(
    "check",
    [
        lambda: explore_machines(seeds=40).same_end(),
        lambda: explore_living_machines(seeds=40).same_end(),
        lambda: explore_mails(seeds=40).same_end(),
        lambda: explore_teams(seeds=40).same_end(),
        lambda: explore_crews(seeds=40).same_end(),
        lambda: explore_crews(counted_crews, faults=["takeover", "stale"]).same_end(),
        lambda: explore_expiring_mails().same_end(),
    ],
    ids=["machines", "living machines", "mails", "teams", "crews", "counted crews", "expiring mails"],
)
def test_all_worlds_of_a_correct_operator_end_the_same(check: Callable[[], None]) -> None:
    check()
