"""The operators again, each with a mistake that is often made: `BUGS` has what shows it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tests.testing.exploration.operators import (
    RETENTION,
    Cloud,
    Machine,
    MachineReconciler,
    Mail,
    Post,
    explore_expiring_mails,
    explore_living_machines,
    explore_machines,
    explore_mails,
)

from kubewright import (
    CachedClient,
    Conflict,
    KubernetesError,
    Manager,
    ObjectMeta,
    Recorder,
    Request,
    Result,
    controller_for,
    now,
    set_controller_reference,
)
from kubewright.api.core.v1 import ConfigMap
from kubewright.controller import resource_version_changed
from kubewright.patterns import add_finalizer, ensure, remove_finalizer, set_condition
from kubewright.testing import Finding


class ByHand:
    """What the reconcilers below have in common: a machine in the cloud, and a finalizer."""

    finalizer = MachineReconciler.finalizer

    def __init__(self, client: CachedClient, events: Recorder, cloud: Cloud) -> None:
        self.client = client
        self.events = events
        self.cloud = cloud

    async def reconcile(self, request: Request) -> Result | None:
        machine = await self.client.find(Machine, request)
        if machine is None:
            return None
        if machine.metadata.deletion_timestamp is not None:
            await self.clean(machine)
            return None
        if self.finalizer not in machine.metadata.finalizers:
            await add_finalizer(self.client, machine, self.finalizer)
            return None
        return await self.make(machine)

    async def clean(self, machine: Machine) -> None:
        self.cloud.machines.pop(machine.metadata.name, None)
        await remove_finalizer(self.client, machine, self.finalizer)

    async def make(self, machine: Machine) -> Result | None:
        self.cloud.machines[machine.metadata.name] = machine.spec.size
        await self.report(machine)
        return None

    async def report(self, machine: Machine) -> None:
        machine.status.size = machine.spec.size
        machine.status.observed_generation = machine.metadata.generation
        set_condition(machine, "Ready", True, "Running")
        await self.client.status.patch(machine)


class LostFinalizer(ByHand):
    """The machine is there before the finalizer: an object that is deleted in between leaves it behind."""

    async def reconcile(self, request: Request) -> Result | None:
        machine = await self.client.find(Machine, request)
        if machine is None:
            return None
        if machine.metadata.deletion_timestamp is not None:
            await self.clean(machine)
            return None
        self.cloud.machines[machine.metadata.name] = machine.spec.size
        await self.report(machine)
        await add_finalizer(self.client, machine, self.finalizer)
        return None


class StaleStatus(ByHand):
    """The status says that the newest generation is done, and was made of an older one."""

    async def make(self, machine: Machine) -> Result | None:
        if machine.status.observed_generation == machine.metadata.generation:
            return None
        self.cloud.machines[machine.metadata.name] = machine.spec.size
        there = await self.client.get(machine, consistency="live")
        there.status.size = machine.spec.size
        there.status.observed_generation = there.metadata.generation
        set_condition(there, "Ready", True, "Running")
        await self.client.status.patch(there)
        return None


class DoubledChild(ByHand):
    """What the child is called is known only once it was written down."""

    async def make(self, machine: Machine) -> Result | None:
        if not machine.status.child:
            child = ConfigMap(metadata=ObjectMeta(generate_name=f"{machine.metadata.name}-", namespace="default"))
            set_controller_reference(machine, child)
            machine.status.child = (await self.client.create(child)).metadata.name
        return await super().make(machine)


class MissingOwner(ByHand):
    """The owner is written after the child, and a child that exists is taken for complete."""

    async def make(self, machine: Machine) -> Result | None:
        name = machine.metadata.name
        if await self.client.find(ConfigMap, name, namespace="default") is None:
            child = await self.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))
            set_controller_reference(machine, child)
            await self.client.patch(child)
        return await super().make(machine)


class EventPerRetry(ByHand):
    """One event for each attempt."""

    async def make(self, machine: Machine) -> Result | None:
        try:
            return await super().make(machine)
        except KubernetesError as error:
            self.events.warning(machine, "Failed", f"it could not be made: {error}")
            raise


class RandomName(ByHand):
    """Another name each time."""

    async def make(self, machine: Machine) -> Result | None:
        if not machine.status.child:
            machine.status.child = f"{machine.metadata.name}-{uuid.uuid4().hex[:6]}"
            await self.client.status.patch(machine)
        await ensure(self.client, ConfigMap(metadata=ObjectMeta(name=machine.status.child)), owner=machine)
        return await super().make(machine)


class AlreadyExistsLoop(ByHand):
    """The child is created until the status says that it was; that it exists already is an error for ever."""

    async def make(self, machine: Machine) -> Result | None:
        if not machine.status.child:
            name = machine.metadata.name
            child = ConfigMap(metadata=ObjectMeta(name=name, namespace="default"))
            set_controller_reference(machine, child)
            await self.client.create(child)
            machine.status.child = name
        return await super().make(machine)


class NotFoundOnDelete(ByHand):
    """What is to be deleted must be there."""

    async def make(self, machine: Machine) -> Result | None:
        await ensure(self.client, ConfigMap(metadata=ObjectMeta(name=machine.metadata.name, namespace="default")))
        return await super().make(machine)

    async def clean(self, machine: Machine) -> None:
        await self.client.delete(ConfigMap, machine.metadata.name, namespace="default")
        await super().clean(machine)


class NeverFlipsBack(ByHand):
    """Degraded after an error, and ever after."""

    async def make(self, machine: Machine) -> Result | None:
        try:
            await ensure(self.client, ConfigMap(metadata=ObjectMeta(name=machine.metadata.name)), owner=machine)
        except KubernetesError:
            set_condition(machine, "Degraded", True, "Failed")
            await self.client.status.patch(machine)
            raise
        return await super().make(machine)


class OwnEcho(ByHand):
    """Counts its checks in the status, which it watches: the next check comes at once and not in 30 s."""

    async def make(self, machine: Machine) -> Result | None:
        machine.status.checks += 1
        await super().make(machine)
        return Result(requeue_after=30)


class SwallowedConflict(ByHand):
    """Somebody else was faster: so be it."""

    async def make(self, machine: Machine) -> Result | None:
        try:
            self.cloud.machines[machine.metadata.name] = machine.spec.size
            machine.status.size = machine.spec.size
            set_condition(machine, "Ready", True, "Running")
            await self.client.status.patch(machine, lock=True)
        except Conflict:
            pass
        return None


class OnlyFromMemory(ByHand):
    """Cleans up what it remembers to have made."""

    def __init__(self, client: CachedClient, events: Recorder, cloud: Cloud) -> None:
        super().__init__(client, events, cloud)
        self.made: set[str] = set()

    async def make(self, machine: Machine) -> Result | None:
        if machine.status.size != machine.spec.size:
            self.made.add(machine.metadata.name)
            await super().make(machine)
        return None

    async def clean(self, machine: Machine) -> None:
        if machine.metadata.name in self.made:
            self.cloud.machines.pop(machine.metadata.name, None)
        await remove_finalizer(self.client, machine, self.finalizer)


class Mails:
    """Mails by hand."""

    def __init__(self, client: CachedClient, post: Post) -> None:
        self.client = client
        self.post = post

    async def reconcile(self, request: Request) -> Result | None:
        mail = await self.client.find(Mail, request)
        if mail is None:
            return None
        if mail.status.phase == "Completed":
            return await self.expire(mail)
        return await self.process(mail)

    async def process(self, mail: Mail) -> Result | None:
        if mail.status.phase == "Pending":
            mail.status.phase = "Processing"
            mail.status.start_time = now()
            mail = await self.client.status.patch(mail, lock=True)
        return await self.complete(mail)

    async def complete(self, mail: Mail) -> Result | None:
        self.post.sent.add(mail.metadata.name)
        mail.status.phase = "Completed"
        mail.status.completion_time = now()
        await self.client.status.patch(mail)
        return Result(requeue_after=RETENTION)

    async def expire(self, mail: Mail) -> Result | None:
        remaining = (self.ended(mail) + RETENTION - now()).total_seconds()
        if remaining > 0:
            return Result(requeue_after=remaining)
        await self.client.delete(mail, missing_ok=True)
        return None

    def ended(self, mail: Mail) -> datetime:
        return mail.status.completion_time or now()


class ActsBeforeClaim(Mails):
    """The claim comes last."""

    async def process(self, mail: Mail) -> Result | None:
        self.post.sent.add(mail.metadata.name)
        return await super().process(mail)


class NeverLeavesProcessing(Mails):
    """What is being processed is somebody's business already."""

    async def process(self, mail: Mail) -> Result | None:
        if mail.status.phase == "Processing":
            return None
        return await super().process(mail)


