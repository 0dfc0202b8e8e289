"""The same requests to both control planes: the same answers."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.differential.custom import DEFINITIONS, GEARS
from tests.conformance.differential.generators import Family, examples, sequences
from tests.conformance.differential.kinds import (
    CLUSTER_ROLES,
    CONFIG_MAPS,
    JOBS,
    NAMESPACES,
    POD_TEMPLATES,
    PODS,
    SECRETS,
    SERVICES,
)
from tests.conformance.differential.sides import Both

AT_ONCE = 10
FAMILIES = [
    CONFIG_MAPS,
    SECRETS,
    SERVICES,
    POD_TEMPLATES,
    PODS,
    JOBS,
    CLUSTER_ROLES,
    NAMESPACES,
    GEARS,
    DEFINITIONS,
]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
async def test_the_same_requests_are_answered_the_same(both: Both, family: Family) -> None:
    chosen, prefix = examples(sequences(family), family.sequences), both.prefix(family.path)
    found: list[str] = []
    try:
        for start in range(0, len(chosen), AT_ONCE):
            found += filter(
                None,
                await asyncio.gather(
                    *(
                        both.difference(family.path, sequence, f"{prefix}s{start + number}", family.unfinished)
                        for number, sequence in enumerate(chosen[start : start + AT_ONCE])
                    )
                ),
            )
    finally:
        if prefix:
            await both.remove(family.path, prefix)
    assert not found, f"{len(found)} of {len(chosen)} sequences differ:\n" + "\n".join(found)
