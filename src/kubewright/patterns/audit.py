"""The audit trail of requests: one record for each change of phase, written to a sink.

    OperationReconciler(client, events, audit=FileAudit("/var/log/operations.jsonl"))

A sink is anything with `async def write(self, record, request)`. One that fails, or takes more than 30 seconds, is
logged with the record, and changes nothing for the request.
"""

from __future__ import annotations

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from kubewright.api import Object
from kubewright.manager import Recorder

_log = logging.getLogger("kubewright.audit")


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of a request's phase: its creator, its action and its outcome.

    A process that takes over a request that was begun writes one that goes from Processing to Processing.
    """

    id: str
    """The uid of the request and its phase: records of the same id are about the same change."""
    time: datetime
    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    creator: str
    """Who has created the request, from an annotation of it: `RequestReconciler.creator_annotation`."""
    action: dict[str, str]
    """The requested action: what `RequestReconciler.describe` returns."""
    before: str
    phase: str
    attempt: int
    seconds: float | None = None
    """The duration from its claim to its end; None before the end."""
    message: str = ""
    controller: str = ""

    def json(self) -> bytes:
        """The record as one line of JSON."""
        return msgspec.json.encode(self)


class AuditSink(Protocol):
    """Receives audit records."""

    async def write(self, record: AuditRecord, request: Object) -> None:
        """Keep a record about the request."""


class LogAudit:
    """Records as lines of the log, by the logger `kubewright.audit`."""

    async def write(self, record: AuditRecord, request: Object) -> None:
        """See `AuditSink`."""
        _log.info("%s", record.json().decode())


class FileAudit:
    """Records as lines of JSON at the end of a file.

    Guarantee: a record is there as a whole when `write` returns. When it raises `OSError`, such as on a full disk,
    nothing of it is left that would spoil the next one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    async def write(self, record: AuditRecord, request: Object) -> None:
        """See `AuditSink`."""
        # Opened for each record: log rotation may move the file away at any time. A pipe without a reader is an error:
        # to wait for its reader would stop the whole process.
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o640)
        try:
            self._append(descriptor, record.json() + b"\n")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from None
        finally:
            os.close(descriptor)

    def _append(self, descriptor: int, line: bytes) -> None:
        """A write may take only the first part of a line, where the disk ends."""
        written = 0
        try:
            while written < len(line):
                written += os.write(descriptor, line[written:])
        except OSError:
            end = os.fstat(descriptor).st_size
            if written and os.lseek(descriptor, 0, os.SEEK_CUR) == end:  # nobody has written since
                os.ftruncate(descriptor, end - written)
            raise


class EventAudit:
    """Records as Kubernetes Events of the request, for `kubectl describe`."""

    def __init__(self, events: Recorder) -> None:
        self._events = events

    async def write(self, record: AuditRecord, request: Object) -> None:
        """See `AuditSink`."""
        record_event = self._events.warning if record.phase == "Failed" else self._events.normal
        what = " ".join(record.action.values())
        by = f" by {record.creator}" if record.creator else ""
        record_event(request, record.phase, f"{what}{by}: {record.message or record.phase}".lstrip(": "))
