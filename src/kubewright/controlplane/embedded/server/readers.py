"""The clients that read: what they alone can notice need not be written before there is one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from kubewright.controlplane.embedded.endpoints.request import Target

_READS = ("get", "list", "watch")


class OutsideReaders:
    """Has objects brought up to date before they are read, and counts who watches them.

    The control plane's own controllers are none of the readers.
    """

    def __init__(self) -> None:
        self._refreshed: dict[str, tuple[str, Callable[[], Awaitable[None]]]] = {}
        self._watches: dict[str, int] = {}

    def before_read(self, resource: str, namespace: str, refresh: Callable[[], Awaitable[None]]) -> None:
        """Call `refresh` before a client gets, lists or watches objects of a resource in a namespace, or in all."""
        self._refreshed[resource] = namespace, refresh

    def is_watched(self, resource: str) -> bool:
        """Whether a client watches now what is refreshed before."""
        return self._watches.get(resource, 0) > 0

    def concerns(self, target: Target) -> bool:
        """Whether a request reads what is to be brought up to date before."""
        if target.resource not in self._refreshed or target.verb not in _READS:
            return False
        return not target.namespace or target.namespace == self._refreshed[target.resource][0]

    async def refresh(self, target: Target) -> None:
        """Bring up to date what a request reads."""
        await self._refreshed[target.resource][1]()

    async def through(self, stream: AsyncIterator[bytes], target: Target) -> AsyncIterator[bytes]:
        """The lines of a watch, which is counted meanwhile. Closing it closes the stream."""
        self._watches[target.resource] = self._watches.get(target.resource, 0) + 1
        try:
            async for piece in stream:
                yield piece
        finally:
            self._watches[target.resource] -= 1
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
