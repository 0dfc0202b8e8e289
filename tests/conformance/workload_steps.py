"""What tests of workloads share: waiting for what controllers do, playing the kubelet, and reading their events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubewright.api.core.v1 import Event, Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.client import Client, StrategicMergePatch

T = TypeVar("T", bound=Object)
V = TypeVar("V")


async def eventually(get: Callable[[], Awaitable[V]], holds: Callable[[V], bool]) -> V:
    """What `get` returns once it is as it should be."""
    found = await get()
    try:
        async with asyncio.timeout(60):
            while not holds(found):
                await asyncio.sleep(0.02)
                found = await get()
    except TimeoutError:
        raise AssertionError(f"not within 60 s; last: {found!r}") from None
    return found


async def pods(client: Client, count: int, holds: Callable[[Pod], bool] = lambda pod: True) -> list[Pod]:
    """The pods of the namespace for which something holds, by name, once there are so many."""

    async def get() -> list[Pod]:
        return [pod for pod in await client.list(Pod) if holds(pod)]

    found = await eventually(get, lambda found: len(found) == count)
    return sorted(found, key=lambda pod: pod.metadata.name)


async def until(client: Client, obj: T, holds: Callable[[T], bool]) -> T:
    """The object once something holds."""
    kind = type(obj)
    return await eventually(lambda: client.get(kind, obj.metadata.name), holds)


async def end(client: Client, pod: Pod, exit_code: int = 0) -> None:
    """The pod's containers have ended."""
    statuses: list[JSONValue] = [
        {
            "name": container.name,
            "image": container.image or "",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": exit_code, "finishedAt": "2026-01-02T03:04:05Z"}},
        }
        for container in pod.spec.containers
    ]
    status: JSONObject = {"phase": "Failed" if exit_code else "Succeeded", "containerStatuses": statuses}
    await client.status.patch(pod, StrategicMergePatch({"status": status}))


async def make_ready(client: Client, pod: Pod) -> None:
    """The pod runs and is ready."""
    ready: JSONObject = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    await client.status.patch(pod, StrategicMergePatch({"status": {"phase": "Running", "conditions": [ready]}}))


async def events(client: Client, about: Object, count: int) -> list[tuple[str, str, str, str]]:
    """The events about an object, sorted, once there are so many: type, reason, message and component."""

    async def get() -> list[tuple[str, str, str, str]]:
        found = await client.list(Event, fields={"involvedObject.uid": about.metadata.uid})
        return [(one.type or "", one.reason or "", one.message or "", one.source.component or "") for one in found]

    found = await eventually(get, lambda found: len(found) >= count)
    return sorted(found)
