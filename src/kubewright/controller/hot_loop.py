"""Hot loops: an object that its own controller reconciles over and over, each reconcile causing the next.

A reconcile that writes to a real API server takes milliseconds, so a loop shows as many writing reconciles of one key
a second, for seconds. One that writes nothing, by a tiny `requeue_after` or a source that echoes, is far quicker: it
takes ten times as many. The pause does no harm to objects that are merely busy: the reconcile after it sees
everything.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from kubewright.client.backoff import Backoff

Key = TypeVar("Key", bound=Hashable)

MAX_WRITING, SECONDS = 100, 10.0
"""So many reconciles of one key that write something, within so many seconds, are a hot loop."""

MAX_IDLE = 1000
"""So many reconciles that write nothing are one, too."""

_WEIGHT = MAX_IDLE // MAX_WRITING  # of a reconcile that writes, in reconciles that do not

PAUSE = Backoff(1.0, 60.0)


class _Window(msgspec.Struct, gc=False):
    began: float
    weight: int
    pauses: int = 0

    @property
    def lasts(self) -> float:
        """Seconds after which the entry expires unless the key is noted again."""
        return max(SECONDS, 2 * PAUSE.delay(self.pauses))


class HotLoops(Generic[Key]):
    """Decides when to pause a key. Only keys that were noted within the last seconds, or are paused, are kept."""

    def __init__(self) -> None:
        self._windows: dict[Key, _Window] = {}
        self._next_sweep = 0.0

    def note(self, key: Key, writes: int, now: float) -> float:
        """A reconcile of `key` ended after so many writes. Returns the seconds to pause it; 0 for not at all."""
        if now >= self._next_sweep:
            self._sweep(now)
        weight = _WEIGHT if writes else 1
        window = self._windows.get(key)
        if window is None or (now - window.began > SECONDS and now - window.began > window.lasts):
            self._windows[key] = _Window(now, weight)
            return 0.0
        window.weight += weight
        if window.weight < MAX_IDLE:
            return 0.0
        # From now on each further reconcile is followed by a longer pause, until the key settles.
        window.pauses += 1
        window.began = now
        return PAUSE.delay(window.pauses)

    def _sweep(self, now: float) -> None:
        self._next_sweep = now + SECONDS
        self._windows = {key: window for key, window in self._windows.items() if now - window.began <= window.lasts}
