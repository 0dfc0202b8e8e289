"""The tasks of the controllers beside the server. One that has nothing to do is not made, and costs next to nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from kubewright.api.resources import Object
from kubewright.cache import Cache, CacheEntry, WriteOrigin
from kubewright.controlplane.controllers.runtime import BuiltInController

_log = logging.getLogger(__name__)


class ControllerTasks:
    """Makes and runs controllers, each at once or with the first object that concerns it."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._watches = ExitStack()
        self._watched: set[type[Object]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, make: Callable[[], BuiltInController]) -> None:
        """Run a controller until `stop`. Starting it twice is fine."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.create_task(_run(name, make))

    def start_with(
        self,
        kinds: Iterable[type[Object]],
        concerns: Callable[[CacheEntry], bool],
        name: str,
        make: Callable[[], BuiltInController],
    ) -> None:
        """Run a controller from the first object of any of the kinds on that concerns it."""
        for kind in kinds:
            self._await_first(kind, concerns, lambda: self.start(name, make))

    async def stop(self) -> None:
        """End all of them, and start none any more."""
        self._watches.close()
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def _await_first(
        self, kind: type[Object], concerns: Callable[[CacheEntry], bool], start: Callable[[], None]
    ) -> None:
        if kind not in self._watched:
            # Held to the end, so that controllers find the watch, and others never have one of metadata alone.
            self._watches.enter_context(self._cache.watch(kind))
            self._watched.add(kind)
        handle = self._watches.enter_context(self._cache.watch(kind))

        def changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            if new is not None and concerns(new):
                start()
                # Not within the notification: the handle may be just about to replay what is there.
                asyncio.get_running_loop().call_soon(handle.release)

        handle.subscribe(changed)


async def _run(name: str, make: Callable[[], BuiltInController]) -> None:
    try:
        await make().run()
    except Exception:
        # Nobody awaits the task: without this, a test would only see that nothing happens.
        _log.exception("the controller %s of the control plane has failed and does not run any more", name)
