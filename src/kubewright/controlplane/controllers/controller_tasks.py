"""The tasks of the controllers beside the server. One whose kinds have no objects is not started, and costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import ExitStack

from kubewright.api.resources import Object
from kubewright.cache import Cache, CacheEntry, WriteOrigin
from kubewright.controlplane.controllers.runtime import BuiltInController


class ControllerTasks:
    """Starts controllers, each at once or with the first object of a kind that it is there for."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._watches = ExitStack()
        self._waiting: dict[type[Object], list[BuiltInController]] = {}
        self._come: set[type[Object]] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, controller: BuiltInController, kinds: Collection[type[Object]] = ()) -> None:
        """Run the controller until `stop`, from the first object of any of the kinds on; without kinds from now on."""
        if not kinds:
            self._run(controller)
        for kind in kinds:
            if kind in self._come:
                self._run(controller)
            elif kind in self._waiting:
                self._waiting[kind].append(controller)
            else:
                self._waiting[kind] = [controller]
                self._await_first(kind)

    async def stop(self) -> None:
        """End all of them, and start none any more."""
        self._watches.close()
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def _await_first(self, kind: type[Object]) -> None:
        # Held to the end, so that controllers that start later find the watch, and others never one of metadata alone.
        self._watches.enter_context(self._cache.watch(kind))
        handle = self._watches.enter_context(self._cache.watch(kind))

        def come(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            handle.release()
            self._come.add(kind)
            for controller in self._waiting.pop(kind, ()):
                self._run(controller)

        handle.subscribe(come)

    def _run(self, controller: BuiltInController) -> None:
        if controller.name not in self._tasks:
            self._tasks[controller.name] = asyncio.create_task(controller.run())
