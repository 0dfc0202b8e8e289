"""Proving that an operator comes to rest.

    async with running(manager):
        await admin.create(widget)
        await settled(manager)

An operator that has nothing to do must do nothing: no reconcile, no write. What keeps it busy (a status that changes
with every reconcile, two controllers that undo each other's work) shows here, by the names of the objects.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable
from itertools import islice

from kubewright.controller import Controller
from kubewright.manager import Manager
from kubewright.testing.arguments import check_manager
from kubewright.testing.requests import RequestCount, count_requests

_MAX_KEYS = 5


async def settled(manager: Manager, *, quiet: float = 0.5, timeout: float = 60.0) -> None:
    """Return once the running manager's caches are complete and it has done nothing for `quiet` seconds.

    That is: no key due or reconciled, no reconcile ended, no write. Renewing a lease, and watches that restart,
    are not counted; a requeue that is due later than `quiet` is not waited for. Raises `AssertionError`, with what
    moved last, when it does not come to rest within `timeout`. In virtual time both may be hours.
    """
    check_manager(manager, "settled(manager)")
    moved: Counter[str] = Counter({"its caches are not complete": 1})
    try:
        async with asyncio.timeout(timeout):
            await manager.synced()
            while moved := await _moved(manager, quiet):
                pass
    except TimeoutError:
        seen = ", ".join(f"{what} ({count} x)" for what, count in moved.most_common(_MAX_KEYS))
        raise AssertionError(
            f"the operator did not settle within {timeout:g} s; in the last {quiet:g} s: {seen}"
        ) from None


async def _moved(manager: Manager, quiet: float) -> Counter[str]:
    """What happens in the next `quiet` seconds, and how often."""
    before = {controller: _reconciles(controller) for controller in manager.controllers}
    with count_requests(manager.live) as requests:
        await asyncio.sleep(quiet)
    moved = _writes(requests)
    for controller in manager.controllers:
        moved[f"{controller.name}: keys are due"] = len(controller.queue)
        moved[f"{controller.name}: keys are reconciled"] = controller.statistics.active
        ended = _reconciles(controller) - before.get(controller, 0)
        if ended:
            keys = ", ".join(map(str, islice(reversed(controller.recent), min(ended, _MAX_KEYS))))
            moved[f"{controller.name} reconciled {keys}"] = ended
    return +moved


def _reconciles(controller: Controller[Hashable]) -> int:
    return sum(controller.statistics.results.values())


def _writes(requests: RequestCount) -> Counter[str]:
    leases = "/apis/coordination.k8s.io/"
    return Counter(
        f"{attempt.method} {attempt.target.partition('?')[0]}"
        for attempt in requests.attempts
        if requests.is_write(attempt) and not attempt.target.startswith(leases)
    )
