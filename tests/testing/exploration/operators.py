"""Small operators as users write them, on the patterns, with a scenario for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from kubewright import (
    CachedClient,
    Condition,
    Field,
    Manager,
    Model,
    ObjectMeta,
    Recorder,
    Request,
    Resource,
    Result,
    Time,
    condition,
    controller_for,
    deleted,
    now,
    ready,
    resource,
    set_controller_reference,
)
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.patterns import (
    Context,
    NotYet,
    ObjectReconciler,
    Pipeline,
    RequestReconciler,
    RequestStatus,
    create_or_update,
    ensure,
    set_condition,
    step,
)
from kubewright.testing import Exploration, World, explore
from kubewright.testing.exploration.faults import FAULT_KINDS, FaultKind


def named(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default")


# A machine in a cloud, with a finalizer and a child.


class MachineSpec(Model):
    size: int = 1


class MachineStatus(Model):
    size: int = 0
    child: str = ""
    checks: int = 0
    last_check: Time | None = None
    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("explore.kubewright.test/v1")
class Machine(Resource[MachineSpec, MachineStatus]):
    """A machine in a cloud."""


@dataclass
class Cloud:
    """Lives outside the cluster, and survives every process."""

    machines: dict[str, int] = field(default_factory=dict)


class MachineReconciler(ObjectReconciler[Machine]):
    finalizer = "explore.kubewright.test/machine"

    def __init__(self, client: CachedClient, cloud: Cloud) -> None:
        super().__init__(client)
        self.cloud = cloud

    async def converge(self, obj: Machine) -> Result | None:
        name = obj.metadata.name
        self.cloud.machines[name] = obj.spec.size
        await ensure(
            self.client, ConfigMap(metadata=ObjectMeta(name=name), data={"size": str(obj.spec.size)}), owner=obj
        )
        obj.status.size = obj.spec.size
        set_condition(obj, "Ready", True, "Running", f"it has size {obj.spec.size}")
        return None

    async def cleanup(self, obj: Machine) -> None:
        self.cloud.machines.pop(obj.metadata.name, None)


def machines(manager: Manager, cloud: Cloud) -> None:
    controller_for(manager, Machine).owns(ConfigMap).complete(MachineReconciler(manager.client, cloud))


MACHINE = Machine(metadata=named("web"), spec=MachineSpec())


async def live_and_die(world: World[Cloud]) -> None:
    await world.create(MACHINE)
    await world.wait(MACHINE, ready)
    await world.change(MACHINE, lambda machine: setattr(machine.spec, "size", 2))
    await world.wait(MACHINE, Field("status.size").equals(2))
    await world.delete(MACHINE)


def explore_machines(setup: Callable[[Manager, Cloud], None] = machines, seeds: int = 0) -> Exploration[Cloud]:
    return explore(
        setup,
        outside=Cloud,
        kinds=[Machine],
        when=live_and_die,
        until=lambda world: world.wait(MACHINE, deleted),
        compare=lambda world: world.outside.machines,
        seeds=seeds,
    )


async def live(world: World[Cloud]) -> None:
    await world.create(MACHINE)
    await asyncio.sleep(0.5)
    await world.change(MACHINE, lambda machine: setattr(machine.spec, "size", 2))


def explore_living_machines(setup: Callable[[Manager, Cloud], None] = machines, seeds: int = 0) -> Exploration[Cloud]:
    return explore(
        setup,
        outside=Cloud,
        kinds=[Machine],
        when=live,
        until=lambda world: world.wait(MACHINE, ready),
        compare=lambda world: world.outside.machines,
        events=1,
        seeds=seeds,
    )


# Mails that are sent once, on request.


class MailSpec(Model):
    to: str


class MailStatus(RequestStatus):
    pass


@resource("explore.kubewright.test/v1")
class Mail(Resource[MailSpec, MailStatus]):
    """Asks for a mail to be sent."""


RETENTION = timedelta(minutes=5)


@dataclass
class Post:
    """The mails that were sent, each once however often it is sent."""

    sent: set[str] = field(default_factory=set)


class MailReconciler(RequestReconciler[Mail]):
    retention = RETENTION
    retry = timedelta(seconds=10)

    def __init__(self, client: CachedClient, events: Recorder, post: Post) -> None:
        super().__init__(client, events)
        self.post = post

    async def act(self, request: Mail) -> str:
        self.post.sent.add(request.metadata.name)
        await ensure(
            self.client,
            ConfigMap(metadata=ObjectMeta(name="last-mail", namespace="default"), data={"to": request.spec.to}),
        )
        return f"sent to {request.spec.to}"


def mails(manager: Manager, post: Post) -> None:
    reconciler = MailReconciler(manager.client, manager.recorder("mails"), post)
    controller_for(manager, Mail).complete(reconciler)


MAIL = Mail(metadata=named("hello"), spec=MailSpec(to="ada"))


def claimed_first(world: World[Post]) -> bool:
    mail = world.get(MAIL)
    return mail is None or mail.status.phase != "Pending" or not world.outside.sent


def deleted_in_time(world: World[Post]) -> None:
    """But for the time that one fault takes when the moment has come."""
    mail = world.get(MAIL)
    if mail is not None and mail.status.completion_time is not None:
        late = (now() - mail.status.completion_time - RETENTION).total_seconds()
        assert late < 45, f"it should have been deleted {late:g} s ago"


def explore_mails(setup: Callable[[Manager, Post], None] = mails, seeds: int = 0) -> Exploration[Post]:
    return explore(
        setup,
        outside=Post,
        kinds=[Mail],
        when=lambda world: world.create(MAIL),
        until=lambda world: world.wait(MAIL, Field("status.phase").equals("Completed")),
        always=claimed_first,
        compare=lambda world: world.outside.sent,
        ignore={Mail: ["status.attempts"]},
        events=1,
        seeds=seeds,
    )


def explore_expiring_mails(setup: Callable[[Manager, Post], None] = mails) -> Exploration[Post]:
    return explore(
        setup,
        outside=Post,
        kinds=[Mail],
        when=lambda world: world.create(MAIL),
        until=lambda world: world.wait(MAIL, deleted),
        always=deleted_in_time,
        seeds=0,
    )


# A team with several children, made step by step, that waits for a key from somebody else.


class TeamSpec(Model):
    members: list[str] = []


class TeamStatus(Model):
    observed_generation: int = 0
    conditions: list[Condition] = []


@resource("explore.kubewright.test/v1")
class Team(Resource[TeamSpec, TeamStatus]):
    """A list of members, and a password once there is a key."""


class TeamContext(Context[Team]):
    key = ""


@step("ListReady")
async def members(context: TeamContext) -> None:
    team = context.object
    data = {"members": ",".join(team.spec.members)}
    await context.ensure(ConfigMap(metadata=ObjectMeta(name=team.metadata.name), data=data))


@step("KeyReady")
async def key(context: TeamContext) -> None:
    found = await context.client.find(ConfigMap, "key", namespace=context.object.metadata.namespace)
    if found is None:
        raise NotYet("there is no key", after=5, reason="NoKey")
    context.key = found.data["key"]


@step("PasswordReady", needs=[key, members])
async def password(context: TeamContext) -> None:
    initial = Secret(metadata=ObjectMeta(name=context.object.metadata.name))
    async with create_or_update(context.client, initial, owner=context.object) as secret:
        secret.string_data["password"] = context.key


TEAM_STEPS = Pipeline[TeamContext](members, key, password)


class TeamReconciler(ObjectReconciler[Team]):
    def __init__(self, client: CachedClient, events: Recorder) -> None:
        super().__init__(client)
        self.events = events

    async def converge(self, obj: Team) -> None:
        await TEAM_STEPS.run(TeamContext(obj, self.client, self.events))


def teams(manager: Manager) -> None:
    reconciler = TeamReconciler(manager.client, manager.recorder("teams"))
    controller_for(manager, Team).owns(ConfigMap, Secret).complete(reconciler)


TEAM = Team(metadata=named("ops"), spec=TeamSpec(members=["ada", "alan"]))


async def found_a_team(world: World[None]) -> None:
    await world.create(TEAM)
    await world.wait(TEAM, condition("KeyReady", "False"))
    await world.create(ConfigMap(metadata=named("key"), data={"key": "abc"}))


def explore_teams(setup: Callable[[Manager], None] = teams, seeds: int = 0) -> Exploration[None]:
    return explore(
        setup,
        kinds=[Team],
        when=found_a_team,
        until=lambda world: world.wait(TEAM, ready),
        events=1,
        seeds=seeds,
    )


# A crew of numbered children, more and fewer of them.


class CrewSpec(Model):
    size: int = 2


class CrewStatus(Model):
    size: int = 0
    observed_generation: int = 0


@resource("explore.kubewright.test/v1")
class Crew(Resource[CrewSpec, CrewStatus]):
    """Has as many ConfigMaps as its size."""


class CrewReconciler(ObjectReconciler[Crew]):
    async def converge(self, obj: Crew) -> None:
        wanted = [f"{obj.metadata.name}-{number}" for number in range(obj.spec.size)]
        for name in wanted:
            metadata = ObjectMeta(name=name, labels={"crew": obj.metadata.name})
            await ensure(self.client, ConfigMap(metadata=metadata), owner=obj)
        there = await self.client.list(ConfigMap, namespace=obj.metadata.namespace, labels={"crew": obj.metadata.name})
        for child in there:
            if child.metadata.name not in wanted:
                await self.client.delete(child, missing_ok=True)
        obj.status.size = len(wanted)


def crews(manager: Manager) -> None:
    controller_for(manager, Crew).owns(ConfigMap).complete(CrewReconciler(manager.client))


class CountingReconciler:
    """Makes as many as are missing, by what the cache has. A new leader doubles none: its cache has all of them."""

    def __init__(self, client: CachedClient) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> None:
        crew = await self.client.find(Crew, request)
        if crew is None:
            return
        labels = {"crew": crew.metadata.name}
        there = await self.client.list(ConfigMap, namespace="default", labels=labels)
        for _ in range(crew.spec.size - len(there)):
            child = ConfigMap(metadata=ObjectMeta(generate_name="crew-", namespace="default", labels=labels))
            set_controller_reference(crew, child)
            await self.client.create(child)
        for child in there[crew.spec.size :]:
            await self.client.delete(child, missing_ok=True)
        crew.status.size = crew.spec.size
        await self.client.status.patch(crew)


def counted_crews(manager: Manager) -> None:
    controller_for(manager, Crew).owns(ConfigMap).complete(CountingReconciler(manager.client))


CREW = Crew(metadata=named("a"), spec=CrewSpec())


async def grow_and_shrink(world: World[None]) -> None:
    await world.wait(CREW, Field("status.size").equals(2))
    await world.change(CREW, lambda crew: setattr(crew.spec, "size", 3))
    await world.wait(CREW, Field("status.size").equals(3))
    await world.change(CREW, lambda crew: setattr(crew.spec, "size", 1))


def at_most_three(world: World[None]) -> bool:
    return len([child for child in world.list(ConfigMap) if "crew" in child.metadata.labels]) <= 3


def explore_crews(
    setup: Callable[[Manager], None] = crews, seeds: int = 0, faults: Sequence[FaultKind] = FAULT_KINDS
) -> Exploration[None]:
    return explore(
        setup,
        kinds=[Crew],
        given=[CREW],
        when=grow_and_shrink,
        until=lambda world: world.wait(CREW, Field("status.size").equals(1)),
        always=at_most_three,
        faults=faults,
        seeds=seeds,
    )
