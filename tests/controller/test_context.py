from __future__ import annotations

import asyncio
import re

from kubewright.controller.context import ReconcileContext, current, new_reconcile_id


def test_ids_are_different_and_short() -> None:
    ids = [new_reconcile_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{6,}", each) for each in ids)
    assert len({each.partition("-")[0] for each in ids}) == 1


async def test_each_task_has_its_own_context() -> None:
    async def name_in(name: str) -> str:
        current.set(ReconcileContext("c", "", "Pod", "shop", name, new_reconcile_id(), ()))
        await asyncio.sleep(0)
        context = current.get()
        assert context is not None
        return context.name

    assert current.get() is None
    assert await asyncio.gather(*(asyncio.create_task(name_in(name)) for name in "abc")) == ["a", "b", "c"]
    assert current.get() is None
