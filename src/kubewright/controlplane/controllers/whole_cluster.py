"""The metadata of everything that is stored: one watch per kind, for all kinds served at the moment."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import decode
from kubewright.api.dynamic import PartialObject
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.cache import Cache, CacheEntry, WatchHandle, WriteOrigin
from kubewright.client import Client
from kubewright.client.backoff import Backoff
from kubewright.controlplane.controllers.served import ServedKind, defined_by, discover

_RETRY = Backoff(0.1, 10.0)
_NEEDED = frozenset(("delete", "list", "watch"))
_IGNORED = "events"

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Followed:
    """One kind. Its objects are kept here too: those of a kind that is not served for a while are not deleted."""

    objects: dict[ObjectKey, PartialObject] = field(default_factory=dict)
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    handle: WatchHandle[PartialObject] | None = None
    confirming: asyncio.Task[None] | None = None

    def end(self) -> None:
        if self.handle is not None:
            self.handle.release()
            self.handle = None
        if self.confirming is not None:
            self.confirming.cancel()
            self.confirming = None


class WholeCluster:
    """`changed(old, new)` is called for each change of any object, with None before a creation and after a deletion.

    Events are left out: they own nothing, have no owners, and there are many. When a definition goes, so do all
    objects of its kind; when it is only served in another version or not at all, nothing seems to happen to them.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        changed: Callable[[PartialObject | None, PartialObject | None], None],
    ) -> None:
        self._client = client
        self._cache = cache
        self._changed = changed
        self._definitions: dict[ObjectKey, tuple[tuple[str, str], ServedKind | None]] = {}
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
        return self._begun.is_set() and all(one.complete.is_set() for one in self._followed.values())

    async def complete(self) -> None:
        """Wait until all objects of all kinds that are known by then have been seen."""
        await self._begun.wait()
        for one in list(self._followed.values()):
            await one.complete.wait()

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._find_built_in())
                with self._cache.watch(CustomResourceDefinition) as definitions:
                    definitions.subscribe(self._definition_changed)
                    await definitions.synced()
                    while True:
                        await self._stale.wait()
                        self._stale.clear()
                        self._follow(tasks)
                        if self._built_in:
                            self._begun.set()
        finally:
            for one in self._followed.values():
                one.end()

    async def _find_built_in(self) -> None:
        """Retry until discovery of all groups has succeeded once; the server's own kinds do not change afterwards."""
        failures = 0
        while True:
            discovered = await discover(self._client)
            # What was discovered once is served: a failed discovery later deletes nothing.
            self._built_in |= {(kind.group, kind.plural): kind for kind in discovered.kinds}
            self._stale.set()
            if not discovered.failures:
                return
            for api_version, error in discovered.failures.items():
                _log.debug("discovering %s: %s", api_version, error)
            failures += 1
            await asyncio.sleep(_RETRY.delay(failures))

    def _definition_changed(
        self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None
    ) -> None:
        if new is None:
            if old is not None and self._definitions.pop(old.key, None) is not None:
                self._stale.set()
            return
        definition = decode(CustomResourceDefinition, new.body)
        resource = definition.spec.group, definition.spec.names.plural
        found = resource, defined_by(definition)
        if self._definitions.get(new.key) != found:
            self._definitions[new.key] = found
            self._stale.set()

    def _follow(self, tasks: asyncio.TaskGroup) -> None:
        """Watch the kinds that were added, and stop watching those that were removed."""
        defined = dict(self._definitions.values())
        kinds = [*self._built_in.values(), *(kind for kind in defined.values() if kind is not None)]
        self._kinds = {
            (GroupVersionKind(kind.group, version, kind.kind).api_version, kind.kind): kind
            for kind in kinds
            for version in kind.versions
        }
        desired = {
            (kind.group, kind.plural): kind.view for kind in kinds if kind.verbs >= _NEEDED and kind.plural != _IGNORED
        }
        for resource, one in list(self._followed.items()):
            if one.handle is not None and desired.get(resource) is not one.handle.kind:
                one.end()
            if resource not in desired and resource not in defined:
                del self._followed[resource]
                for obj in one.objects.values():
                    self._changed(obj, None)
        for resource, view in desired.items():
            one = self._followed.setdefault(resource, _Followed())
            if one.handle is None:
                self._begin(tasks, one, view)

    def _begin(self, tasks: asyncio.TaskGroup, one: _Followed, view: type[PartialObject]) -> None:
        handle = one.handle = self._cache.watch(view)

        def changed(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
            if new is not None:
                obj = decode(view, new.body)
                before, one.objects[new.key] = one.objects.get(new.key), obj
                self._changed(before, obj)
            elif any(informer.state == "absent" for informer in handle.informers):
                # The kind is not served any more, which deletes nothing. It may come back.
                self._confirm(tasks, one, handle)
            elif old is not None and (gone := one.objects.pop(old.key, None)) is not None:
                self._changed(gone, None)

        handle.subscribe(changed)
        self._confirm(tasks, one, handle)

    def _confirm(self, tasks: asyncio.TaskGroup, one: _Followed, handle: WatchHandle[PartialObject]) -> None:
        if one.confirming is None or one.confirming.done():
            one.confirming = tasks.create_task(self._confirmed(one, handle))

    async def _confirmed(self, one: _Followed, handle: WatchHandle[PartialObject]) -> None:
        """Once the initial list is complete, what was known before and is not in it is gone."""
        await handle.synced()
        one.complete.set()
        for key in list(one.objects):
            if all(informer.find(key, own_writes=False) is None for informer in handle.informers):
                self._changed(one.objects.pop(key), None)
