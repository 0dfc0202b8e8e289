"""The operator that is put through the faults: each Widget has one child and a status. It writes down what it does."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar, copy_context
from datetime import UTC, datetime

from kubewright import CachedClient, Client, Condition, Manager, Model, ObjectMeta, Request, Resource, field, resource
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.resources import Object
from kubewright.controller import controller_for
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.manager import GRACE

FINALIZER = "faults.example.com/child"
ASKING: ContextVar[bool] = ContextVar("the operator asks", default=False)


class WidgetSpec(Model):
    value: str


class WidgetStatus(Model):
    value: str = ""
    observed_generation: int = 0
    conditions: list[Condition] = field(default_factory=list)


@resource("faults.example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Has its value in a ConfigMap of its name."""


class Ledger:
    """What the reconciles of all operators of a world did."""

    def __init__(self) -> None:
        self.under_way: dict[Request, WidgetReconciler] = {}
        self.reconciles: Counter[str] = Counter()
        self.created = 0
        self.mistakes: list[str] = []


async def nothing(request: Request) -> None:
    """The default for what a test does in a reconcile."""


class WidgetReconciler:
    """Finalizer, child, status, in this order; and back. `before` is what a test does in each reconcile."""

    def __init__(self, client: CachedClient, ledger: Ledger, now: Callable[[], datetime]) -> None:
        self.client = client
        self.ledger = ledger
        self.now = now
        self.before: Callable[[Request], Awaitable[None]] = nothing

    async def reconcile(self, request: Request) -> None:
        if request in self.ledger.under_way:
            self.ledger.mistakes.append(f"two reconciles of {request} at once")
        if any(other is not self for other in self.ledger.under_way.values()):
            self.ledger.mistakes.append(f"a reconcile of {request} while another operator was at work")
        self.ledger.under_way[request] = self
        try:
            self.ledger.reconciles[request.name] += 1
            await self.before(request)
            await self.converge(request)
        finally:
            del self.ledger.under_way[request]

    async def converge(self, request: Request) -> None:
        widget = await self.client.find(Widget, request)
        if widget is None:
            return
        child = await self.client.find(ConfigMap, request)
        if widget.metadata.deletion_timestamp is not None:
            if child is not None:
                await self.client.delete(child, uid=child.metadata.uid, missing_ok=True)
            if FINALIZER in widget.metadata.finalizers:
                widget.metadata.finalizers.remove(FINALIZER)
                await self.client.update(widget)
            return
        if FINALIZER not in widget.metadata.finalizers:
            widget.metadata.finalizers.append(FINALIZER)
            widget = await self.client.update(widget)
        data = {"value": widget.spec.value}
        if child is None:
            await self.client.create(ConfigMap(metadata=child_of(widget), data=data))
            self.ledger.created += 1
        elif child.data != data:
            child.data = data
            await self.client.update(child)
        await self.report(widget)

    async def report(self, widget: Widget) -> None:
        status = widget.status
        status.value = widget.spec.value
        status.observed_generation = widget.metadata.generation
        since = status.conditions[0].last_transition_time if status.conditions else self.now().replace(microsecond=0)
        status.conditions = [
            Condition(
                type="Ready",
                status="True",
                reason="HasChild",
                observed_generation=widget.metadata.generation,
                last_transition_time=since,
            )
        ]
        await self.client.status.patch(widget)


def child_of(widget: Widget) -> ObjectMeta:
    return ObjectMeta(
        name=widget.metadata.name,
        namespace=widget.metadata.namespace,
        labels={"widget": widget.metadata.name},
        owner_references=[widget.as_owner()],
    )


class Operator:
    """The program under test: a manager with one controller, and the connection that it owns."""

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        namespace: str,
        *,
        election: LeaderElection | None = None,
        timeout: float | None = None,
        grace: float = GRACE,
        stream: bool = True,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.manager = Manager(client, namespaces=[namespace], election=election, grace=grace, stream=stream)
        self.reconciler = WidgetReconciler(self.manager.client, ledger, now)
        self.controller = (
            controller_for(self.manager, Widget, workers=4, timeout=timeout).owns(ConfigMap).complete(self.reconciler)
        )
        self._client = client
        context = copy_context()
        context.run(ASKING.set, True)
        self.task = asyncio.create_task(self._run(), context=context)

    async def _run(self) -> None:
        async with self._client:
            await self.manager.run()

    def is_at_work(self) -> bool:
        return self.manager.elected.is_set()

    async def stop(self) -> None:
        """End it as its user would; a failure is raised."""
        self.manager.stop()
        await self.task

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))

    def unsettled(self) -> list[str]:
        """What it still has to do."""
        queue = self.controller.queue.snapshot()
        counts = queue["counts"]
        found = [] if counts == {"due": 0, "running": 0, "delayed": 0} else [f"the queue holds {queue}"]
        if self.controller.not_ready_reason is not None:
            found.append(self.controller.not_ready_reason)
        informers = self.manager.cache.informers()
        return found + [f"{each.kind_name} is {each.state}" for each in informers if each.state != "watching"]

    async def cached(self, kind: type[Object], namespace: str) -> dict[str, str]:
        return revisions(await self.manager.client.list(kind, namespace=namespace, consistency="cached"))


def revisions(objects: Iterable[Object]) -> dict[str, str]:
    return {each.metadata.name: each.metadata.resource_version for each in objects}
