"""What a type decodes a server accepts, and the reverse: on random types with every marker, and random values of them.

Values fit a type, or nearly do. What only the server checks is the list of docs/definitions.md. The types of a seed are
always the same; `KUBEWRIGHT_AGREEMENT_SEEDS=200` compares more of them.
"""

from __future__ import annotations

import os

from tests.manifest.agreement.run import Outcome, compare

from kubewright import Client

SEEDS = int(os.environ.get("KUBEWRIGHT_AGREEMENT_SEEDS", "2"))


async def test_a_type_and_the_server_agree_about_values(admin: Client) -> None:
    outcome = Outcome()
    for seed in range(SEEDS):
        outcome += await compare(admin, seed)

    assert "\n".join(outcome.problems) == ""
    # Both verdicts are compared often, and so are the reasons that only the server has.
    assert min(outcome.verdicts["accepted"], outcome.verdicts["refused"]) > 50 * SEEDS
    assert outcome.reasons
