"""What is waited for, while it is: one line that changes on a terminal, and a line for each change elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType
from typing import Self

from kubewright.cli.printable import printable_line

_CLEAR = "\r\x1b[K"


class StatusLine:
    """A status on standard error. It is gone from a terminal after the block."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._began = time.monotonic()
        self.status = ""
        """What is being done, also where there is no terminal."""
        self.reason = ""
        """What is waited for."""

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_terminal:
            self._write(_CLEAR)

    def doing(self, status: str) -> None:
        """Show what is being done, on a terminal only: it is over in a moment."""
        self.status = status = printable_line(status)
        if self._is_terminal:
            line = f"{time.monotonic() - self._began:.0f} s: {status}"
            self._write(f"{_CLEAR}{line[: shutil.get_terminal_size().columns - 1]}")

    def waiting(self, reason: str) -> None:
        """Show what is waited for."""
        reason = printable_line(reason)
        self.doing(f"waiting: {reason}")
        if not self._is_terminal and reason != self.reason:
            self._write(f"waiting: {reason}\n")
        self.reason = reason

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
