from __future__ import annotations

import asyncio
import logging
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Namespace, Node, Pod, Secret
from kubewright.api.events.v1 import Event
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.api.resource import Resource, resource
from kubewright.client import Client
from kubewright.client.wait import exists
from kubewright.controller import Controller, Queue, Request, Result, controller
from kubewright.controller.source import Channel
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.request import Target
from kubewright.manager import Manager, Permission
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.manager import PermissionsMissing
from kubewright.manifest.crd import crd_of
from kubewright.testing.namespaces import unique_name
from kubewright.testing.virtual_time import run_virtual

LEASE = "operator"


class GadgetSpec(Model):
    size: int = 1


class GadgetStatus(Model):
    pass


@resource("example.com/v1")
class Gadget(Resource[GadgetSpec, GadgetStatus]):
    """A kind that is not there until its definition is installed."""


Scenario = Callable[[EmbeddedControlPlane, Client], Coroutine[None, None, None]]


def virtually(test: Scenario) -> Callable[[], None]:
    """The test on an embedded control plane, in virtual time, of which it has an hour. No task may be left behind."""

    async def main() -> None:
        async with (
            asyncio.timeout(3600),
            ControlPlane.embedded(controllers=(), nodes=0) as plane,
            plane.client() as client,
        ):
            before = asyncio.all_tasks()
            await test(plane, client)
            await asyncio.sleep(0)
            assert asyncio.all_tasks() - before == set()

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[None]:
    """The manager while the block runs; it has to end cleanly."""
    task = asyncio.create_task(manager.run(), name="manager")
    try:
        yield
    finally:
        manager.stop()
        await task


class Told:
    """What happened, in order."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._news = asyncio.Event()

    def __call__(self, words: str) -> None:
        self.words.append(words)
        self._news.set()

    async def until(self, *words: str) -> None:
        async with asyncio.timeout(300):
            while not set(words) <= set(self.words):
                self._news.clear()
                await self._news.wait()


class Recording:
    """A runnable that tells when it begins and when it ends."""

    def __init__(self, name: str, told: Told, *, needs_leader: bool = True) -> None:
        self.name = name
        self.told = told
        self.needs_leader = needs_leader

    async def run(self) -> None:
        self.told(f"{self.name} begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.told(f"{self.name} ends")


class RecordingSource:
    """A source that gives no keys, and tells when it begins and when it ends."""

    missing = None

    def __init__(self, told: Told) -> None:
        self.told = told

    async def run(self, queue: Queue[str]) -> None:
        self.told("source begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.told("source ends")

    async def synced(self) -> None:
        pass


class Passes:
    """A reconciler whose passes take some seconds, and tell when they begin and how they end."""

    def __init__(self, told: Told, seconds: float = 0.0) -> None:
        self.told = told
        self.seconds = seconds

    async def reconcile(self, key: str | Request) -> Result:
        self.told(f"{_name(key)} begins")
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.told(f"{_name(key)} is cancelled")
            raise
        self.told(f"{_name(key)} is done")
        return Result()


def _name(key: str | Request) -> str:
    return key if isinstance(key, str) else key.name


def fed(
    manager: Manager,
    told: Told,
    *keys: str,
    seconds: float = 0.0,
    name: str = "fed",
    workers: int = 1,
    needs_leader: bool = True,
) -> Channel[str]:
    """A controller of the manager's that gets these keys at its start, and more from the channel."""
    channel: Channel[str] = Channel()
    for key in keys:
        channel.send(key)
    built: Controller[str] = Controller(name, Passes(told, seconds), workers=workers, needs_leader=needs_leader)
    built.watch(channel)
    manager.add(built)
    return channel


def now() -> float:
    return asyncio.get_running_loop().time()


def config_map(name: str, namespace: str = "default") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


def candidate(client: Client, identity: str, **options: float) -> LeaderElection:
    return LeaderElection(client, LEASE, namespace="default", identity=identity, **options)  # type: ignore[arg-type]  # only numbers


async def holder(client: Client) -> str:
    lease = await client.find(Lease, LEASE, namespace="default")
    return (lease.spec.holder_identity or "") if lease is not None else ""


@asynccontextmanager
async def another_leader(client: Client) -> AsyncIterator[None]:
    """Somebody else holds the lease while the block runs, and gives it back at its end."""
    leads = asyncio.Event()

    async def lead() -> None:
        leads.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(candidate(client, "another").run(lead))
    try:
        await leads.wait()
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def eventually(holds: Callable[[], bool]) -> None:
    """For what nobody tells of. In virtual time the pauses take no time."""
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.05)


