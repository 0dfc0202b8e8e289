"""`RequestReconciler`: objects that request an action to be done once, and report its outcome.

    @resource("user.example.com/v1")
    class Grant(Resource[GrantSpec, RequestStatus]): ...

    class GrantReconciler(RequestReconciler[Grant]):
        async def act(self, request: Grant) -> str:
            await ensure(self.client, binding_of(request))
            return f"{request.spec.user} is {request.spec.role} now"

    reconciler = GrantReconciler(manager.client, manager.recorder("grants"), retention=timedelta(days=1))
    controller_for(manager, Grant, workers=4).complete(reconciler)

The phase of a request goes from Pending to Processing and on to Completed or Failed. A finished request is deleted
after its retention time, and one that is not finished in time fails.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Generic, TypeVar, cast

from msgspec import Struct

from kubewright.api import Object, now
from kubewright.cache import CachedClient
from kubewright.client.errors import Conflict, NotFound
from kubewright.client.patch import Change, MergePatch, locked
from kubewright.controller import Handler, Request, Result
from kubewright.controller.cancelled import outcome
from kubewright.controller.context import current
from kubewright.manager import Recorder
from kubewright.manager.permissions import Permission
from kubewright.patterns.audit import AuditRecord, AuditSink, LogAudit
from kubewright.patterns.conditions import message_of
from kubewright.patterns.kind_of import kind_of
from kubewright.patterns.not_yet import NotYet
from kubewright.patterns.request_outcome import is_temporary, outcome_of
from kubewright.patterns.request_status import Phase, status_of, storable
from kubewright.patterns.request_turns import RequestTurns

R = TypeVar("R", bound=Object)

_QUICK_ATTEMPTS = 12
"""So many attempts that end with an unexpected exception have the back-off of the queue: the last of it is 20 s."""

_AUDIT_TIMEOUT = 30.0
"""Seconds after which a record could not be written: the request does not wait for a sink that does not answer."""

_log = logging.getLogger(__name__)


class _End(Struct, frozen=True):
    """An outcome that may not be stored yet."""

    phase: Phase
    message: str
    time: datetime


class _Progress(Struct):
    """What this process has done about an unfinished request, beyond what is stored."""

    uid: str
    claimed_at: float | None = None
    """When it has sent a claim, by the clock of the loop; the answer may have been lost."""
    is_recorded: bool = False
    """There is an audit record about its beginning."""
    is_waiting: bool = False
    """The last attempt goes on: it waits for something."""
    end: _End | None = None


class RequestReconciler(ABC, Generic[R]):
    """Carries out requests of one kind. Derive from it, naming the kind, and define `act`.

    Guarantees:
    - Phases go Pending, Processing, then Completed or Failed, and nothing else; what expires before its turn goes from
      Pending to Failed. A finished request is final: neither events nor changes of its spec run it again.
    - A request is claimed before anything is done for it, by a write that fails if another process was faster.
    - A crash anywhere leads to the same end: what was claimed is acted upon again, which is why `act` is idempotent.
    - A finished request is deleted when `retention` has passed since its completion, after a restart too. One that is
      not finished `expiry` after its creation fails, and an `act` that is still running then is cancelled.
    - Requests that `serialize_by` gives the same key run one at a time, the oldest first, with any number of workers.
      Those that wait cost nothing until it is their turn.
    - Every phase that a request reaches has an audit record, whatever fails, and just one unless a process ends in
      between: the one that takes over may write it again, with the same id. So has its end an event, and just one,
      unless the server does not accept events or the outcome is another one the second time.

    Of several processes one acts, by leader election: who claimed a request is not stored, so that one that was claimed
    may be continued by any.
    """

    retention: timedelta = timedelta(hours=1)
    expiry: timedelta = timedelta(minutes=10)
    retry: timedelta = timedelta(seconds=30)
    """Until a temporary error is retried; twice as long after each further one, up to `max_retry`."""
    max_retry: timedelta = timedelta(minutes=2)
    completed_reason: str = "Completed"
    """The reason of the event of a request that is completed."""
    failed_reason: str = "Failed"
    creator_annotation: str = "creator"
    """The annotation that names the creator of a request for audit records; have a webhook set it."""

    kind: type[R]
    """The kind of the requests, from the base class `RequestReconciler[Kind]`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        kind = kind_of(cls, RequestReconciler)
        if kind is not None:
            cls.kind = cast("type[R]", kind)

    def __init__(
        self,
        client: CachedClient,
        events: Recorder,
        *,
        audit: AuditSink | None = None,
        identity: str = "",
        retention: timedelta | None = None,
        expiry: timedelta | None = None,
        retry: timedelta | None = None,
        max_retry: timedelta | None = None,
    ) -> None:
        """`identity` names this process in audit records. Times that are not given are those of the class."""
        self.client = client
        self.events = events
        self.retention = _checked("retention", self.retention if retention is None else retention, or_zero=True)
        self.expiry = _checked("expiry", self.expiry if expiry is None else expiry)
        self.retry = _checked("retry", self.retry if retry is None else retry)
        self.max_retry = _checked("max_retry", self.max_retry if max_retry is None else max_retry)
        self._turns = RequestTurns(client, self.kind, self.serialize_by)
        self.own_events: Handler[Request] = Handler(self._turns.follow)
        """Has the controller enqueue the requests whose turn it is, and those that another writer has finished."""
        self._audit = audit if audit is not None else LogAudit()
        self._identity = identity
        self._progress: dict[Request, _Progress] = {}
        self._running: set[Hashable] = set()

    @property
    def needed_permissions(self) -> list[Permission]:
        """What it does itself to requests, whatever `act` does: report their status, and delete them."""
        return [Permission(self.kind, "patch", subresource="status"), Permission(self.kind, "delete")]

    @abstractmethod
    async def act(self, request: R, /) -> str:
        """Carry out the request, and return what was done, for its message. May run more than once.

        Raise `Permanent` to fail the request, and `NotYet` to be called again. Errors of the server that may pass are
        retried after `retry`, other ones fail the request, and so does `TerminalError`; any other exception is retried
        with back-off, and after a dozen attempts like those. It is cancelled when the request expires.
        """

    def serialize_by(self, request: R, /) -> Hashable | None:
        """Of requests with the same key only one runs at a time. None: this one need not wait for any other.

        Give what does not change while a request is unfinished, such as fields of an immutable spec.
        """
        return None

    def describe(self, request: R, /) -> Mapping[str, str]:
        """What is requested, for audit records: action, user, role and the like. Metrics distinguish by "action"."""
        return {}

    async def reconcile(self, request: Request) -> Result | None:
        """Reconcile one request."""
        obj = await self.client.find(self.kind, request)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            self._progress.pop(request, None)
            return None
        if status_of(obj).is_finished:
            self._progress.pop(request, None)
            return await self._retain(obj)
        progress = self._progress_of(obj)
        if progress.end is not None:
            return await self._store_end(obj, progress.end)
        if self._remaining(obj) <= 0:
            return await self._expire(obj)
        key = self.serialize_by(obj)
        if key is None:
            return await self._process(obj, progress)
        if not await self._turns.is_next(obj):
            return self._again(obj, self.expiry if self._turns.is_following else self.retry)
        if key in self._running:  # the one before was deleted while this process acts upon it
            return self._again(obj, timedelta(seconds=1))
        self._running.add(key)
        try:
            return await self._process(obj, progress)
        finally:
            self._running.remove(key)

    # Acting

    async def _process(self, obj: R, progress: _Progress) -> Result | None:
        obj = await self._begin(obj, progress)
        action = self._described(obj).get("action", "act")
        time = asyncio.get_running_loop().time
        began = time()
        deadline = asyncio.timeout(self._remaining(obj))
        try:
            async with deadline:
                message = await outcome(self.act(obj))
        except Exception as error:
            end = "expired" if deadline.expired() else outcome_of(error)
            _observe(action, end, time() - began)
            if end == "expired":
                return await self._expire(obj)
            if end == "failed":
                return await self._finish(obj, "Failed", message_of(error))
            return await self._put_off(obj, progress, error)
        _observe(action, "completed", time() - began)
        return await self._finish(obj, "Completed", message or "")

    async def _begin(self, obj: R, progress: _Progress) -> R:
        """Claim the request, or go on with one that was claimed."""
        status = status_of(obj)
        before = status.phase
        if before == "Pending":
            status.phase, status.start_time, status.message = "Processing", now(), ""
            status.attempts += 1
            status.observed_generation = obj.metadata.generation
            progress.claimed_at = asyncio.get_running_loop().time()
            try:
                obj = await self.client.status.patch(obj, lock=True)
            except Conflict:
                progress.claimed_at = None
                raise
        elif progress.claimed_at is not None and not progress.is_recorded:
            before = "Pending"  # by this process, which has not seen the answer
        elif not progress.is_waiting:
            status.attempts += 1
        progress.is_waiting = False
        if not progress.is_recorded:
            progress.is_recorded = True
            await self._record(obj, before)
        return obj

    async def _put_off(self, obj: R, progress: _Progress, error: Exception) -> Result:
        """Report why the request is not finished yet, and act upon it again later."""
        status = status_of(obj)
        status.message = storable(message_of(error))
        progress.is_waiting = isinstance(error, NotYet)
        with suppress(NotFound):
            await self._store(obj)
        if isinstance(error, NotYet):
            return self._again(obj, timedelta(seconds=error.after))
        is_expected = is_temporary(error)
        if not is_expected and status.attempts <= _QUICK_ATTEMPTS:
            raise error
        _log.warning(
            "attempt %d failed, and is repeated: %s", status.attempts, error, exc_info=None if is_expected else error
        )
        doubled = min(status.attempts - 1, 30)  # an exponent that no number of attempts makes too large
        return self._again(obj, min(self.retry * 2**doubled, max(self.retry, self.max_retry)))

    def _again(self, obj: R, later: timedelta) -> Result:
        """Not later than the request expires."""
        return Result(requeue_after=min(later.total_seconds(), max(self._remaining(obj), 0.001)))

    def _remaining(self, obj: R) -> float:
        """Seconds until the request expires."""
        return (self.expiry - _since(obj.metadata.creation_timestamp)).total_seconds()

    # The end

    async def _expire(self, obj: R) -> Result | None:
        waited = f": {status_of(obj).message}" if status_of(obj).message else ""
        return await self._finish(obj, "Failed", f"expired after {self.expiry.total_seconds():g} s{waited}")

    async def _finish(self, obj: R, phase: Phase, message: str) -> Result | None:
        """Report the end of a request and store it, in this order: what was done is known whatever happens then."""
        end = _End(phase, storable(message), now())
        self._progress_of(obj).end = end
        await self._record(obj, status_of(obj).phase, end)
        if phase == "Completed":
            await self.events.once("Normal", obj, self.completed_reason, end.message or self.completed_reason)
        else:
            await self.events.once("Warning", obj, self.failed_reason, end.message or self.failed_reason)
        return await self._store_end(obj, end)

    async def _store_end(self, obj: R, end: _End) -> Result | None:
        status = status_of(obj)
        status.phase, status.message, status.completion_time = end.phase, end.message, end.time
        status.observed_generation = obj.metadata.generation
        try:
            stored = await self._store(obj)
        except NotFound:
            _log.warning("it was deleted before it was stored that it has %s: %s", end.phase.lower(), end.message)
            self._progress.pop(obj.key, None)
            return None
        del self._progress[obj.key]
        return await self._retain(stored) if stored is not None else Result(requeue=True)

    async def _store(self, obj: R) -> R | None:
        """Write what is new in the status. What was written besides it meanwhile stays.

        None when another process has finished the request, or when its name is that of another one by now.
        """
        patch, revision = Change.of(obj, names=("status",)).patch(), obj.metadata.resource_version
        while patch:
            try:
                return await self.client.status.patch(self.kind, obj.key, MergePatch(locked(patch, revision)))
            except Conflict as error:
                if not error.is_optimistic_lock:
                    raise
            there = await self.client.get(obj, consistency="live")
            if there.metadata.uid != obj.metadata.uid or status_of(there).is_finished:
                return None
            revision = there.metadata.resource_version
        return obj

    async def _retain(self, obj: R) -> Result | None:
        """Delete a finished request when its time has come."""
        ended = status_of(obj).completion_time or obj.metadata.creation_timestamp
        remaining = (self.retention - _since(ended)).total_seconds()
        if remaining > 0:
            return Result(requeue_after=remaining)
        await self.client.delete(obj, uid=obj.metadata.uid, missing_ok=True)
        return None

    def _progress_of(self, obj: R) -> _Progress:
        """What is known of this very request; its name may have been that of another one."""
        found = self._progress.get(obj.key)
        if found is None or found.uid != obj.metadata.uid:
            found = self._progress[obj.key] = _Progress(obj.metadata.uid)
        return found

    # Audit

    def _described(self, obj: R) -> dict[str, str]:
        try:
            return {str(name): str(value) for name, value in self.describe(obj).items()}
        except Exception:
            _log.exception("what %s requests could not be described", obj.key)
            return {}

    async def _record(self, obj: R, before: str, end: _End | None = None) -> None:
        status, metadata = status_of(obj), obj.metadata
        record = AuditRecord(
            id=f"{metadata.uid}/{end.phase if end is not None else status.phase}",
            time=now(),
            kind=obj.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            generation=metadata.generation,
            creator=metadata.annotations.get(self.creator_annotation, ""),
            action=self._described(obj),
            before=before,
            phase=end.phase if end is not None else status.phase,
            attempt=status.attempts,
            seconds=self._duration(obj) if end is not None else None,
            message=end.message if end is not None else status.message,
            controller=self._identity,
        )
        try:
            async with asyncio.timeout(_AUDIT_TIMEOUT):
                await outcome(self._audit.write(record, obj))
        except Exception as error:
            # The log has it then. A traceback is for bugs, not for full disks.
            is_bug = not isinstance(error, OSError)
            unwritten = "the audit record of %s could not be written (%s): %s"
            _log.error(unwritten, obj.key, message_of(error), record.json().decode(), exc_info=is_bug)

    def _duration(self, obj: R) -> float | None:
        """Seconds since the request was claimed; whole ones, where another process has done it."""
        claimed_at, started = self._progress_of(obj).claimed_at, status_of(obj).start_time
        if claimed_at is not None:
            return round(asyncio.get_running_loop().time() - claimed_at, 3)
        return (now() - started).total_seconds() if started is not None else None


def _since(time: datetime | None) -> timedelta:
    # Not the time to come: one far ahead, as of what is to be kept for ever, is after the last year.
    return now() - time if time is not None else timedelta(0)


def _checked(name: str, time: timedelta, *, or_zero: bool = False) -> timedelta:
    if time < timedelta(0) or (not time and not or_zero):
        expected = "0 or more" if or_zero else "more than 0"
        raise ValueError(f"{name} is {time.total_seconds():g} s: expected {expected}")
    return time


def _observe(action: str, outcome: str, seconds: float) -> None:
    reconcile = current.get()
    if reconcile is not None:
        reconcile.statistics.observe_step(action, outcome, seconds)
