"""What an operator brings along (HTTP sessions, pools) is closed by the manager, last of all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Self

import pytest
from tests.manager.scripted import Journal, Recording, fed, running, virtually

from kubewright.client import Client
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import LeadershipLost, Manager


@asynccontextmanager
async def brought(name: str, journal: Journal) -> AsyncIterator[str]:
    journal(f"{name} is opened")
    try:
        yield name
    finally:
        journal(f"{name} is closed")


class Pool:
    is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.is_closed = True


@virtually
async def test_contexts_are_left_in_reverse_order_after_everything_has_ended(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client)
    for name in ("pool", "session"):
        await manager.enter(brought(name, journal))
    manager.add(Recording("work", journal, needs_leader=False))
    fed(manager, journal, "a", seconds=20)
    async with running(manager):
        await journal.until("a begins", "work begins")
    assert journal.entries[-2:] == ["session is closed", "pool is closed"]
    assert {"a is done", "work ends"} <= set(journal.entries[:-2])


@virtually
async def test_contexts_entered_at_run_time_are_left_too(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)

    async def work() -> None:
        await manager.enter(brought("late", journal))

    manager.add(work)
    async with running(manager):
        await journal.until("late is opened")
    assert journal.entries == ["late is opened", "late is closed"]


@virtually
async def test_after_a_failure_contexts_are_left_and_the_failure_is_raised(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    journal = Journal()
    manager = Manager(client)
    await manager.enter(brought("pool", journal))

    async def fails() -> None:
        raise LookupError("no such thing")

    manager.add(fails)
    with pytest.raises(LookupError):
        await manager.run()
    assert journal.entries == ["pool is opened", "pool is closed"]


@virtually
async def test_a_context_cannot_hide_a_failure(plane: EmbeddedControlPlane, client: Client) -> None:
    @asynccontextmanager
    async def swallows() -> AsyncIterator[None]:
        with suppress(LookupError):
            yield

    async def fails() -> None:
        raise LookupError("no such thing")

    manager = Manager(client)
    await manager.enter(swallows())
    manager.add(fails)
    with pytest.raises(LookupError):
        await manager.run()


@virtually
async def test_a_process_that_must_exit_at_once_does_not_wait_for_contexts(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """Another may lead already: closing a pool can take as long as it likes."""
    pool = Pool()
    manager = Manager(client)
    await manager.enter(pool)

    async def loses() -> None:
        raise LeadershipLost("the work has not ended", is_work_over=False)

    manager.add(loses)
    with pytest.raises(LeadershipLost):
        await manager.run()
    assert not pool.is_closed


@virtually
async def test_nothing_can_be_added_once_it_has_ended(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)
    manager.add(Recording("work", journal))
    manager.stop()
    await manager.run()
    with pytest.raises(RuntimeError, match=r"^manager\.add: this manager has ended, and runs only once; make another"):
        manager.add(Recording("more", journal))
    with pytest.raises(RuntimeError, match=r"^manager\.enter: this manager has ended"):
        await manager.enter(brought("pool", journal))
    await asyncio.sleep(0)
    assert journal.entries == []
