"""Showing how far a long build is: one moving line on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import shutil
from typing import TextIO

_BAR_WIDTH = 24
_PLAIN_STEPS = 10


class Progress:
    """Writes to `stream`. On a terminal every step is shown; elsewhere, every tenth of the way."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._moving = stream.isatty()
        self._shown_tenths = 0

    def say(self, text: str) -> None:
        """A line of its own, which stays."""
        self._clear()
        self._stream.write(f"kubewright: {text}\n")
        self._stream.flush()

    def status(self, text: str) -> None:
        """What happens right now, where the amount of work is unknown; not shown when the output is not a terminal."""
        if self._moving:
            self._show(text)

    def step(self, done: int, total: int, what: str) -> None:
        """`what` is number `done` of `total`."""
        done = min(done, total)
        if self._moving:
            filled = _BAR_WIDTH * done // total
            self._show(f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done}/{total} {what}")
        elif (tenths := _PLAIN_STEPS * done // total) > self._shown_tenths:
            self._shown_tenths = tenths
            self.say(f"{done} of {total} packages compiled")

    def close(self) -> None:
        """Remove the moving line."""
        self._clear()
        self._stream.flush()

    def _show(self, text: str) -> None:
        self._clear()
        # One column less than there are: a full line would wrap and could not be cleared.
        self._stream.write(text[: shutil.get_terminal_size().columns - 1])
        self._stream.flush()

    def _clear(self) -> None:
        if self._moving:
            self._stream.write("\r\x1b[K")
