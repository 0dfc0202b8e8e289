"""`RequestReconciler`: objects that request an action to be done once, and report its outcome.

    @resource("user.example.com/v1")
    class Grant(Resource[GrantSpec, RequestStatus]): ...

    class GrantReconciler(RequestReconciler[Grant]):
        async def act(self, request: Grant) -> str:
            await ensure(self.client, binding_of(request))
            return f"{request.spec.user} is {request.spec.role} now"

    reconciler = GrantReconciler(manager.client, manager.recorder("grants"))
    controller_for(manager, Grant, workers=4).source(reconciler.turns).complete(reconciler)

The phase of a request goes from Pending to Processing and on to Completed or Failed. A finished request is deleted
after its retention time, and one that is not finished in time fails.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import ClassVar, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from kubewright.api import Model, Object, Time, now
from kubewright.api.markers import Choice
from kubewright.cache import CachedClient
from kubewright.client.errors import AlreadyExists, Conflict, KubernetesError, NotFound
from kubewright.controller import Request, Result, TerminalError
from kubewright.controller.context import current
from kubewright.manager import Recorder
from kubewright.manager.permissions import Permission
from kubewright.patterns.audit import AuditRecord, AuditSink, LogAudit
from kubewright.patterns.conditions import message_of
from kubewright.patterns.kind_of import kind_of
from kubewright.patterns.not_yet import NotYet
from kubewright.patterns.turns import Order, Turns

R = TypeVar("R", bound=Object)

Phase: TypeAlias = Literal["Pending", "Processing", "Completed", "Failed"]

FINISHED: Final[tuple[Phase, ...]] = ("Completed", "Failed")
"""The phases of requests that are over."""

_log = logging.getLogger(__name__)


class Permanent(Exception):
    """The requested action cannot be done, now or later: the request fails with this message."""


class RequestStatus(Model):
    """The status of a request. Derive from it to report more."""

    phase: Choice[Phase] = "Pending"
    message: str = ""
    start_time: Time | None = None
    completion_time: Time | None = None
    attempts: int = 0
    observed_generation: int = 0


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
    - There is at most one audit record and one event for each change of phase that was stored, and without a crash
      there is one record.

    Of several processes one acts, by leader election: who claimed a request is not stored, so that one that was claimed
    may be continued by any.
    """

    retention: ClassVar[timedelta] = timedelta(hours=1)
    expiry: ClassVar[timedelta] = timedelta(minutes=10)
    retry: ClassVar[timedelta] = timedelta(seconds=30)
    """Until a temporary error is retried."""

    kind: type[R]
    """The kind of the requests, from the base class `RequestReconciler[Kind]`."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        kind = kind_of(cls, RequestReconciler)
        if kind is not None:
            cls.kind = cast("type[R]", kind)

    def __init__(
        self, client: CachedClient, events: Recorder, *, audit: AuditSink | None = None, identity: str = ""
    ) -> None:
        """`identity` names this process in audit records."""
        self.client = client
        self.events = events
        self._turns = Turns()
        self.turns = self._turns.woken
        """Enqueues a request when the one that it waited for has ended; without it, it is noticed after `retry`."""
        self._audit = audit if audit is not None else LogAudit()
        self._identity = identity

    @property
    def needed_permissions(self) -> list[Permission]:
        """What it does itself to requests, whatever `act` does: report their status, and delete them."""
        return [Permission(self.kind, "patch", subresource="status"), Permission(self.kind, "delete")]

    @abstractmethod
    async def act(self, request: R, /) -> str:
        """Carry out the request, and return what was done, for its message. May run more than once.

        Raise `Permanent` to fail the request, and `NotYet` to be called again. Errors of the server that may pass are
        retried after `retry`, other ones fail the request, and so does `TerminalError`; any other exception is retried
        with back-off. It is cancelled when the request expires.
        """

    def serialize_by(self, request: R, /) -> Hashable | None:
        """Of requests with the same key only one runs at a time. None: this one need not wait for any other."""
        return None

    def describe(self, request: R, /) -> Mapping[str, str]:
        """What is requested, for audit records: action, user, role and the like. Metrics distinguish by "action"."""
        return {}

    async def reconcile(self, request: Request) -> Result | None:
        """Reconcile one request."""
        obj = await self.client.find(self.kind, request)
        if obj is None or obj.metadata.deletion_timestamp is not None:
            self._turns.leave(request)
            return None
        if _status(obj).phase in FINISHED:
            self._turns.leave(request)
            return await self._retain(obj)
        if self._remaining(obj) <= 0:
            return await self._expire(obj)
        turn = self.serialize_by(obj)
        if turn is None:
            return await self._process(obj)
        # Taken without waiting for anything in between: others may have taken it while those before it were read.
        if not await self._is_next(obj, turn) or not self._turns.take(request, turn):
            self._turns.wait(request, turn, _order(obj))
            return self._again(obj, self.retry.total_seconds())
        try:
            return await self._process(obj)
        finally:
            self._turns.release(turn)

    async def _process(self, obj: R) -> Result | None:
        status = _status(obj)
        status.attempts += 1
        if status.phase != "Processing":
            before, status.phase, status.start_time, status.message = status.phase, "Processing", now(), ""
            status.observed_generation = obj.metadata.generation
            obj = await self.client.status.patch(obj, lock=True)
            status = _status(obj)
            await self._record(obj, before)
        action = self._described(obj).get("action", "act")
        time = asyncio.get_running_loop().time
        began = time()
        deadline = asyncio.timeout(self._remaining(obj))
        try:
            async with deadline:
                message = await self.act(obj)
        except Exception as error:
            outcome = "expired" if deadline.expired() else _outcome_of(error)
            _observe(action, outcome, time() - began)
            if outcome == "expired":
                return await self._expire(obj)
            if outcome == "failed":
                return await self._finish(obj, "Failed", message_of(error))
            await self._note(obj, message_of(error))
            if isinstance(error, NotYet):
                return self._again(obj, error.after)
            if not _is_temporary(error):
                raise
            _log.warning("attempt %d failed, and is repeated: %s", status.attempts, error)
            return self._again(obj, self.retry.total_seconds())
        _observe(action, "completed", time() - began)
        return await self._finish(obj, "Completed", message or "")

    async def _note(self, obj: R, message: str) -> None:
        """Report in the status why a request is not finished yet."""
        _status(obj).message = message
        with suppress(NotFound):
            await self._store(obj)

    async def _expire(self, obj: R) -> Result | None:
        waited = f": {_status(obj).message}" if _status(obj).message else ""
        return await self._finish(obj, "Failed", f"expired after {self.expiry.total_seconds():g} s{waited}")

    async def _finish(self, obj: R, phase: Phase, message: str) -> Result | None:
        """Store the end of a request."""
        status = _status(obj)
        before, status.phase, status.message = status.phase, phase, message
        status.completion_time = now()
        status.observed_generation = obj.metadata.generation
        try:
            stored = await self._store(obj)
        except NotFound:
            return None
        finally:
            self._turns.leave(obj.key)
        if stored is None:
            return Result(requeue=True)
        obj = stored
        await self._record(obj, before)
        record = self.events.normal if phase == "Completed" else self.events.warning
        record(obj, phase, message or phase)
        return await self._retain(obj)

    async def _store(self, obj: R) -> R | None:
        """Write the status, whatever was written besides it meanwhile.

        None when another process has finished the request, or when its name is that of another one by now.
        """
        while True:
            try:
                return await self.client.status.patch(obj, lock=True)
            except Conflict as error:
                if not error.is_optimistic_lock:
                    raise
            there = await self.client.get(obj, consistency="live")
            if there.metadata.uid != obj.metadata.uid or _status(there).phase in FINISHED:
                return None
            cast(_Reporting, there).status = _status(obj)
            obj = there

    async def _retain(self, obj: R) -> Result | None:
        """Delete a finished request when its time has come."""
        ended = _status(obj).completion_time or obj.metadata.creation_timestamp or now()
        remaining = (ended + self.retention - now()).total_seconds()
        if remaining > 0:
            return Result(requeue_after=remaining)
        await self.client.delete(obj, uid=obj.metadata.uid, missing_ok=True)
        return None

    def _again(self, obj: R, seconds: float) -> Result:
        """Not later than the request expires."""
        return Result(requeue_after=min(seconds, max(self._remaining(obj), 0.001)))

    def _remaining(self, obj: R) -> float:
        """Seconds until the request expires."""
        created = obj.metadata.creation_timestamp or now()
        return (created + self.expiry - now()).total_seconds()

    async def _is_next(self, obj: R, turn: Hashable) -> bool:
        """Whether no other request with the same key was begun, and none that waits is older."""
        if _status(obj).phase == "Processing":
            return True
        for other in await self.client.list(self.kind):
            status = _status(other)
            if other.metadata.uid == obj.metadata.uid or status.phase in FINISHED:
                continue
            try:
                is_another = self.serialize_by(other) != turn
            except Exception:  # its own reconcile reports it, and it holds up no other
                is_another = True
            if is_another:
                continue
            if other.metadata.deletion_timestamp is None and (
                status.phase == "Processing" or _order(other) < _order(obj)
            ):
                return False
        return True

    def _described(self, obj: R) -> Mapping[str, str]:
        try:
            return self.describe(obj)
        except Exception:
            _log.exception("what %s requests could not be described", obj.key)
            return {}

    async def _record(self, obj: R, before: str) -> None:
        status, metadata = _status(obj), obj.metadata
        is_end = status.completion_time is not None
        record = AuditRecord(
            time=now(),
            kind=obj.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            generation=metadata.generation,
            creator=metadata.annotations.get("creator", ""),
            action=dict(self._described(obj)),
            before=before,
            phase=status.phase,
            attempt=status.attempts,
            seconds=(now() - status.start_time).total_seconds() if is_end and status.start_time else None,
            message=status.message,
            controller=self._identity,
        )
        try:
            await self._audit.write(record, obj)
        except Exception:
            _log.exception("the audit record of %s could not be written: %s", obj.key, record.json().decode())


class _Reporting(Protocol):
    status: RequestStatus


def _status(obj: Object) -> RequestStatus:
    status: object = getattr(obj, "status", None)
    if not isinstance(status, RequestStatus):
        raise TypeError(f"{obj.kind} is no request: its status must derive from RequestStatus")
    return status


def _order(obj: Object) -> Order:
    return obj.metadata.creation_timestamp or now(), obj.metadata.uid


def _outcome_of(error: Exception) -> Literal["waiting", "error", "failed"]:
    """What an exception of `act` means for the request."""
    if isinstance(error, NotYet):
        return "waiting"
    is_final = isinstance(error, Permanent | TerminalError | KubernetesError) and not _is_temporary(error)
    return "failed" if is_final else "error"


def _is_temporary(error: Exception) -> bool:
    if isinstance(error, KubernetesError):
        return error.is_temporary or isinstance(error, Conflict | AlreadyExists)
    return isinstance(error, OSError)  # connections of other clients, and timeouts


def _observe(action: str, outcome: str, seconds: float) -> None:
    reconcile = current.get()
    if reconcile is not None:
        reconcile.statistics.observe_step(action, outcome, seconds)
