"""Objects kept decoded, for controllers that read the same many objects in every reconcile.

A watch handle decodes at each read, so that readers may change what they get. Here each revision of an object is
decoded once and shared: copy an object before changing it.
"""

from __future__ import annotations

import logging
from typing import Generic, TypeVar

from kubewright.api.codec import decode
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.api.selectors import Labels
from kubewright.cache import CacheEntry, WatchHandle, WriteOrigin
from kubewright.cache.selection import matcher

T = TypeVar("T", bound=Object)

_log = logging.getLogger(__name__)


class Decoded(Generic[T]):
    """The objects of a watch handle, own writes included. It needs memory for those that were read."""

    def __init__(self, handle: WatchHandle[T]) -> None:
        self._handle = handle
        self._objects: dict[ObjectKey, tuple[CacheEntry, T | None]] = {}
        handle.subscribe(self._changed)

    def list(
        self, *, namespace: str = "", index: tuple[str, str] | None = None, labels: Labels | None = None
    ) -> list[T]:
        """The objects of a namespace, or found under a value of an index, as far as the labels match."""
        matches = matcher(labels)
        return [
            obj
            for informer in self._handle.informers
            for entry in informer.select(namespace, index)
            if (matches is None or matches(entry)) and (obj := self._decoded(entry)) is not None
        ]

    def _decoded(self, entry: CacheEntry) -> T | None:
        known, obj = self._objects.get(entry.key, (None, None))
        if known is not entry:
            try:
                obj = decode(self._handle.kind, entry.body)
            except DecodeError as error:
                # One object that cannot be read must not hide all others.
                _log.warning("left out: %s", error)
                obj = None
            self._objects[entry.key] = entry, obj
        return obj

    def _changed(self, old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if new is None and old is not None:
            self._objects.pop(old.key, None)