class ClockOfProcess(Mails):
    """The retention begins when this process has seen the end."""

    def __init__(self, client: CachedClient, post: Post) -> None:
        super().__init__(client, post)
        self.seen: dict[str, datetime] = {}

    async def complete(self, mail: Mail) -> Result | None:
        result = await super().complete(mail)
        self.ended(mail)
        return result

    def ended(self, mail: Mail) -> datetime:
        return self.seen.setdefault(mail.metadata.uid, now())


class ClockOfMachine(Mails):
    """The retention is by the clock of the machine that the operator runs on."""

    async def expire(self, mail: Mail) -> Result | None:
        passed = datetime.fromtimestamp(time.time(), UTC) - self.ended(mail)
        if passed < RETENTION:
            return Result(requeue_after=max(RETENTION - passed, timedelta(seconds=60)))
        await self.client.delete(mail, missing_ok=True)
        return None


def machines_by(reconciler: type[ByHand], *, owns: bool = True) -> Callable[[Manager, Cloud], None]:
    def setup(manager: Manager, cloud: Cloud) -> None:
        made = reconciler(manager.client, manager.recorder("machines"), cloud)
        where = resource_version_changed if reconciler is OwnEcho else None
        builder = controller_for(manager, Machine, where=where)
        (builder.owns(ConfigMap) if owns else builder).complete(made)

    return setup


