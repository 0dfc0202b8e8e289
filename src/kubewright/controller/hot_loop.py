"""Hot loops: an object that its own controller reconciles over and over, each reconcile causing the next.

A reconcile that writes to a real API server takes milliseconds, so a loop shows as many writing reconciles of one key
a second, for seconds. One that writes nothing, by a tiny `requeue_after` or a source that echoes, is far quicker: it
takes ten times as many. Objects that are merely busy are not harmed by the pause either: the reconcile after it sees
everything.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

import msgspec

from kubewright.client.backoff import Backoff

Key = TypeVar("Key", bound=Hashable)

PASSES, SECONDS = 100, 10.0
"""So many writing passes of one key within so many seconds are a hot loop."""

IDLE_PASSES = 1000
"""So many passes that write nothing are one, too."""

_WEIGHT = IDLE_PASSES // PASSES  # of a writing pass, in passes that write nothing

PAUSE = Backoff(1.0, 60.0)


class _Window(msgspec.Struct, gc=False):
    began: float
    weight: int
    pauses: int = 0

    @property
    def lasts(self) -> float:
        """Seconds after which it is over unless the key is noted again."""
        return max(SECONDS, 2 * PAUSE.delay(self.pauses))


class HotLoops(Generic[Key]):
    """Tells when to pause a key. Holds something only of keys noted within the last seconds, or paused."""

    def __init__(self) -> None:
        self._windows: dict[Key, _Window] = {}
        self._next_sweep = 0.0

    def note(self, key: Key, writes: int, now: float) -> float:
        """A pass of `key` ended and has written so often. Returns the seconds to pause it; 0 for not at all."""
        if now >= self._next_sweep:
            self._sweep(now)
        weight = _WEIGHT if writes else 1
        window = self._windows.get(key)
        if window is None or now - window.began > window.lasts:
            self._windows[key] = _Window(now, weight)
            return 0.0
        window.weight += weight
        if window.weight < IDLE_PASSES:
            return 0.0
        # From now on each further pass is paused, longer every time, until the key keeps still.
        window.pauses += 1
        window.began = now
        return PAUSE.delay(window.pauses)

    def _sweep(self, now: float) -> None:
        self._next_sweep = now + SECONDS
        self._windows = {key: window for key, window in self._windows.items() if now - window.began <= window.lasts}
