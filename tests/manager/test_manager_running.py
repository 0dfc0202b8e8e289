"""A manager that runs in the background of a block."""

from __future__ import annotations

import asyncio

import pytest
from tests.manager.scripted import Journal, virtually

from kubewright.client import Client
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import Manager


@virtually
async def test_it_runs_while_the_block_does(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)

    async def work() -> None:
        journal("begins")
        try:
            await asyncio.Event().wait()
        finally:
            journal("ends")

    manager.add(work)
    async with manager.running():
        await journal.until("begins")
    assert journal.entries == ["begins", "ends"]


@virtually
async def test_its_error_ends_the_block_and_is_raised(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client)

    async def fails() -> None:
        raise ValueError("no such disk")

    manager.add(fails)
    with pytest.raises(ValueError, match="no such disk"):
        async with manager.running():
            await asyncio.Event().wait()


@virtually
async def test_an_error_of_the_block_ends_it_and_is_raised(plane: EmbeddedControlPlane, client: Client) -> None:
    journal = Journal()
    manager = Manager(client)

    async def work() -> None:
        try:
            journal("begins")
            await asyncio.Event().wait()
        finally:
            journal("ends")

    manager.add(work)

    async def block() -> None:
        async with manager.running():
            await journal.until("begins")
            raise KeyError

    with pytest.raises(KeyError):
        await block()
    assert journal.entries == ["begins", "ends"]
