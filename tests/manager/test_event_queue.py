"""What the queue of events costs, whatever the number of namespaces."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.errors import ConnectionLost
from kubewright.manager.event_queue import EventQueue, _Lane, _Lengths
from kubewright.testing.virtual_time import run_virtual


class Item:
    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.regarding = namespace


@pytest.mark.parametrize("namespaces", [10, 1000])
def test_an_attempt_costs_the_same_however_many_namespaces_wait(
    namespaces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an outage the lanes of all namespaces wait: going through them for each attempt took a tenth of a core."""
    examined = attempts = 0

    class Counted(_Lane[Item]):
        @property
        def is_open(self) -> bool:
            nonlocal examined
            examined += 1
            return super().is_open

    async def write(item: Item) -> None:
        nonlocal attempts
        attempts += 1
        raise ConnectionLost("no answer")

    async def main() -> None:
        queue = EventQueue[Item](write, lambda item: None)
        running = asyncio.create_task(queue.run())
        for number in range(namespaces):
            queue.put(Item(f"{number}"))
        await asyncio.sleep(50)
        running.cancel()
        await asyncio.wait((running,))

    monkeypatch.setattr("kubewright.manager.event_queue._Lane", Counted)
    run_virtual(main)
    assert attempts > 5 * namespaces
    assert examined < 3 * attempts


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=60))
def test_the_longest_lane_is_known_after_every_change(changes: list[tuple[int, bool]]) -> None:
    lanes = [_Lane[Item](f"{number}") for number in range(5)]
    lengths = _Lengths[Item]()
    for number, comes in changes:
        lane = lanes[number]
        before = len(lane.waiting)
        if comes:
            lane.waiting[Item(lane.namespace)] = 0
        elif before:
            lane.waiting.popitem()
        else:
            continue
        lengths.changed(lane, before)
        assert lengths.total == sum(len(each.waiting) for each in lanes)
        if lengths.total:
            assert len(lengths.longest.waiting) == max(len(each.waiting) for each in lanes)