async def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of what is served here."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), body.decode()


async def may(client: Client, user: str, *rules: PolicyRule, namespace: str = "") -> Callable[[], Awaitable[object]]:
    """Bind rules to a user, in one namespace or everywhere. Returns the way to take them back."""
    subjects = [Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")]
    kind, meta = ("Role", ObjectMeta(name=unique_name("manager"), namespace=namespace))
    if namespace:
        await client.create(Role(metadata=meta, rules=list(rules)))
        reference = RoleRef(api_group="rbac.authorization.k8s.io", kind=kind, name=meta.name)
        bound = await client.create(RoleBinding(metadata=meta, subjects=subjects, role_ref=reference))
        return lambda: client.delete(bound)
    meta = ObjectMeta(name=meta.name)
    await client.create(ClusterRole(metadata=meta, rules=list(rules)))
    reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=meta.name)
    bound_everywhere = await client.create(ClusterRoleBinding(metadata=meta, subjects=subjects, role_ref=reference))
    return lambda: client.delete(bound_everywhere)


# The order of things


def test_what_a_program_consists_of_begins_and_ends_in_order() -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        told = Told()
        manager = Manager(client, election=candidate(client, "a"), health_address="127.0.0.1:0")
        keep = manager.cache.run

        async def recorded_cache() -> None:
            assert manager.ports["health"]
            told("cache begins")
            try:
                await keep()
            finally:
                assert manager.ports["health"]
                told(f'cache ends, the lease is held by "{await holder(client)}"')

        manager.cache.run = recorded_cache  # type: ignore[method-assign]  # there is no other way to see it
        # In no order: what comes first is not for whoever adds them to decide.
        manager.add(Recording("leader", told))
        manager.add(Recording("other", told, needs_leader=False))
        sourced: Controller[str] = Controller("sourced", Passes(told))
        sourced.watch(RecordingSource(told))
        manager.add(sourced)
        channel = fed(manager, told, seconds=5)
        async with running(manager):
            await told.until("leader begins")
            assert await holder(client) == "a"
            channel.send("pass")
            await told.until("pass begins")
        assert manager.ports["health"] == 0
        began = ["cache begins", "other begins", "source begins", "leader begins", "pass begins"]
        assert told.words[:5] == began
        assert sorted(told.words[5:7]) == ["leader ends", "other ends"]
        assert told.words[7:] == ["pass is done", "source ends", 'cache ends, the lease is held by ""']

    scenario()


@virtually
async def test_the_lease_is_held_until_the_last_pass_is_over(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client, election=candidate(client, "a"))
    holders: list[str] = []

    class Slow:
        async def reconcile(self, key: str) -> None:
            told("begins")
            await asyncio.sleep(20)
            holders.append(await holder(client))

    channel: Channel[str] = Channel()
    channel.send("x")
    built: Controller[str] = Controller("slow", Slow())
    built.watch(channel)
    manager.add(built)
    async with running(manager):
        await told.until("begins")
    assert holders == ["a"]
    assert await holder(client) == ""


# What fails


@pytest.mark.parametrize("needs_leader", [True, False])
@pytest.mark.parametrize("is_elected", [True, False])
def test_a_failing_runnable_stops_everything_and_run_raises_it(needs_leader: bool, is_elected: bool) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        told, error = Told(), ValueError("the printer is on fire")

        class Failing:
            def __init__(self) -> None:
                self.needs_leader = needs_leader

            async def run(self) -> None:
                await told.until("other begins", "leader begins", "x begins")
                raise error

        manager = Manager(client, election=candidate(client, "a") if is_elected else None)
        manager.add(Failing())
        manager.add(Recording("other", told, needs_leader=False))
        manager.add(Recording("leader", told))
        fed(manager, told, "x", seconds=10)
        with pytest.raises(ValueError, match="the printer is on fire") as raised:
            await manager.run()
        assert raised.value is error
        assert set(told.words[3:]) == {"other ends", "leader ends", "x is done"}
        assert await holder(client) == ""

    scenario()


@virtually
async def test_the_first_failure_is_the_one_that_is_raised(plane: EmbeddedControlPlane, client: Client) -> None:
    async def first() -> None:
        raise ValueError("first")

    async def second() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("second, because of the first")

    manager = Manager(client)
    manager.add(second)
    manager.add(first)
    with pytest.raises(ValueError, match=r"^first$"):
        await manager.run()


