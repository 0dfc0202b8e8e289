"""A line on the terminal that says how far an exploration is, once it takes longer than a moment."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_SECONDS_BEFORE_FIRST = 2.0
_SECONDS_BETWEEN = 0.2


class ExplorationProgress:
    """Writes to stderr when that is a terminal, and leaves nothing there."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._is_terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self._next = self._began + _SECONDS_BEFORE_FIRST
        self._is_shown = False

    def advance(self) -> None:
        """One more world is done."""
        self._done += 1
        now = time.monotonic()
        if self._is_terminal and now >= self._next:
            self._next = now + _SECONDS_BETWEEN
            self._is_shown = True
            sys.stderr.write(f"\r\x1b[Kexplore: {self._done} of {self._total} worlds, {now - self._began:.0f} s")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
