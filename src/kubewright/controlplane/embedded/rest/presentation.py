"""How the events of watches are rendered: once for all watchers that see an object in the same way."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from kubewright.controlplane.embedded.storage.stored_object import StoredObject

_MAX_SIZE: Final = 1 << 20


def event_line(event_type: bytes, rendered: bytes) -> bytes:
    """An event as it is sent on a stream of JSON."""
    return b'{"type":"%s","object":%s}\n' % (event_type, rendered)


@dataclass(frozen=True, slots=True)
class WatchPresentation:
    """The representation that a watch has negotiated.

    Two watches with equal keys get equal bytes, except that the first event of one may be rendered by `first`.
    """

    render: Callable[[StoredObject], bytes]
    """The object as JSON."""
    key: Callable[[], Hashable]
    first: Callable[[StoredObject], bytes] | None = None
    line: Callable[[bytes, bytes], bytes] = event_line
    """The event as it is sent, of its type and the JSON of its object."""


class EventLines:
    """The lines of the latest events, about a mebibyte of them: watchers of the same ask for them at the same time."""

    __slots__ = ("_lines", "_size")

    def __init__(self) -> None:
        self._lines: dict[Hashable, bytes] = {}
        self._size = 0

    def line(self, event_type: bytes, entry: StoredObject, presentation: WatchPresentation) -> bytes:
        """The line of an event. An entry is known by its key and revision."""
        key = (presentation.key(), event_type, entry.revision, entry.key)
        found = self._lines.get(key)
        if found is None:
            found = self._lines[key] = presentation.line(event_type, presentation.render(entry))
            self._size += len(found)
            while self._size > _MAX_SIZE and len(self._lines) > 1:
                self._size -= len(self._lines.pop(next(iter(self._lines))))
        return found