@pytest.mark.parametrize("needs_leader", [True, False])
def test_what_cannot_be_started_ends_what_was_started_before_it(needs_leader: bool) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        told = Told()

        class Broken:
            def __init__(self) -> None:
                self.needs_leader = needs_leader

            def run(self) -> Coroutine[object, object, None]:
                raise ValueError("cannot even begin")

        manager = Manager(client)
        manager.add(Recording("before", told, needs_leader=needs_leader))
        manager.add(Broken())
        with pytest.raises(ValueError, match="cannot even begin"):
            await manager.run()
        # Whether it got its first step is the event loop's business. That nothing is left is looked at by `virtually`.
        assert told.words in ([], ["before begins", "before ends"])

    scenario()


@virtually
async def test_a_runnable_that_ends_by_itself_ends_nothing_else(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()

    async def short() -> None:
        told("short ends")

    manager = Manager(client)
    manager.add(short)
    manager.add(Recording("long", told))
    async with running(manager):
        await asyncio.sleep(600)
        assert told.words == ["short ends", "long begins"]


# What it consists of


@virtually
async def test_what_is_added_after_the_start_begins_at_once(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client)
    async with running(manager):
        await manager.elected.wait()
        manager.add(Recording("leader", told))
        manager.add(Recording("other", told, needs_leader=False))
        fed(manager, told, "x")
        fed(manager, told, "y", name="unelected", needs_leader=False)
        await told.until("leader begins", "other begins", "x is done", "y is done")
    assert {"leader ends", "other ends"} <= set(told.words)


@virtually
async def test_what_a_standby_is_given_begins_when_it_leads(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client, election=candidate(client, "a"))
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        manager.add(Recording("leader", told))
        fed(manager, told, "x")
        await asyncio.sleep(60)
        assert told.words == []
        assert not manager.elected.is_set()
    await told.until("leader begins", "x is done")
    assert manager.elected.is_set()
    manager.stop()
    await task


@virtually
async def test_what_is_added_while_it_ends_does_not_begin(plane: EmbeddedControlPlane, client: Client) -> None:
    """It would outlive `run`."""
    told = Told()
    manager = Manager(client)

    class Adding:
        async def reconcile(self, key: str) -> None:
            told("pass begins")
            await asyncio.sleep(5)
            manager.add(Recording("late", told))
            manager.add(Recording("late other", told, needs_leader=False))
            fed(manager, told, "late key", name="late-fed", needs_leader=False)
            told("pass ends")

    channel: Channel[str] = Channel()
    channel.send("x")
    built: Controller[str] = Controller("adding", Adding())
    built.watch(channel)
    manager.add(built)
    async with running(manager):
        await told.until("pass begins")
    assert told.words == ["pass begins", "pass ends"]


@virtually
async def test_two_controllers_of_one_name_are_refused(plane: EmbeddedControlPlane, client: Client) -> None:
    """Their metrics and logs could not be told apart."""
    manager = Manager(client)
    controller(manager, ConfigMap).complete(Passes(Told()))
    with pytest.raises(ValueError, match='there is a controller "configmap" already; give this one another name='):
        controller(manager, ConfigMap).complete(Passes(Told()))
    controller(manager, ConfigMap, name="another").complete(Passes(Told()))


@virtually
async def test_what_cannot_be_run_is_refused(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client)
    with pytest.raises(TypeError, match="cannot run 3: expected a controller, an object with run"):
        manager.add(3)  # type: ignore[arg-type]  # that is what is tested
    async with running(manager):
        await manager.elected.wait()


@virtually
async def test_a_manager_runs_once(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client)
    async with running(manager):
        await manager.elected.wait()
        with pytest.raises(RuntimeError, match="was started already, and runs only once"):
            await manager.run()
    with pytest.raises(RuntimeError, match="was started already, and runs only once"):
        await manager.run()


# The end


@virtually
async def test_passes_under_way_finish_and_no_further_ones_begin(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client, grace=30)
    fed(manager, told, "a", "b", "c", seconds=20, workers=2)
    async with running(manager):
        await told.until("a begins", "b begins")
        stopped_at = now()
    assert told.words[:2] == ["a begins", "b begins"]
    assert sorted(told.words[2:]) == ["a is done", "b is done"]
    assert now() == stopped_at + 20


def test_passes_that_outlast_the_grace_time_are_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        told = Told()
        manager = Manager(client, grace=30)
        fed(manager, told, "slow", seconds=3600, name="slow")
        fed(manager, told, "quick", seconds=29, name="quick")
        fed(manager, told, "unelected", seconds=3600, name="unelected", needs_leader=False)
        async with running(manager):
            await told.until("slow begins", "quick begins", "unelected begins")
            stopped_at = now()
        assert sorted(told.words[3:]) == ["quick is done", "slow is cancelled", "unelected is cancelled"]
        assert now() == stopped_at + 30

    with caplog.at_level(logging.WARNING, "kubewright.manager"):
        scenario()
    assert caplog.messages == ["passes are still under way after 30 s; cancelling them"] * 2


@virtually
async def test_without_a_grace_time_passes_end_when_they_end(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client, grace=None)
    fed(manager, told, "long", seconds=1800)
    async with running(manager):
        await told.until("long begins")
    assert told.words == ["long begins", "long is done"]


@virtually
async def test_a_runnable_that_is_called_as_a_controller_ends_at_once(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()

    async def fed_() -> None:
        await Recording("runnable", told).run()

    fed_.__name__ = "fed"
    manager = Manager(client, grace=30)
    fed(manager, told)
    manager.add(fed_)
    async with running(manager):
        await told.until("runnable begins")
        stopped_at = now()
    assert now() == stopped_at


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_run_ends_it_in_the_same_way(times: int) -> None:
    """Twice, because whoever waits for it with a time limit may be cancelled too."""

    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        told = Told()
        manager = Manager(client, election=candidate(client, "a"))
        manager.add(Recording("other", told, needs_leader=False))
        sourced: Controller[str] = Controller("sourced", Passes(told))
        sourced.watch(RecordingSource(told))
        manager.add(sourced)
        controller(manager, ConfigMap).complete(Passes(told))
        fed(manager, told, "x", seconds=20)
        task = asyncio.create_task(manager.run())
        await told.until("x begins")
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(1)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert {"x is done", "other ends", "source ends"} <= set(told.words)
        assert await holder(client) == ""

    scenario()


@virtually
async def test_cancelled_while_it_ends_it_ends_first_and_is_cancelled_then(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    manager = Manager(client)
    fed(manager, told, "x", seconds=20)
    task = asyncio.create_task(manager.run())
    await told.until("x begins")
    manager.stop()
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told.words == ["x begins", "x is done"]


@virtually
async def test_stopped_before_its_start_it_starts_nothing(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client)
    manager.add(Recording("leader", told))
    manager.add(Recording("other", told, needs_leader=False))
    manager.stop()
    await manager.run()
    assert told.words == []


@virtually
async def test_it_can_be_stopped_while_the_server_does_not_answer(plane: EmbeddedControlPlane, client: Client) -> None:
    plane.faults.delay(lambda target: target.resource == "selfsubjectaccessreviews", 3000, times=None)
    manager = Manager(client, permissions=[Permission(Pod, "list")])
    async with running(manager):
        await asyncio.sleep(5)
        stopped_at = now()
    assert now() == stopped_at


@virtually
async def test_what_was_recorded_last_is_written_before_the_end(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client)
    regarding = await client.create(config_map("regarded"))
    recorder = manager.recorder("operator")

    class Last:
        async def reconcile(self, key: str) -> None:
            told("begins")
            await asyncio.sleep(5)
            recorder.normal(regarding, "Ending", "the last thing it did")

    channel: Channel[str] = Channel()
    channel.send("x")
    built: Controller[str] = Controller("last", Last())
    built.watch(channel)
    manager.add(built)
    # The last one is under way when everything else has ended.
    plane.faults.delay(lambda target: target.resource == "events", 1.0)
    async with running(manager):
        await told.until("begins")
    assert [event.note async for event in client.list(Event, namespace="default")] == ["the last thing it did"]


# Leading


@virtually
async def test_what_needs_no_leader_runs_without_the_lease(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    manager = Manager(client, election=candidate(client, "a"))
    manager.add(Recording("other", told, needs_leader=False))
    manager.add(Recording("leader", told))
    fed(manager, told, "unelected", name="unelected", needs_leader=False)
    fed(manager, told, "elected", name="elected")
    async with another_leader(client), running(manager):
        await told.until("other begins", "unelected is done")
        await asyncio.sleep(600)
        assert sorted(told.words) == ["other begins", "unelected begins", "unelected is done"]


@virtually
async def test_a_standby_is_warm_and_its_first_passes_come_at_once(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    for number in range(5):
        await client.create(config_map(f"object-{number}"))
    manager = Manager(client, election=candidate(client, "a"))
    elected_at: list[float] = []

    async def note() -> None:
        elected_at.append(now())

    manager.add(note)
    built = controller(manager, ConfigMap, namespace="default").complete(Passes(told))

    def reads() -> int:
        return sum(event.resource == "configmaps" for event in plane.audit.events)

    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await eventually(lambda: sum(built.queue.depth().values()) == 5)
        assert manager.ready.failing() == {}
        assert told.words == []
        asked = reads()
    await told.until(*(f"object-{number} is done" for number in range(5)))
    assert elected_at == [now()]
    assert reads() == asked
    manager.stop()
    await task


@virtually
async def test_a_cold_standby_watches_nothing_until_it_leads_and_is_ready_all_the_same(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """A roll-out waits for the new pod to be ready before it ends the old one, which leads."""
    told = Told()
    await client.create(config_map("object"))
    manager = Manager(client, election=candidate(client, "a"), warm_standby=False)
    built = controller(manager, ConfigMap, namespace="default").complete(Passes(told))
    async with another_leader(client):
        task = asyncio.create_task(manager.run())
        await asyncio.sleep(60)
        assert built.queue.depth().get(-100, 0) == 0
        assert manager.cache.informers() == []
        assert manager.ready.failing() == {}
    await told.until("object is done")
    assert manager.ready.failing() == {}
    manager.stop()
    await task


@virtually
async def test_one_manager_hands_over_to_the_other_within_three_seconds(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    await client.create(config_map("object"))
    managers = [Manager(client, election=candidate(client, identity)) for identity in ("a", "b")]

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        async def reconcile(self, request: Request) -> None:
            told(f"{self.name} begins")
            await asyncio.sleep(1)
            told(f"{self.name} is done")

    for name, manager in zip(("a", "b"), managers, strict=True):
        controller(manager, ConfigMap, namespace="default").complete(Noted(name))
    async with running(managers[0]):
        await told.until("a begins")
        task = asyncio.create_task(managers[1].run())
        await told.until("a is done")
        # Long enough for the standby to be between any two of its tries.
        await asyncio.sleep(60)
        stopped_at = now()
    await told.until("b begins")
    assert now() - stopped_at < 3
    assert told.words == ["a begins", "a is done", "b begins"]
    managers[1].stop()
    await task


async def test_one_manager_hands_over_to_the_other_on_every_control_plane(
    control_plane: ControlPlane, admin: Client, own_namespace: str
) -> None:
    """With a lease of a minute, so that waiting for its end is not what this succeeds by."""
    told = Told()
    await admin.create(config_map("object", own_namespace))

    def new(identity: str) -> Manager:
        election = LeaderElection(
            admin,
            LEASE,
            namespace=own_namespace,
            identity=identity,
            lease_duration=60,
            renew_deadline=40,
            retry_period=1,
        )
        manager = Manager(admin, namespaces=[own_namespace], election=election)

        class Noted:
            async def reconcile(self, request: Request) -> None:
                if request.name == "object":
                    told(f"{identity} reconciles")

        controller(manager, ConfigMap).complete(Noted())
        return manager

    first, second = new("a"), new("b")
    async with asyncio.timeout(30):
        async with running(first):
            await told.until("a reconciles")
            task = asyncio.create_task(second.run())
            await eventually(lambda: second.ready.failing() == {})
        await told.until("b reconciles")
        second.stop()
        await task
    lease = await admin.get(Lease, LEASE, namespace=own_namespace)
    assert (lease.spec.holder_identity or "", lease.spec.lease_transitions) == ("", 1)


def is_of_leases(target: Target) -> bool:
    return target.resource == "leases"


class Timed:
    """A reconciler whose passes do not end by themselves, and that notes how long before the deadline they did."""

    def __init__(self, told: Told, election: LeaderElection) -> None:
        self.told = told
        self.election = election
        self.left: list[float] = []

    async def reconcile(self, key: str) -> None:
        self.told("pass begins")
        try:
            await asyncio.sleep(1000)
        finally:
            assert self.election.hard_deadline is not None
            self.left.append(self.election.hard_deadline - now())


@virtually
async def test_when_the_lease_is_lost_the_leaders_work_ends_in_time_and_run_raises_it(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    election = candidate(client, "a")
    manager = Manager(client, election=election, grace=100)
    timed = Timed(told, election)
    channel: Channel[str] = Channel()
    channel.send("x")
    built: Controller[str] = Controller("timed", timed)
    built.watch(channel)
    manager.add(built)
    manager.add(Recording("leader", told))
    manager.add(Recording("other", told, needs_leader=False))
    fed(manager, told, "unelected", name="unelected", seconds=30, needs_leader=False)
    task = asyncio.create_task(manager.run())
    await told.until("pass begins", "leader begins", "unelected begins")
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="could not be renewed for 10 s") as lost:
        await task
    assert lost.value.is_work_over
    assert len(timed.left) == 1
    assert timed.left[0] > 0
    # What needs no lease has its grace time as ever.
    assert set(told.words[3:]) >= {"leader ends", "other ends", "unelected is done"}
    assert not manager.elected.is_set()


@virtually
async def test_when_the_lease_is_lost_while_passes_finish_they_end_in_time_too(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    election = candidate(client, "a")
    manager = Manager(client, election=election, grace=100)
    timed = Timed(told, election)
    channel: Channel[str] = Channel()
    channel.send("x")
    built: Controller[str] = Controller("timed", timed)
    built.watch(channel)
    manager.add(built)
    async with running(manager):
        await told.until("pass begins")
        plane.faults.fail(is_of_leases, code=500, times=None)
    assert len(timed.left) == 1
    assert timed.left[0] > 0


@virtually
async def test_work_that_does_not_end_in_time_is_told_as_such(plane: EmbeddedControlPlane, client: Client) -> None:
    told = Told()
    is_released = asyncio.Event()
    manager = Manager(client, election=candidate(client, "a"))

    async def stubborn() -> None:
        told("begins")
        while not is_released.is_set():
            try:
                await is_released.wait()
            except asyncio.CancelledError:
                told("is told")

    manager.add(stubborn)
    task = asyncio.create_task(manager.run())
    await told.until("begins")
    plane.faults.fail(is_of_leases, code=500, times=None)
    with pytest.raises(LeadershipLost, match="this process has to exit now") as lost:
        await task
    assert not lost.value.is_work_over
    is_released.set()
    await asyncio.sleep(1)


@virtually
async def test_there_is_no_deadline_once_the_leaders_work_has_ended(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    """A server that is slow in taking the lease back is no reason to strike a process that does nothing any more."""
    election = candidate(client, "a")
    manager = Manager(client, election=election)
    slow = asyncio.Event()
    task = asyncio.create_task(manager.run())
    await manager.elected.wait()
    deadlines = [election.hard_deadline]
    plane.faults.delay(lambda target: is_of_leases(target) and target.verb == "update", slow, times=None)
    manager.stop()
    await asyncio.sleep(1)
    assert not task.done()
    deadlines.append(election.hard_deadline)
    slow.set()
    await task
    assert [deadline is not None for deadline in deadlines] == [True, False]


# Readiness and permissions


@virtually
async def test_readiness_names_a_kind_that_is_not_installed_and_comes_by_itself(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    manager = Manager(client, health_address="127.0.0.1:0")
    controller(manager, Gadget).owns(ConfigMap).complete(Passes(told))
    async with running(manager):
        await asyncio.sleep(60)
        status, body = await get(manager.ports["health"], "/readyz")
        assert status == 500
        assert "[-]controllers failed: gadget: gadgets.example.com is not installed" in body
        assert (await get(manager.ports["health"], "/healthz"))[0] == 200
        await client.create(from_json(CustomResourceDefinition, crd_of(Gadget)))
        await eventually(lambda: manager.ready.failing() == {})
        assert await get(manager.ports["health"], "/readyz") == (200, "ok")
        await client.create(Gadget(metadata=ObjectMeta(name="mine", namespace="default"), spec=GadgetSpec()))
        await told.until("mine is done")


@virtually
async def test_readiness_names_a_permission_that_is_missing_and_comes_by_itself(
    plane: EmbeddedControlPlane, client: Client
) -> None:
    told = Told()
    await client.create(config_map("object"))
    async with plane.client(plane.add_user("operator")) as restricted:
        manager = Manager(restricted, preflight=False)
        controller(manager, ConfigMap).complete(Passes(told))
        async with running(manager):
            await asyncio.sleep(60)
            (problem,) = manager.ready.failing().values()
            assert problem.startswith("configmap: ")
            assert 'User "operator" cannot' in problem
            assert 'resource "configmaps"' in problem
            await may(
                client, "operator", PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list", "watch"])
            )
            await told.until("object is done")
            assert manager.ready.failing() == {}


async def test_all_permissions_that_are_missing_are_listed_before_anything_begins(
    control_plane: ControlPlane, admin: Client, own_namespace: str
) -> None:
    told = Told()
    user = own_namespace
    await may(admin, user, PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list"]))
    async with control_plane.client(control_plane.add_user(user)) as client:
        manager = Manager(client, permissions=[Permission(Secret, "get", namespace=own_namespace)])
        controller(manager, ConfigMap).owns(Pod).complete(Passes(told))
        manager.add(Recording("other", told, needs_leader=False))
        with pytest.raises(PermissionsMissing) as raised:
            await asyncio.wait_for(manager.run(), 30)
    assert str(raised.value).splitlines() == [
        f'reading secrets is not permitted: User "{user}" cannot get resource "secrets" in API group "" '
        f'in the namespace "{own_namespace}"',
        f'watching configmaps is not permitted: User "{user}" cannot watch resource "configmaps" in API group "" '
        "at the cluster scope",
        f'listing and watching pods is not permitted: User "{user}" cannot list, watch resource "pods" in '
        'API group "" at the cluster scope',
        f'  add to your operator:  permissions=[Permission(Secret, "get", namespace="{own_namespace}"), '
        'Permission(ConfigMap, "watch"), Permission(Pod, "list", "watch")]   or run: kubewright generate rbac',
    ]
    assert told.words == []


@virtually
async def test_permissions_are_asked_for_where_the_watches_are(plane: EmbeddedControlPlane, client: Client) -> None:
    """Roles in the namespaces that are watched are enough, and kinds that are in no namespace need a cluster role."""
    told = Told()
    for namespace in ("shop", "stock"):
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
    await client.create(config_map("object", "shop"))
    await may(
        client,
        "operator",
        PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["list", "watch"]),
        namespace="shop",
    )
    await may(
        client,
        "operator",
        PolicyRule(api_groups=[""], resources=["pods"], verbs=["list", "watch"]),
        namespace="stock",
    )
    await may(client, "operator", PolicyRule(api_groups=[""], resources=["nodes"], verbs=["list", "watch"]))
    async with plane.client(plane.add_user("operator")) as restricted:
        manager = Manager(restricted, namespaces=["shop"])
        controller(manager, ConfigMap).complete(Passes(told))
        controller(manager, Pod, namespace="stock").complete(Passes(told))
        controller(manager, Node).complete(Passes(told))
        async with running(manager):
            await told.until("object is done")
            await eventually(lambda: manager.ready.failing() == {})
        # And those that are not enough are found.
        manager = Manager(restricted, namespaces=["shop", "stock"])
        controller(manager, ConfigMap).complete(Passes(told))
        with pytest.raises(PermissionsMissing, match='resource "configmaps" in API group "" in the namespace "stock"'):
            await manager.run()


@virtually
async def test_nothing_is_asked_without_preflight(plane: EmbeddedControlPlane, client: Client) -> None:
    manager = Manager(client, preflight=False, permissions=[Permission(Pod, "list")])
    async with running(manager):
        await manager.elected.wait()
    assert [event.resource for event in plane.audit.events if "reviews" in event.resource] == []


# What it leaves behind, and what others see of it


async def test_the_metrics_of_a_run_have_the_names_that_dashboards_know(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    told = Told()
    async with embedded_control_plane.client() as client:
        # The control plane's own controllers put one into each namespace.
        await client.wait_for(ConfigMap, exists, name="kube-root-ca.crt", namespace="default", timeout=30)
        await client.create(config_map("object"))
        manager = Manager(client, metrics_address="127.0.0.1:0", election=candidate(client, "a"))
        controller(manager, ConfigMap, namespace="default", workers=3).complete(Passes(told))
        async with running(manager):
            objects = len([each async for each in client.list(ConfigMap, namespace="default")])
            await told.until("object is done")
            await eventually(lambda: sum(word.endswith("is done") for word in told.words) == objects)
            status, text = await get(manager.ports["metrics"], "/metrics")
    assert status == 200
    families = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert families >= {
        "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "leader_election_master_status",
        "rest_client_requests_total",
        "workqueue_adds_total",
        "workqueue_depth",
        "workqueue_longest_running_processor_seconds",
        "workqueue_queue_duration_seconds",
        "workqueue_retries_total",
        "workqueue_unfinished_work_seconds",
        "workqueue_work_duration_seconds",
        "kubewright_cache_objects",
        "kubewright_cache_bytes",
        "kubewright_cache_lag_seconds",
        "kubewright_cache_relists_total",
        "kubewright_cache_watch_restarts_total",
    }
    lines = text.splitlines()
    assert 'controller_runtime_max_concurrent_reconciles{controller="configmap"} 3' in lines
    assert 'leader_election_master_status{name="operator"} 1' in lines
    done = len([words for words in told.words if words.endswith("is done")])
    assert f'controller_runtime_reconcile_total{{controller="configmap",result="success"}} {done}' in lines
    assert f'kubewright_cache_objects{{resource="configmaps",scope="namespace default"}} {objects}' in lines


@asynccontextmanager
async def two_planes() -> AsyncIterator[tuple[Client, Client]]:
    async with (
        ControlPlane.embedded(controllers=()) as one,
        ControlPlane.embedded(controllers=()) as two,
        one.client() as client_one,
        two.client() as client_two,
    ):
        yield client_one, client_two


async def test_two_managers_in_one_process_share_nothing() -> None:
    """The same names on both sides, and what one does or ends is nothing to the other."""
    async with two_planes() as (client_one, client_two):
        told_one, told_two = Told(), Told()
        addresses = {"health_address": "127.0.0.1:0", "metrics_address": "127.0.0.1:0"}
        first = Manager(client_one, election=candidate(client_one, "same"), **addresses)  # type: ignore[arg-type]  # only addresses
        second = Manager(client_two, election=candidate(client_two, "same"), **addresses)  # type: ignore[arg-type]  # only addresses
        controller(first, ConfigMap).complete(Passes(told_one))
        controller(second, ConfigMap).complete(Passes(told_two))
        second.add(Recording("leader", told_two))
        async with running(second):
            async with running(first):
                await client_one.create(config_map("of-one"))
                await client_two.create(config_map("of-two"))
                await told_one.until("of-one is done")
                await told_two.until("of-two is done", "leader begins")
                assert first.ports["health"] != second.ports["health"]
                assert first.elected.is_set()
            # The first has ended; the second has not noticed.
            await client_two.create(config_map("later"))
            await told_two.until("later is done")
            assert second.elected.is_set()
            assert (await get(second.ports["health"], "/readyz"))[0] == 200
        assert "of-two is done" not in told_one.words
        assert "of-one is done" not in told_two.words


def open_files() -> set[str]:
    found = set()
    for descriptor in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names are all there is
        try:
            found.add(f"{descriptor} {os.readlink(f'/proc/self/fd/{descriptor}')}")  # noqa: PTH115  # as above
        except FileNotFoundError:
            continue  # that of the listing itself
    return found


async def test_no_task_no_socket_and_no_thread_is_left_after_run(
    real_control_plane: ControlPlane, namespace: str
) -> None:
    """On a server whose own tasks and sockets are not in this process."""
    told = Told()
    loop = asyncio.get_running_loop()

    class Blocking:
        def reconcile(self, request: Request) -> None:
            loop.call_soon_threadsafe(told, f"{request.name} is done")

    async with real_control_plane.client() as admin:
        await admin.create(config_map("object", namespace))
    tasks, threads, files = asyncio.all_tasks(), set(threading.enumerate()), open_files()
    async with real_control_plane.client() as client:
        manager = Manager(
            client,
            namespaces=[namespace],
            election=LeaderElection(client, LEASE, namespace=namespace),
            health_address="127.0.0.1:0",
            metrics_address="127.0.0.1:0",
            debug_address="127.0.0.1:0",
        )
        controller(manager, ConfigMap, workers=2).owns(Pod).complete(Blocking())
        manager.add(Recording("leader", told))
        async with running(manager):
            await told.until("leader begins", "object is done")
            # A client that keeps its connection is no reason to stay.
            reader, writer = await asyncio.open_connection("127.0.0.1", manager.ports["health"])
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()
    assert {task.get_name() for task in asyncio.all_tasks() - tasks} == set()
    # Idle threads of a pool end when they notice that it is over. Those of the event loop are its own.
    await eventually(lambda: not {thread for thread in threading.enumerate() if "asyncio" not in thread.name} - threads)
    await eventually(lambda: not {file for file in open_files() - files if "socket" in file})


def test_the_fence_goes_by_the_right_clock_also_in_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By that of its thread. If it went by such a loop's, it would end the process that runs the tests."""
    deadlines: list[Callable[[], float | None]] = []

    @contextmanager
    def noted(deadline: Callable[[], float | None]) -> Iterator[None]:
        deadlines.append(deadline)
        yield

    monkeypatch.setattr("kubewright.manager.manager.fenced", noted)

    @virtually
    async def scenario(plane: EmbeddedControlPlane, client: Client) -> None:
        manager = Manager(client, election=candidate(client, "a"))
        async with running(manager):
            await manager.elected.wait()
            deadline = deadlines[0]()
            assert deadline is not None
            assert 0 < deadline - time.monotonic() <= 15
        assert deadlines[0]() is None

    scenario()
