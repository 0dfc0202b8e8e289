"""Nothing that a client sends makes the server fail. `python -m tests.fuzz` goes on for longer."""

from __future__ import annotations

import pytest
from tests.fuzz.requests import fuzz_requests
from tests.fuzz.run import fuzz


@pytest.mark.parametrize("seed", [101, 102])
async def test_no_request_makes_the_server_fail(seed: int) -> None:
    outcome = await fuzz(seed, 600)
    assert outcome.problems == []
    # Not everything is refused: what is spoiled in a harmless way gets far.
    assert outcome.statuses[201] > 20
    assert outcome.statuses[422] > 20


def test_a_seed_repeats_its_requests() -> None:
    first, second, other = (fuzz_requests(seed) for seed in (7, 7, 8))
    pairs = [(next(first), next(second), next(other)) for _ in range(50)]
    assert all(one == same for one, same, _ in pairs)
    assert any(one != different for one, _, different in pairs)
