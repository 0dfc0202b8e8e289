"""A kind of requests for the tests of the patterns, and worlds in virtual time where they are carried out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from kubewright import (
    CachedClient,
    Client,
    ControlPlane,
    Manager,
    Model,
    ObjectMeta,
    Recorder,
    Resource,
    controller_for,
    resource,
)
from kubewright.patterns import RequestReconciler, RequestStatus
from kubewright.patterns.audit import AuditRecord, AuditSink
from kubewright.testing import RecordedEvents


class ErrandSpec(Model):
    what: str = "Fetch"
    user: str = ""


class ErrandStatus(RequestStatus):
    progress: int = 0


@resource("patterns.kubewright.test/v1")
class Errand(Resource[ErrandSpec, ErrandStatus]):
    """Something to be done once."""


class Records:
    """An audit sink that keeps what it gets."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    async def write(self, record: AuditRecord, request: object) -> None:
        self.records.append(record)

    @property
    def phases(self) -> list[tuple[str, str]]:
        return [(record.before, record.phase) for record in self.records]


class ErrandReconciler(RequestReconciler[Errand]):
    """Does what a test says."""

    def __init__(
        self, client: CachedClient, events: Recorder, audit: AuditSink | None = None, **times: timedelta
    ) -> None:
        super().__init__(client, events, audit=audit, identity="test", **times)
        self.acting: Callable[[Errand], Awaitable[str]] = done
        self.acted: list[str] = []

    async def act(self, request: Errand) -> str:
        self.acted.append(request.metadata.name)
        return await self.acting(request)

    def describe(self, request: Errand) -> Mapping[str, str]:
        return {"action": request.spec.what, "user": request.spec.user}

    def serialize_by(self, request: Errand) -> Hashable | None:
        return request.spec.user or None


async def done(request: Errand) -> str:
    return "done"


def failing(*errors: Exception) -> Callable[[Errand], Awaitable[str]]:
    """Raises these one after the other, and then succeeds."""
    remaining = list(errors)

    async def act(request: Errand) -> str:
        if remaining:
            raise remaining.pop(0)
        return "done"

    return act


def errand(name: str = "one", namespace: str = "default", *, user: str = "") -> Errand:
    metadata = ObjectMeta(name=name, namespace=namespace, annotations={"creator": "alice"})
    return Errand(metadata=metadata, spec=ErrandSpec(user=user))


class World:
    """A control plane in virtual time with a running reconciler."""

    def __init__(self, admin: Client, reconciler: ErrandReconciler, events: RecordedEvents, records: Records) -> None:
        self.admin, self.reconciler, self.events, self.records = admin, reconciler, events, records

    async def phase(self, name: str = "one") -> str:
        found = await self.admin.find(Errand, name)
        return found.status.phase if found is not None else "gone"

    async def status(self, name: str = "one") -> RequestStatus:
        return (await self.admin.get(Errand, name)).status


@asynccontextmanager
async def world(
    acting: Callable[[Errand], Awaitable[str]] = done,
    workers: int = 4,
    made: type[ErrandReconciler] = ErrandReconciler,
    **times: timedelta,
) -> AsyncIterator[World]:
    async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
        manager = Manager(admin)
        events, records = RecordedEvents(), Records()
        reconciler = made(manager.client, events, records, **times)
        reconciler.acting = acting
        controller_for(manager, Errand, workers=workers).complete(reconciler)
        async with manager.running():
            yield World(admin, reconciler, events, records)
