"""The log: human-readable on a terminal, JSON everywhere else.

    configure()  # or configure("json", verbosity=1)

Code logs with Python's `logging` as usual. Each line also names the reconcile it belongs to, and `extra={...}` adds
fields. Objects are written as references, however they get into a line: their content, a Secret's data above
all, is not. Nothing is formatted for lines that are not written.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TextIO

import msgspec

from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.controller.context import current

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "reconcile"}
_STANDARD_NUMBER = len(logging.makeLogRecord({}).__dict__)
_COLOURS = {logging.DEBUG: "2", logging.WARNING: "33", logging.ERROR: "31", logging.CRITICAL: "1;31"}
_SHORT = {logging.WARNING: "WARN", logging.CRITICAL: "FATAL"}
_FRAMEWORK = tuple(
    f"{folder}{os.sep}" for folder in (Path(__file__).parent.parent, Path(asyncio.__file__ or os.devnull).parent)
)
_DEEPEST = 8
_SCALARS = frozenset({str, int, float, bool, type(None)})

_log = logging.getLogger(__name__)


def configure(
    format: Literal["console", "json"] | None = None, verbosity: int = 0, stream: TextIO | None = None
) -> None:
    """Write the log of the whole process to `stream`, by default standard error; a second call replaces the first.

    Without a `format` it is "console" on a terminal and "json" elsewhere. With `verbosity` 1 to 3 kubewright's own
    debug lines are written too, from 4 on those of all libraries.
    """
    stream = stream or sys.stderr
    if format not in (None, "console", "json"):
        raise ValueError(f'"{format}" is not a format of the log: expected "console" or "json"')
    if verbosity < 0:
        raise ValueError(f"the verbosity of the log is {verbosity}: expected 0 or more")
    is_terminal = stream.isatty()
    handler = _Handler(stream)
    if format == "console" or (format is None and is_terminal):
        handler.setFormatter(ConsoleFormatter(is_coloured=is_terminal and not os.environ.get("NO_COLOR")))
    else:
        handler.setFormatter(JSONFormatter())
    root = logging.getLogger()
    for earlier in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
    logging.getLogger("kubewright").setLevel(logging.DEBUG if verbosity >= 1 else logging.NOTSET)


def capture_stray_output() -> None:
    """Log what Python itself would print to standard error: warnings, and errors of threads and finalizers.

    For a process of its own: it is never undone.
    """
    logging.captureWarnings(True)

    def thread_failed(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
            name = failed.thread.name if failed.thread is not None else "unknown"
            _log.error("the thread %s failed", name, exc_info=failed.exc_value)

    def finalizer_failed(failed: sys.UnraisableHookArgs) -> None:
        what = failed.err_msg or "Exception ignored in"
        _log.error("%s %s", what, type(failed.object).__name__, exc_info=failed.exc_value)

    threading.excepthook = thread_failed
    sys.unraisablehook = finalizer_failed


def exit_line(name: str, message: str, error: BaseException | None = None) -> str:
    """The line that reports why the program `name` exits, in the format of the log: JSON stays JSON to the end.

    With an `error`, its traceback is in it. Takes no lock: other threads may be stuck in writing the log.
    """
    formatters = [each.formatter for each in logging.getLogger().handlers if isinstance(each, _Handler)]
    if formatters and isinstance(formatters[0], JSONFormatter):
        cause = (type(error), error, error.__traceback__) if error is not None else None
        return formatters[0].format(logging.LogRecord(name, logging.CRITICAL, "", 0, message, None, cause))
    trace = f"\n{_printable(stack_trace(error))}" if error is not None else ""
    return f"{name}: {message}{trace}"


class _Handler(logging.StreamHandler[TextIO]):
    """A handler that can be distinguished from others."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line. Python's own takes the lock, which is held here, a second time to flush the stream."""
        try:
            self.stream.write(self.format(record) + self.terminator)
            self.stream.flush()
        except RecursionError:  # as Python does it
            raise
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # Python's name
        """Log a line that cannot be formatted as it stands in the code; Python would print a traceback."""
        message = "a log line could not be formatted: %r"
        unformatted = logging.LogRecord(record.name, logging.ERROR, "", 0, message, (str(record.msg),), None)
        with suppress(Exception):  # of the stream: there is no other way to report it
            self.stream.write(self.format(unformatted) + self.terminator)
            self.flush()


class JSONFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, the reconcile, then what `extra` adds, then errors."""

    _latest: tuple[int | None, str] = (None, "")  # a second, and how it is written

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        fields: dict[str, object] = {
            "ts": self._stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _message(record),
        }
        _add_fields(fields, record)
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = summary(record.exc_info[1])
            fields["stacktrace"] = stack_trace(record.exc_info[1])
        if record.stack_info:
            fields["stack"] = record.stack_info
        return _json.encode(fields).decode()

    def _stamp(self, created: float) -> str:
        """`2026-01-01T00:00:00.000Z`. Of lines in the same second only the milliseconds are formatted again."""
        milliseconds = int(created * 1000)
        second, rest = divmod(milliseconds, 1000)
        known, text = self._latest
        if second != known:
            text = datetime.fromtimestamp(second, UTC).isoformat()[:19]
            self._latest = second, text  # at once, as several threads may log
        return f"{text}.{str(1000 + rest)[1:]}Z"  # a format specification takes five times as long


class ConsoleFormatter(logging.Formatter):
    """`12:00:00.000 INFO  kubewright.manager  started  port=8080`, in colours on a terminal."""

    def __init__(self, *, is_coloured: bool) -> None:
        super().__init__()
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        level = f"{_SHORT.get(record.levelno, record.levelname):<5}"
        if self._is_coloured and (colour := _COLOURS.get(record.levelno)):
            level = f"\033[{colour}m{level}\033[0m"
        time = _time(record).astimezone().isoformat(timespec="milliseconds")[11:23]
        known: dict[str, object] = {}
        _add_fields(known, record)
        fields = [f"{name}={_shown(value)}" for name, value in known.items()]
        line = "  ".join([f"{time} {level} {record.name}", _printable(_message(record)), *fields[:1]])
        line = " ".join([line, *fields[1:]])
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + _printable(stack_trace(record.exc_info[1]))
        if record.stack_info:
            line += "\n" + _printable(record.stack_info)
        return line


def stack_trace(error: BaseException) -> str:
    """The traceback of an error and of what caused it, without the frames of kubewright and asyncio.

    An error that never left the framework is shown with its frames.
    """
    chain = traceback.TracebackException.from_exception(error, compact=True)
    left_out = _leave_out_framework(chain, _DEEPEST)
    text = "".join(chain.format()).rstrip("\n")
    if left_out:
        text += f"\n({left_out} frame{'s' if left_out > 1 else ''} of kubewright and asyncio left out)"
    return text


def _leave_out_framework(chain: traceback.TracebackException, depth: int) -> int:
    """Remove the frames of the framework from all errors of the chain. Returns how many."""
    left_out = 0
    own = [frame for frame in chain.stack if not frame.filename.startswith(_FRAMEWORK)]
    if own:
        left_out = len(chain.stack) - len(own)
        chain.stack = traceback.StackSummary.from_list(own)
    if depth:
        for other in (chain.__cause__, chain.__context__, *(chain.exceptions or ())):
            if other is not None:
                left_out += _leave_out_framework(other, depth - 1)
    return left_out


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _message(record: logging.LogRecord) -> str:
    """The message, with references instead of objects."""
    if not isinstance(record.msg, str):
        return _text(_argument(record.msg))
    arguments = record.args
    if not arguments:
        return record.msg
    if isinstance(arguments, tuple):
        return record.msg % tuple([_argument(value) for value in arguments])
    return record.msg % {name: _argument(value) for name, value in arguments.items()}


def _argument(value: object) -> object:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Object):
        return _Reference(value)
    if held := _held(value):
        return _Holder(value, held)
    if isinstance(value, Mapping | list | tuple | set | frozenset) and not isinstance(value, ObjectKey):
        return _plain(value)
    return value


class _Reference:
    """Stands for an object in a message: `Pod shop/web-0`, for %s as well as for %r."""

    def __init__(self, value: Object) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"{self._value.kind or type(self._value).__name__} {self._value.key}"


class _Holder:
    """Stands for a value that contains objects and would show them: `WatchEvent(Pod shop/web-0)`."""

    def __init__(self, value: object, held: list[Object]) -> None:
        self._name = type(value).__name__
        self._held = held

    def __repr__(self) -> str:
        return f"{self._name}({', '.join(repr(_Reference(each)) for each in self._held)})"


def _held(value: object) -> list[Object]:
    """The objects in the fields of a structure or dataclass."""
    names: Iterable[str] = getattr(value, "__struct_fields__", ()) or getattr(value, "__dataclass_fields__", ())
    return [held for name in names if isinstance(held := getattr(value, name, None), Object)]


def _add_fields(fields: dict[str, object], record: logging.LogRecord) -> None:
    """Add the reconcile, then the fields of `extra`, which do not replace what is there."""
    context = current.get()
    if context is not None:
        fields["controller"] = context.controller
        if context.namespace:
            fields["namespace"] = context.namespace
        fields["name"] = context.name
        fields["reconcileID"] = context.reconcile_id
    if len(record.__dict__) > _STANDARD_NUMBER + ("reconcile" in record.__dict__):
        for name, value in record.__dict__.items():
            # What Python put there itself; `name` is the logger's.
            if name not in _STANDARD:
                fields.setdefault(name, _plain(value))


def _plain(value: object, depth: int = _DEEPEST) -> object:
    """The value with references instead of objects, at any depth."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Object():
            reference = {"kind": value.kind or type(value).__name__, "namespace": value.metadata.namespace}
            return {name: text for name, text in reference.items() if text} | {"name": value.metadata.name}
        case ObjectKey():
            return str(value)
        case BaseException():
            return summary(value)
        case _ if depth == 0:
            return "…"
        case Mapping():
            return {_text(name): _plain(item, depth - 1) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item, depth - 1) for item in value]
    return _text(_argument(value))


def _text(value: object) -> str:
    # A line is not lost because one thing in it cannot be shown.
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


_json = msgspec.json.Encoder(enc_hook=_text)


def summary(error: BaseException) -> str:
    """`ValueError: its message`."""
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _shown(value: object) -> str:
    """A field's value on the console: without quotes when that is unambiguous."""
    if isinstance(value, dict) and value.keys() <= {"kind", "namespace", "name"} and "name" in value:
        value = "/".join(str(part) for part in value.values())
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if not text or any(character in ' \t\n"=' or not character.isprintable() for character in text):
        return msgspec.json.encode(text).decode()
    return text


def _printable(text: str) -> str:
    """The text without terminal control characters, and with further lines indented: none looks like another entry."""
    return "\n  ".join(
        "".join(
            character if character.isprintable() or character == "\t" else character.encode("unicode_escape").decode()
            for character in line
        )
        for line in text.splitlines()
    )
