"""The Widgets on the server: defining, creating, changing and clearing them, many requests in flight."""

from __future__ import annotations

import asyncio
import random
import time

from bench.in_flight import each
from bench.peers.widget import (
    STAMP,
    Container,
    Placement,
    Port,
    Quantities,
    Resources,
    Variable,
    Volume,
    Widget,
    WidgetSpec,
)
from kubewright.api import Object, ObjectMeta, metadata_only
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.events.v1 import Event
from kubewright.client import Client, MergePatch
from kubewright.client.wait import established
from kubewright.manifest.crd import definition_of

NAMESPACE = "default"

_WORDS = ("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "islet", "jetty", "knoll", "larch")


async def define(client: Client) -> None:
    """Make the server know the kind."""
    await client.wait_for(await client.create(definition_of(Widget)), established)


async def create(client: Client, count: int) -> None:
    """Create Widgets that are all different, of 3 KB each as the server sends them."""
    await each(range(count), lambda number: client.create(_widget(number)))


async def create_small(client: Client, count: int) -> None:
    """Create Widgets that say little."""
    await each(range(count), lambda number: client.create(_named(number, WidgetSpec(size=number % 100))))


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
    await each(range(count), lambda number: _patch(client, number, patch))


async def stamp(client: Client, count: int, rate: int, seconds: float) -> float:
    """Stamp Widgets in turn with the time, `rate` per second; returns the rate that was kept."""
    began = time.monotonic()
    total = round(rate * seconds)

    async def one(number: int) -> None:
        await asyncio.sleep(began + number / rate - time.monotonic())
        await _patch(client, number % count, MergePatch({"metadata": {"annotations": {STAMP: str(time.time_ns())}}}))

    await each(range(total), one)
    return total / (time.monotonic() - began)


async def _patch(client: Client, number: int, patch: MergePatch) -> None:
    await client.patch(Widget, _name(number), patch, namespace=NAMESPACE)


def _widget(number: int) -> Widget:
    chance = random.Random(number)

    def text(words: int) -> str:
        return "-".join(chance.choices(_WORDS, k=words))

    def container(name: str) -> Container:
        return Container(
            name=name,
            image=f"registry.example.com/{text(2)}/{name}:1.{number % 100}.0",
            command=[f"/usr/bin/{name}", f"--name={text(2)}", "--listen=0.0.0.0:8080"],
            env=[Variable(name=f"{name.upper()}_{index}", value=text(3)) for index in range(13)],
            ports=[Port(name="http", port=8080), Port(name="metrics", port=9090)],
            resources=Resources(
                requests=Quantities(cpu="100m", memory="64Mi"), limits=Quantities(cpu="1", memory="256Mi")
            ),
        )

    spec = WidgetSpec(
        size=number % 100,
        payload=text(16),
        containers=[container("server"), container("agent")],
        volumes=[Volume(name=text(1), mount_path=f"/var/lib/{text(1)}", size="1Gi", storage_class="standard")],
        placement=Placement(node_selector={"example.com/pool": text(1)}, priority_class="low", toleration_seconds=300),
    )
    return _named(number, spec)


def _named(number: int, spec: WidgetSpec) -> Widget:
    return Widget(metadata=ObjectMeta(name=_name(number), namespace=NAMESPACE, labels={"app": "bench"}), spec=spec)


def _name(number: int) -> str:
    return f"widget-{number:06}"
