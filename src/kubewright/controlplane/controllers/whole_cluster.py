"""The metadata of everything that is stored: one mirror per kind, for all kinds there are at the moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.dynamic import PartialObject
from kubewright.api.kinds import GroupVersionKind
from kubewright.client import Client
from kubewright.controlplane.controllers.loop import Mirror
from kubewright.controlplane.controllers.served import ServedKind, defined_by, discover

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 10.0
_NEEDED = frozenset(("delete", "list", "watch"))
_IGNORED = "events"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Followed:
    view: type[PartialObject]
    known: tuple[PartialObject, ...]  # of whom the mirror has to tell when they are gone, once it is complete
    mirror: Mirror[PartialObject]
    task: asyncio.Task[None]

    @property
    def objects(self) -> tuple[PartialObject, ...]:
        return tuple(self.mirror) if self.mirror.synced.is_set() else (*self.known, *self.mirror)


class WholeCluster:
    """`changed(old, new)` is called for each change of any object, as `Mirror` does.

    Events are left out: they own nothing, nobody owns them, and there are many. When a definition goes, so do all
    objects of its kind; when it is only served in another version or not at all, nothing seems to happen to them.
    """

    def __init__(self, client: Client, changed: Callable[[PartialObject | None, PartialObject | None], None]) -> None:
        self._client = client
        self._changed = changed
        self._definitions = Mirror(client, CustomResourceDefinition, changed=self._definition_changed)
        self._stale = asyncio.Event()
        self._built_in: dict[tuple[str, str], ServedKind] = {}
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._followed: dict[tuple[str, str], _Followed] = {}
        self._begun = asyncio.Event()

    def kind(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind as it is served in that version; None when it is not."""
        return self._kinds.get((api_version, kind))

    @property
    def is_complete(self) -> bool:
        """True when every object that was there when its kind was found has been seen."""
        return self._begun.is_set() and all(one.mirror.synced.is_set() for one in self._followed.values())

    async def complete(self) -> None:
        """Wait until all objects of all kinds that are known by then have been seen."""
        await self._begun.wait()
        for one in list(self._followed.values()):
            await one.mirror.synced.wait()

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._definitions.run())
            tasks.create_task(self._find_built_in())
            await self._definitions.synced.wait()
            while True:
                await self._stale.wait()
                self._stale.clear()
                self._follow(tasks)
                if self._built_in:
                    self._begun.set()

    async def _find_built_in(self) -> None:
        """Until all of discovery has answered once; the server's own kinds do not change afterwards."""
        pause = _FIRST_PAUSE
        while True:
            discovered = await discover(self._client)
            # What was told once is served: an answer that fails to come later does not make anything go.
            self._built_in |= {(kind.group, kind.plural): kind for kind in discovered.kinds}
            self._stale.set()
            if not discovered.failures:
                return
            for api_version, error in discovered.failures.items():
                _log.debug("discovering %s: %s", api_version, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _definition_changed(self, old: CustomResourceDefinition | None, new: CustomResourceDefinition | None) -> None:
        if (old and defined_by(old)) != (new and defined_by(new)):
            self._stale.set()

    def _follow(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to follow the kinds that have come, and end it with those that have gone."""
        defined = [kind for definition in self._definitions if (kind := defined_by(definition)) is not None]
        kinds = [*self._built_in.values(), *defined]
        self._kinds = {
            (GroupVersionKind(kind.group, version, kind.kind).api_version, kind.kind): kind
            for kind in kinds
            for version in kind.versions
        }
        wanted = {
            (kind.group, kind.plural): kind.view for kind in kinds if kind.verbs >= _NEEDED and kind.plural != _IGNORED
        }
        definitions = {(definition.spec.group, definition.spec.names.plural) for definition in self._definitions}
        for place, one in list(self._followed.items()):
            if place in wanted and wanted[place] is not one.view:
                one.task.cancel()
                self._begin(tasks, place, wanted[place], one.objects)
            elif place not in wanted and place not in definitions:
                one.task.cancel()
                del self._followed[place]
                self._removed(one.objects)
        for place, view in wanted.items():
            if place not in self._followed:
                self._begin(tasks, place, view, ())

    def _begin(
        self,
        tasks: asyncio.TaskGroup,
        place: tuple[str, str],
        view: type[PartialObject],
        known: tuple[PartialObject, ...],
    ) -> None:
        mirror = Mirror(self._client, view, changed=self._changed)
        task = tasks.create_task(self._keep(mirror, known))
        self._followed[place] = _Followed(view, known, mirror, task)

    async def _keep(self, mirror: Mirror[PartialObject], known: tuple[PartialObject, ...]) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(mirror.run())
            await mirror.synced.wait()
            self._removed(obj for obj in known if not _is_there(obj, mirror))

    def _removed(self, objects: Iterable[PartialObject]) -> None:
        for obj in objects:
            self._changed(obj, None)


def _is_there(obj: PartialObject, mirror: Mirror[PartialObject]) -> bool:
    found = mirror.get(obj.key)
    return found is not None and found.metadata.uid == obj.metadata.uid
