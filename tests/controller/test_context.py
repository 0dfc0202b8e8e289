from __future__ import annotations

import asyncio
import re
import subprocess
import sys

from kubewright.controller.context import ReconcileContext, current, new_reconcile_id
from kubewright.controller.statistics import ControllerStatistics


def test_ids_are_different_and_short() -> None:
    ids = [new_reconcile_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{6,}", each) for each in ids)
    assert len({each.partition("-")[0] for each in ids}) == 1


async def test_each_task_has_its_own_context() -> None:
    async def name_in(name: str) -> str:
        current.set(ReconcileContext("c", "", "Pod", "shop", name, new_reconcile_id(), (), ControllerStatistics(1)))
        await asyncio.sleep(0)
        context = current.get()
        assert context is not None
        return context.name

    assert current.get() is None
    assert await asyncio.gather(*(asyncio.create_task(name_in(name)) for name in "abc")) == ["a", "b", "c"]
    assert current.get() is None


def test_ids_of_two_processes_almost_never_collide() -> None:
    command = "from kubewright.controller.context import new_reconcile_id; print(new_reconcile_id())"
    ids = {subprocess.run([sys.executable, "-c", command], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(ids) == 2
