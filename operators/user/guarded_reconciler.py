"""What both kinds of requests have in common: the policy that they were created under, and what they wait for."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TypeVar

from kubewright import CachedClient, Recorder, now
from kubewright.api import Object
from kubewright.patterns import AuditSink, NotYet, Permanent, RequestReconciler

from .deletion_gate import DeletionGate
from .names import CREATOR
from .request_guard import Guard
from .types import User

R = TypeVar("R", bound=Object)
T = TypeVar("T", bound=Object)

WAIT = 5.0
"""Seconds until something that a request waits for is checked again."""


class GuardedReconciler(RequestReconciler[R]):
    """Carries out requests that were created under the policy, and fails all others."""

    completed_reason = "OperationCompleted"
    failed_reason = "OperationFailed"
    creator_annotation = CREATOR

    def __init__(
        self,
        client: CachedClient,
        events: Recorder,
        guard: Guard,
        gate: DeletionGate,
        *,
        grace: timedelta = timedelta(seconds=30),
        audit: AuditSink | None = None,
        identity: str = "",
        **times: timedelta,
    ) -> None:
        """What is missing is waited for until a request is older than `grace`."""
        super().__init__(client, events, audit=audit, identity=identity, **times)
        self.guard = guard
        self.gate = gate
        self.grace = grace

    async def act(self, request: R) -> str:
        """See `RequestReconciler.act`."""
        await self.guard.check(request)
        return await self.carry_out(request)

    @abstractmethod
    async def carry_out(self, request: R, /) -> str:
        """Do what is requested, and return what was done. May run more than once; see `RequestReconciler.act`."""

    async def find(self, kind: type[T], name: str) -> T | None:
        """The object, asking the server for one that the cache does not show: a request has no second look."""
        return await self.client.find(kind, name) or await self.client.find(kind, name, consistency="live")

    def check_meant(self, request: R, user: User, *, by: timedelta = timedelta(0)) -> None:
        """Return unless the User was created later than the request by more than that: then it is another person."""
        created, requested = user.metadata.creation_timestamp, request.metadata.creation_timestamp
        if created is not None and requested is not None and created - requested > by:
            raise Permanent(
                f"the User {user.metadata.name} was created after this request, which does not mean it: create another "
                "one"
            )

    def missing(self, request: R, message: str, reason: str) -> Exception:
        """The error about something that is missing: to be waited for, or final for a request that is too old."""
        age = now() - (request.metadata.creation_timestamp or now())
        return NotYet(message, after=WAIT, reason=reason) if age < self.grace else Permanent(message)