def mails_by(reconciler: type[Mails]) -> Callable[[Manager, Post], None]:
    def setup(manager: Manager, post: Post) -> None:
        controller_for(manager, Mail).complete(reconciler(manager.client, post))

    return setup


class Bug(NamedTuple):
    """How a mistake is found: in which world first, and what its report shows."""

    findings: Callable[[], list[Finding]]
    world: str
    shown: str


def of_machines(reconciler: type[ByHand], world: str, shown: str) -> Bug:
    return Bug(lambda: explore_machines(machines_by(reconciler)).findings(limit=1), world, shown)


def of_living(reconciler: type[ByHand], world: str, shown: str) -> Bug:
    return Bug(lambda: explore_living_machines(machines_by(reconciler)).findings(limit=1), world, shown)


def of_mails(reconciler: type[Mails], world: str, shown: str) -> Bug:
    return Bug(lambda: explore_mails(mails_by(reconciler)).findings(limit=1), world, shown)


def of_expiring(reconciler: type[Mails], world: str, shown: str) -> Bug:
    return Bug(lambda: explore_expiring_mails(mails_by(reconciler)).findings(limit=1), world, shown)


BUGS = {
    "lost finalizer": of_machines(LostFinalizer, "errors@2", "-  {}\n+  {'web': 2}"),
    "status from a stale read": of_living(StaleStatus, "throttle@2", "-    size: 2\n+    size: 1"),
    "doubled child after a crash": of_living(DoubledChild, "crash-after@2", "+configmaps default/web-* (2):"),
    "action before the claim": of_mails(ActsBeforeClaim, "undisturbed", "`always` does not hold before call 1, PATCH"),
    "missing owner reference": of_living(MissingOwner, "crash-after@2", "-    ownerReferences:"),
    "phase never left": of_mails(
        NeverLeavesProcessing, "crash-after@1", "-    phase: Completed\n+    phase: Processing"
    ),
    "event per retry": of_living(EventPerRetry, "errors@2", "+event Warning Failed of Machine default/web: 5 x"),
    "non-deterministic names": of_living(RandomName, "jitter@1", "+configmaps default/web-"),
    "AlreadyExists loop": of_living(
        AlreadyExistsLoop, "crash-after@2", "POST /api/v1/namespaces/default/configmaps: 409"
    ),
    "NotFound as an error on delete": of_machines(NotFoundOnDelete, "crash-after@6", "configmaps/web: 404"),
    "TTL from the clock of the process": of_expiring(
        ClockOfProcess, "crash-before@3", "+mails.explore.kubewright.test"
    ),
    "TTL from the clock of the machine": of_expiring(ClockOfMachine, "undisturbed", "expected deleted"),
    "condition that never flips back": of_living(NeverFlipsBack, "conflict@2", "+      type: Degraded"),
    "requeue defeated by its own echo": of_living(OwnEcho, "undisturbed", "machine reconciles an object over and over"),
    "conflict that is swallowed": of_living(SwallowedConflict, "conflict@3", "-    size: 2\n+    size: 1"),
    "cleanup from memory": of_machines(OnlyFromMemory, "crash-after@3", "-  {}\n+  {'web': 2}"),
}
