"""The Widgets on the server: defining, creating, changing and clearing them, many requests in flight."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable

from bench.peers.widget import STAMP, Widget, WidgetSpec
from kubewright.api import Object, ObjectMeta, metadata_only
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.events.v1 import Event
from kubewright.client import Client, MergePatch
from kubewright.client.wait import established
from kubewright.manifest.crd import definition_of

NAMESPACE = "default"
IN_FLIGHT = 64
SMALL, LARGE = 100, 2400
"""Characters of payload: of an ordinary Widget, and of one that is 3 KB as the server sends it."""

_WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jetty", "knoll", "larch")


async def define(client: Client) -> None:
    """Make the server know the kind."""
    await client.wait_for(await client.create(definition_of(Widget)), established)


async def create(client: Client, count: int, payload: int = SMALL) -> None:
    """Create Widgets with a payload of that many characters, different in each."""

    async def one(number: int) -> None:
        text = " ".join(random.Random(number).choices(_WORDS, k=payload // 4))[:payload]
        spec = WidgetSpec(size=number % 100, payload=text)
        metadata = ObjectMeta(name=_name(number), namespace=NAMESPACE, labels={"app": "bench"})
        await client.create(Widget(metadata=metadata, spec=spec))

    await _each(range(count), one)


async def clear(client: Client) -> None:
    """Delete all Widgets and what an operator made for them."""
    kinds: tuple[type[Object], ...] = (Widget, ConfigMap, Event)
    for kind in kinds:
        await client.delete_all(kind, namespace=NAMESPACE)


async def count(client: Client, kind: type[Object]) -> int:
    """How many objects of a kind there are."""
    return len(await client.list(metadata_only(kind), namespace=NAMESPACE))


async def converged(client: Client, count: int) -> None:
    """Return when `count` Widgets are ready, each in its newest generation."""
    ready: set[str] = set()
    while len(ready) < count:
        async with client.watch(Widget, namespace=NAMESPACE, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                status = event.object.status
                if status.observed_generation == event.object.metadata.generation:
                    ready.add(event.header.name)
                if len(ready) == count:
                    break


async def relabel(client: Client, count: int, value: str) -> None:
    """Give every Widget another label: a change that leaves an operator nothing to do."""
    patch = MergePatch({"metadata": {"labels": {"touched": value}}})
    await _each(range(count), lambda number: _patch(client, number, patch))


async def stamp(client: Client, count: int, rate: int, seconds: float) -> float:
    """Stamp Widgets in turn with the time, `rate` per second; returns the rate that was kept."""
    began = time.monotonic()
    total = round(rate * seconds)

    async def one(number: int) -> None:
        await asyncio.sleep(began + number / rate - time.monotonic())
        await _patch(client, number % count, MergePatch({"metadata": {"annotations": {STAMP: str(time.time_ns())}}}))

    await _each(range(total), one)
    return total / (time.monotonic() - began)


async def _patch(client: Client, number: int, patch: MergePatch) -> None:
    await client.patch(Widget, patch, name=_name(number), namespace=NAMESPACE)


def _name(number: int) -> str:
    return f"widget-{number:06}"


async def _each(numbers: Iterable[int], work: Callable[[int], Awaitable[object]]) -> None:
    remaining = iter(numbers)

    async def worker() -> None:
        for number in remaining:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(worker())
