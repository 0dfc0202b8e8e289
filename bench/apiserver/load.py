"""The load of a server: custom resources of 2 KB, created, read, updated and watched, 8 requests in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import established

COUNT = 1500
IN_FLIGHT = 8
LOADS = ("create", "get", "status update", "watch event")

Widget = Dynamic.of("bench.example.com/v1", "Widget", plural="widgets", namespaced=True)


async def run_loads(client: Client, cpu: Callable[[], float]) -> dict[str, float]:
    """Microseconds of the servers' CPU for each operation."""
    await _define(client)
    names = [f"widget-{number:05}" for number in range(COUNT)]
    for name in names[:100]:
        await client.create(_widget(f"warm-{name}"), dry_run=True)
    figures: dict[str, float] = {}

    async def measured(what: str, work: Callable[[str], Awaitable[object]]) -> None:
        before = cpu()
        remaining = iter(names)

        async def worker() -> None:
            for name in remaining:
                await work(name)

        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(worker())
        figures[what] = (cpu() - before) / COUNT

    async def write_status(name: str) -> None:
        widget = await client.get(Widget, name)
        widget["status"] = {"ready": len(name), "phase": "Running"}
        await client.status.update(widget)

    await measured("create", lambda name: client.create(_widget(name)))
    await measured("get", lambda name: client.get(Widget, name))
    await measured("status update", write_status)
    figures["status update"] -= figures["get"]
    before = cpu()
    seen = 0
    async with client.watch(Widget, namespace="default", resource_version="0", bookmarks=False) as events:
        async for _ in events:
            seen += 1
            if seen == COUNT:
                break
    figures["watch event"] = (cpu() - before) / COUNT
    return figures


def _widget(name: str) -> Dynamic:
    parts: list[JSONValue] = [{"name": f"part-{number}", "weight": number, "material": "steel"} for number in range(20)]
    options: dict[str, JSONValue] = {f"o{number}": "value" for number in range(20)}
    content: dict[str, JSONValue] = {"spec": {"size": 3, "color": "green", "parts": parts, "options": options}}
    return Widget(metadata=ObjectMeta(name=name, labels={"app": "bench"}), content=content)


async def _define(client: Client) -> None:
    part: JSONValue = {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}, "material": {"type": "string"}},
    }
    spec: JSONValue = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"type": "string", "enum": ["green", "red"], "default": "green"},
            "parts": {"type": "array", "items": part},
            "options": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    status: JSONValue = {"type": "object", "properties": {"ready": {"type": "integer"}, "phase": {"type": "string"}}}
    version: JSONValue = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
    }
    definition: JSONValue = {
        "metadata": {"name": "widgets.bench.example.com"},
        "spec": {
            "group": "bench.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }
    created = await client.create(from_json(CustomResourceDefinition, definition))
    await client.wait_for(created, established)
