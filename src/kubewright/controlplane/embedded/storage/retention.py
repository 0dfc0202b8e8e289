"""How many bytes of the past are kept.

The last few changes are kept as they are, because watchers are about to read them. Of older ones only the JSON is.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from kubewright.controlplane.embedded.storage.stored_object import StoreChange

_MAX_LATEST: Final = 64
_MAX_LATEST_SIZE: Final = 4 << 20


class Retention:
    """The changes that can be read, and the bytes of what they alone keep: never more than `max_size` for long."""

    __slots__ = ("_latest", "_latest_size", "_max_size", "_older", "_size")

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._latest: deque[StoreChange] = deque()
        self._latest_size = 0
        self._older: deque[StoreChange] = deque()
        self._size = 0

    def add(self, change: StoreChange) -> None:
        """A change was made."""
        self._latest.append(change)
        self._latest_size += change.size
        while len(self._latest) > _MAX_LATEST or self._latest_size > _MAX_LATEST_SIZE:
            older = self._latest.popleft()
            older.shrink()
            self._latest_size -= older.size
            self._older.append(older)
            self._size += older.size

    @property
    def excess(self) -> int:
        """The revision to forget, with all before it, for a quarter of the bytes to be free again; 0 while they fit."""
        if self._size <= self._max_size:
            return 0
        size, room = self._size, self._max_size * 3 // 4
        for change in self._older:
            size -= change.size
            if size <= room:
                return change.revision
        return 0

    def forget(self, revision: int) -> None:
        """The changes up to a revision were dropped."""
        while self._older and self._older[0].revision <= revision:
            self._size -= self._older.popleft().size
        while self._latest and self._latest[0].revision <= revision:
            self._latest_size -= self._latest.popleft().size
