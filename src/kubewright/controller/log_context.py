"""What a reconcile adds to Python's `logging` and `warnings`, whatever their configuration is.

A line that is logged inside a reconcile, by whatever code, names the object: `[widget shop/web] created the pod`. Its
record has the same text as `%(reconcile)s`. `kubewright.manager.log` writes fields instead. A coroutine that a
reconcile calls and does not await is logged as the error it is.

It costs nothing for lines that are not logged, and for code outside of any reconcile.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from kubewright.controller.context import current
from kubewright.controller.thread import loop_of_thread

_log = logging.getLogger(__name__)


class ReconcileLogRecord(logging.LogRecord):
    """A record that was made inside a reconcile."""

    reconcile: str

    def getMessage(self) -> str:  # noqa: N802  # the name that logging calls
        """The message, after the controller and the object."""
        prefix, message = f"[{self.reconcile}] ", super().getMessage()
        # A QueueHandler makes the message the format of another record.
        return message if message.startswith(prefix) else f"{prefix}{message}"


_lock = threading.Lock()
_blocks = 0  # that are running, in all threads


@contextmanager
def installed() -> Iterator[None]:
    """Add the reconcile to log lines and warnings made in it, while this or another such block runs.

    Afterwards logging and warnings are as they were; only what others have put around ours meanwhile is left alone.
    """
    global _blocks
    with _lock:
        _blocks += 1
        factory, show = logging.getLogRecordFactory(), warnings.showwarning
        if not isinstance(factory, _RecordFactory):
            logging.setLogRecordFactory(_RecordFactory(factory))
        if not isinstance(show, _ShowWarning):
            warnings.showwarning = _ShowWarning(show)
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            factory, show = logging.getLogRecordFactory(), warnings.showwarning
            if not _blocks and isinstance(factory, _RecordFactory):
                logging.setLogRecordFactory(factory.wrapped)
            if not _blocks and isinstance(show, _ShowWarning):
                warnings.showwarning = show.wrapped


class _RecordFactory:
    def __init__(self, factory: Callable[..., logging.LogRecord]) -> None:
        self.wrapped = factory

    def __call__(self, *args: object, **kwargs: object) -> logging.LogRecord:
        record = self.wrapped(*args, **kwargs)
        context = current.get()
        if context is not None:
            record.reconcile = str(context)
            if type(record) is logging.LogRecord:  # another class of record makes its own message
                record.__class__ = ReconcileLogRecord
        return record


class _Show(Protocol):
    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None: ...


class _ShowWarning:
    """Python warns when the coroutine is dropped: in the reconcile, at the line without the await."""

    def __init__(self, show: _Show) -> None:
        self.wrapped = show

    def __call__(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if category is RuntimeWarning and "was never awaited" in str(message) and current.get() is not None:
            how = "await before the call" if loop_of_thread.get() is None else "run_in_loop(…) around the call"
            _log.error("%s, so that it did nothing: write %s at %s:%d", message, how, filename, lineno)
        else:
            self.wrapped(message, category, filename, lineno, file, line)
