"""Whether a task may write: checked when a write is sent, not when it is decided on.

In between lie waits for credentials, rate limits and connections, and maybe a process that was stopped for a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_guard: ContextVar[Callable[[], None] | None] = ContextVar("kubewright.write_guard", default=None)


def guard_writes(check: Callable[[], None]) -> None:
    """Call `check` before each write of this task, and of the tasks and threads it starts, by any client.

    It raises the error that the write fails with instead of being sent. Reads are always sent. A guard that the task
    has inherited is checked first.
    """
    outer = _guard.get()

    def check_both() -> None:
        if outer is not None:
            outer()
        check()

    _guard.set(check if outer is None else check_both)


def check_write() -> None:
    """Raise when this task must not write now."""
    check = _guard.get()
    if check is not None:
        check()
