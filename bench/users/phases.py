"""The phases that requests reach, by a watch from the first of them on."""

from __future__ import annotations

import asyncio

from operators.user import Operationrequest
from operators.user.names import SYSTEM_NAMESPACE

from kubewright import Client


class Phases:
    """The phases of each request in the order in which it had them, by uid."""

    def __init__(self, client: Client) -> None:
        self.of: dict[str, list[str]] = {}
        self._client = client
        self._changed = asyncio.Condition()

    def count_finished(self) -> int:
        """How many are finished."""
        return sum(phases[-1] in ("Completed", "Failed") for phases in self.of.values())

    async def finished(self, count: int) -> None:
        """Return when so many are finished."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.count_finished() >= count)

    async def follow(self) -> None:
        """Watch until cancelled. A server ends watches that are slow: they go on where they were."""
        revision: str | None = None
        while True:
            watch = self._client.watch(Operationrequest, namespace=SYSTEM_NAMESPACE, resource_version=revision)
            async with watch as watched:
                async for event in watched:
                    revision = event.header.resource_version
                    if event.type != "BOOKMARK":
                        await self._note(event.object)

    async def _note(self, request: Operationrequest) -> None:
        found, phase = self.of.setdefault(request.metadata.uid, []), request.status.phase
        if found[-1:] != [phase]:
            found.append(phase)
            async with self._changed:
                self._changed.notify_all()
