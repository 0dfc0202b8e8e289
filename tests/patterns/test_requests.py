from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from kubewright import (
    CachedClient,
    Client,
    Conflict,
    ControlPlane,
    Forbidden,
    Manager,
    Model,
    ObjectMeta,
    Recorder,
    Resource,
    TerminalError,
    controller_for,
    now,
    resource,
)
from kubewright.api.core.v1 import ConfigMap
from kubewright.client.errors import ServerTimeout, Status
from kubewright.client.wait import Field
from kubewright.patterns import FileAudit, NotYet, Permanent, RequestReconciler, RequestStatus
from kubewright.patterns.audit import AuditRecord, AuditSink
from kubewright.testing import Install, RecordedEvents, Running, count_requests, run_virtual, settled


class ErrandSpec(Model):
    what: str = "Fetch"
    user: str = ""


@resource("patterns.kubewright.test/v1")
class Errand(Resource[ErrandSpec, RequestStatus]):
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

    def __init__(self, client: CachedClient, events: Recorder, audit: AuditSink | None = None) -> None:
        super().__init__(client, events, audit=audit, identity="test")
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
    acting: Callable[[Errand], Awaitable[str]] = done, workers: int = 4, made: type[ErrandReconciler] = ErrandReconciler
) -> AsyncIterator[World]:
    async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
        manager = Manager(admin)
        events, records = RecordedEvents(), Records()
        reconciler = made(manager.client, events, records)
        reconciler.acting = acting
        controller_for(manager, Errand, workers=workers).source(reconciler.turns).complete(reconciler)
        async with manager.running():
            yield World(admin, reconciler, events, records)


# On both control planes


@pytest.fixture
async def reconciler(admin: Client, namespace: str, install: Install) -> ErrandReconciler:
    """Reads from the server: nothing is watched."""
    await install(Errand)
    return ErrandReconciler(Manager(admin).client, RecordedEvents(), Records())


async def test_item_68_phases_go_from_pending_through_processing_to_completed(
    admin: Client, namespace: str, install: Install, running: Running
) -> None:
    await install(Errand)
    manager = Manager(admin, namespaces=[namespace])
    records = Records()
    reconciler = ErrandReconciler(manager.client, RecordedEvents(), records)
    controller_for(manager, Errand).complete(reconciler)
    async with running(manager):
        created = await admin.create(errand(namespace=namespace))
        ended = await admin.wait_for(created, Field("status.phase").equals("Completed"), timeout=30)
        await settled(manager, quiet=0.2)
    assert ended is not None
    assert records.phases == [("Pending", "Processing"), ("Processing", "Completed")]
    assert (ended.status.message, ended.status.attempts) == ("done", 1)
    assert ended.status.start_time is not None
    assert ended.status.completion_time is not None
    assert ended.status.completion_time >= ended.status.start_time
    assert reconciler.acted == ["one"]


async def test_item_69_a_request_is_claimed_before_anything_is_done(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    seen = []

    async def look(request: Errand) -> str:
        seen.append((await admin.get(request)).status.phase)
        return "done"

    reconciler.acting = look
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    assert seen == ["Processing"]


class Stale(CachedClient):
    """Reads one object as it was long ago."""

    old: Errand

    async def find(self, *args: object, **options: object) -> object:  # type: ignore[override]  # one object only
        return self.old if "consistency" not in options else await Client.find(self, self.old)


async def test_a_request_that_another_process_has_claimed_is_not_started(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    created = await admin.create(errand(namespace=namespace))
    stale = Stale(admin, Manager(admin).cache)
    stale.old = await admin.get(created)
    there = await admin.get(created)
    there.status.phase = "Processing"
    await admin.status.patch(there)
    late = ErrandReconciler(stale, RecordedEvents(), Records())
    with pytest.raises(Conflict):
        await late.reconcile(created.key)
    assert late.acted == []


async def test_item_70_a_finished_request_is_never_run_again(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    for phase in ("Completed", "Failed"):
        created = await admin.create(errand(phase.lower(), namespace))
        reconciler.acting = done if phase == "Completed" else failing(Permanent("no"))
        await reconciler.reconcile(created.key)
        ended = await admin.get(created)
        assert ended.status.phase == phase
        ended.spec.what = "Another"
        await admin.patch(ended)
        reconciler.acted.clear()
        with count_requests(admin) as requests:
            result = await reconciler.reconcile(created.key)
        assert (reconciler.acted, requests.writes) == ([], 0)
        assert result is not None
        assert result.delay > 0


async def test_item_78_a_permanent_error_fails_the_request_and_is_no_error_of_the_reconcile(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    refused = Forbidden(Status(code=403, reason="Forbidden", message="no"), "create Role a/b")
    for name, error, message in (
        ("permanent", Permanent("no such action"), "no such action"),
        ("refused", refused, "create Role a/b: no"),
    ):
        created = await admin.create(errand(name, namespace))
        reconciler.acting = failing(error)
        await reconciler.reconcile(created.key)
        status = (await admin.get(created)).status
        assert (status.phase, status.message) == ("Failed", message)
        assert status.completion_time is not None


async def test_item_88_a_foreign_update_between_acting_and_writing_does_not_lose_the_result(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def interrupted(request: Errand) -> str:
        there = await admin.get(request)
        there.metadata.labels["foreign"] = "yes"
        await admin.patch(there)
        return "done"

    reconciler.acting = interrupted
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    ended = await admin.get(created)
    assert (ended.status.phase, ended.metadata.labels) == ("Completed", {"foreign": "yes"})


async def test_an_end_that_another_process_has_written_stays(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def overtaken(request: Errand) -> str:
        there = await admin.get(request)
        there.status.phase, there.status.message = "Failed", "by another"
        await admin.status.patch(there)
        return "done"

    reconciler.acting = overtaken
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    assert (await admin.get(created)).status.message == "by another"
    assert isinstance(reconciler.events, RecordedEvents)
    assert reconciler.events.calls == []


async def test_a_request_that_is_deleted_while_it_is_acted_upon_is_no_error(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def vanish(request: Errand) -> str:
        await admin.delete(request)
        return "done"

    reconciler.acting = vanish
    created = await admin.create(errand(namespace=namespace))
    assert await reconciler.reconcile(created.key) is None


async def test_a_permanent_error_about_a_request_that_is_gone_is_no_error(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def vanish(request: Errand) -> str:
        await admin.delete(request)
        raise Permanent("no such user")

    reconciler.acting = vanish
    created = await admin.create(errand(namespace=namespace))
    assert await reconciler.reconcile(created.key) is None


async def test_an_error_that_is_not_retried_fails_the_request(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    """It would stay in Processing for ever: nothing reconciles it again, not even to let it expire."""
    reconciler.acting = failing(TerminalError("no such action"))
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    status = (await admin.get(created)).status
    assert (status.phase, status.message) == ("Failed", "no such action")


async def test_what_is_waited_for_is_not_written_into_a_request_that_another_process_has_finished(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def overtaken(request: Errand) -> str:
        there = await admin.get(request)
        there.status.phase, there.status.message = "Completed", "by another"
        await admin.status.patch(there)
        raise NotYet("busy")

    reconciler.acting = overtaken
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    status = (await admin.get(created)).status
    assert (status.phase, status.message) == ("Completed", "by another")


async def test_nothing_is_written_into_a_request_that_has_taken_the_name_of_the_one_that_was_acted_upon(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def replace(request: Errand) -> str:
        await admin.delete(request)
        await admin.create(errand(namespace=namespace))
        if len(reconciler.acted) == 1:
            raise NotYet("busy")
        return "done"

    reconciler.acting = replace
    created = await admin.create(errand(namespace=namespace))
    for _ in range(2):
        await reconciler.reconcile(created.key)
        another = await admin.get(created)
        assert another.metadata.uid != created.metadata.uid
        assert another.status == created.status


async def test_what_is_waited_for_is_written_although_the_request_was_changed_meanwhile(
    admin: Client, namespace: str, reconciler: ErrandReconciler
) -> None:
    async def interrupted(request: Errand) -> str:
        there = await admin.get(request)
        there.metadata.labels["foreign"] = "yes"
        await admin.patch(there)
        raise NotYet("busy")

    reconciler.acting = interrupted
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    there = await admin.get(created)
    assert (there.status.message, there.metadata.labels) == ("busy", {"foreign": "yes"})


# In virtual time


def test_an_act_that_still_runs_when_its_request_expires_is_cancelled() -> None:
    async def hang(request: Errand) -> str:
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        async with world(hang) as it:
            began = now()
            await it.admin.create(errand(user="bob"))
            await asyncio.sleep(5)
            it.reconciler.acting = done
            await it.admin.create(errand("next", user="bob"))
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=3600)
            assert timedelta(minutes=10) <= now() - began <= timedelta(minutes=10, seconds=2)
            assert (await it.status()).message == "expired after 600 s"
            await asyncio.sleep(1)
            assert await it.phase("next") == "Completed"

    run_virtual(main)


def test_a_retention_of_nothing_deletes_at_once() -> None:
    class Fleeting(ErrandReconciler):
        retention = timedelta(0)

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            records = Records()
            await Fleeting(Manager(admin).client, RecordedEvents(), records).reconcile(created.key)
            assert await admin.find(created) is None
            assert records.phases == [("Pending", "Processing"), ("Processing", "Completed")]

    run_virtual(main)


class Overlapping(CachedClient):
    """Two lists that run at the same time end at the same time."""

    barrier: asyncio.Barrier

    def list(self, *args: object, **options: object) -> object:  # type: ignore[override]  # of one kind only
        found = Client.list(self, Errand, namespace="default")

        async def both() -> list[Errand]:
            objects = [each async for each in found]
            await self.barrier.wait()
            return [each for each in objects if each.metadata.uid == self.seen]

        return both()

    seen = ""


def test_requests_that_do_not_see_each_other_yet_run_one_at_a_time() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            client = Overlapping(admin, Manager(admin).cache)
            client.barrier = asyncio.Barrier(2)
            reconciler = ErrandReconciler(client, RecordedEvents(), Records())
            running = 0

            async def act(request: Errand) -> str:
                nonlocal running
                running += 1
                assert running == 1
                await asyncio.sleep(1)
                running -= 1
                return "done"

            reconciler.acting = act
            keys = [(await admin.create(errand(name, user="bob"))).key for name in ("a", "b")]
            await asyncio.gather(*(reconciler.reconcile(key) for key in keys))
            phases = sorted([(await admin.get(Errand, key)).status.phase for key in keys])
            assert phases == ["Completed", "Pending"]

    run_virtual(main)


def test_a_request_is_woken_when_the_one_before_it_is_deleted_or_expires() -> None:
    async def main() -> None:
        async with world(failing(*[NotYet("busy", after=500)] * 9)) as it:
            for name in ("first", "second", "third"):
                await it.admin.create(errand(name, user="bob"))
                await asyncio.sleep(1)
            await it.admin.delete(Errand, "first")
            await asyncio.sleep(0.5)
            assert [await it.phase("second"), await it.phase("third")] == ["Processing", "Pending"]
            await it.admin.wait_for(Errand, "second", Field("status.phase").equals("Failed"), timeout=3600)
            await asyncio.sleep(0.5)
            assert await it.phase("third") == "Processing"

    run_virtual(main)


def test_item_77_a_temporary_error_is_retried_after_thirty_seconds() -> None:
    timeout = ServerTimeout(Status(code=504, reason="Timeout", message="slow"), "create Role a/b")

    async def main() -> None:
        async with world(failing(timeout, ConnectionResetError("reset"))) as it:
            began = now()
            await it.admin.create(errand())
            await asyncio.sleep(1)
            assert await it.phase() == "Processing"
            assert (await it.status()).message == "create Role a/b: slow"
            await asyncio.sleep(30)
            assert (await it.status()).message == "reset"
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Completed"), timeout=60)
            assert timedelta(seconds=60) <= now() - began <= timedelta(seconds=62)
            status = await it.status()
            assert (status.attempts, status.message) == (3, "done")
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Completed")]

    run_virtual(main)


def test_a_wait_is_as_long_as_it_says() -> None:
    async def main() -> None:
        async with world(failing(NotYet("busy", after=5))) as it:
            await it.admin.create(errand())
            await asyncio.sleep(4)
            assert (await it.phase(), (await it.status()).message) == ("Processing", "busy")
            await asyncio.sleep(2)
            assert await it.phase() == "Completed"

    run_virtual(main)


def test_another_exception_is_retried_with_back_off_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with world(failing(KeyError("bug"))) as it:
            await it.admin.create(errand())
            await asyncio.sleep(1)
            assert await it.phase() == "Completed"

    run_virtual(main)
    assert "KeyError" in caplog.text


def test_an_unfinished_request_expires() -> None:
    async def main() -> None:
        async with world(failing(*[NotYet("busy", after=60)] * 99)) as it:
            began = now()
            await it.admin.create(errand())
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=3600)
            assert timedelta(minutes=10) <= now() - began <= timedelta(minutes=10, seconds=2)
            assert (await it.status()).message == "expired after 600 s: busy"
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Failed")]
            assert [(call.reason, call.note) for call in it.events.warnings] == [
                ("Failed", "expired after 600 s: busy")
            ]

    run_virtual(main)


def test_item_81_and_83_finished_requests_are_deleted_an_hour_after_their_completion() -> None:
    async def main() -> None:
        async with world(failing(Permanent("no"))) as it:
            await it.admin.create(errand("failed"))
            await asyncio.sleep(60)
            await it.admin.create(errand("completed"))
            await asyncio.sleep(1)
            assert [await it.phase("failed"), await it.phase("completed")] == ["Failed", "Completed"]
            await asyncio.sleep(3600 - 61 - 2)
            assert await it.phase("failed") == "Failed"
            await asyncio.sleep(4)
            assert [await it.phase("failed"), await it.phase("completed")] == ["gone", "Completed"]
            await asyncio.sleep(60)
            assert await it.phase("completed") == "gone"

    run_virtual(main)


def test_item_82_the_time_to_live_is_that_since_completion_after_a_restart_too() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            ended = await admin.create(errand())
            ended.status.phase, ended.status.completion_time = "Completed", now() - timedelta(minutes=59)
            await admin.status.patch(ended)
            reconciler = ErrandReconciler(Manager(admin).client, RecordedEvents(), Records())
            result = await reconciler.reconcile(ended.key)
            assert result is not None
            assert 58 <= result.delay <= 60
            await asyncio.sleep(result.delay)
            assert await reconciler.reconcile(ended.key) is None
            assert await admin.find(ended) is None

    run_virtual(main)


def test_a_finished_request_of_unknown_completion_counts_from_its_creation() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            ended = await admin.create(errand())
            ended.status.phase = "Failed"
            await admin.status.patch(ended)
            reconciler = ErrandReconciler(Manager(admin).client, RecordedEvents(), Records())
            await asyncio.sleep(1800)
            result = await reconciler.reconcile(ended.key)
            assert result is not None
            assert 1798 <= result.delay <= 1801

    run_virtual(main)


def test_item_80_there_is_one_event_for_the_end_of_a_request() -> None:
    async def main() -> None:
        async with world(failing(ConnectionResetError("reset"))) as it:
            await it.admin.create(errand())
            await asyncio.sleep(100)
            assert [(call.reason, call.note) for call in it.events.calls] == [("Completed", "done")]

    run_virtual(main)


def test_item_86_requests_of_one_key_run_one_at_a_time_the_oldest_first() -> None:
    running: dict[str, int] = {}
    order: list[str] = []

    async def act(request: Errand) -> str:
        user = request.spec.user
        running[user] = running.get(user, 0) + 1
        assert running[user] == 1
        order.append(request.metadata.name)
        await asyncio.sleep(7)
        running[user] -= 1
        return "done"

    async def main() -> None:
        async with world(act) as it:
            names = ["c", "a", "d", "b"]
            for name in names:
                await it.admin.create(errand(name, user="bob"))
                await asyncio.sleep(1)
            await it.admin.create(errand("other", user="eve"))
            await asyncio.sleep(0.5)
            assert await it.phase("other") == "Processing", "another key does not wait"
            await asyncio.sleep(28)
            assert [await it.phase(name) for name in names] == ["Completed"] * 4
            assert [name for name in order if name != "other"] == names

    run_virtual(main)


def test_a_request_whose_key_or_description_cannot_be_found_holds_up_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Strict(ErrandReconciler):
        def serialize_by(self, request: Errand) -> Hashable | None:
            if request.spec.user == "nobody":
                raise KeyError(request.spec.user)
            return "all"

        def describe(self, request: Errand) -> Mapping[str, str]:
            raise KeyError(request.spec.what)

    async def main() -> None:
        async with world(made=Strict) as it:
            await it.admin.create(errand("bad", user="nobody"))
            await asyncio.sleep(1)
            await it.admin.create(errand("good", user="bob"))
            await asyncio.sleep(1)
            assert [await it.phase("bad"), await it.phase("good")] == ["Pending", "Completed"]
            assert it.events.reasons == ["Completed"]
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Completed")]

    run_virtual(main)
    assert "what default/good requests could not be described" in caplog.text


def test_a_request_continues_when_the_one_before_it_is_deleted() -> None:
    async def main() -> None:
        async with world(failing(NotYet("busy", after=500))) as it:
            await it.admin.create(errand("first", user="bob"))
            await asyncio.sleep(1)
            await it.admin.create(errand("second", user="bob"))
            await asyncio.sleep(1)
            assert [await it.phase("first"), await it.phase("second")] == ["Processing", "Pending"]
            await it.admin.delete(Errand, "first")
            await asyncio.sleep(1)
            assert await it.phase("second") == "Completed"

    run_virtual(main)


def test_item_76_a_request_that_was_being_acted_upon_when_the_process_ended_is_acted_upon_again() -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            first = ErrandReconciler(Manager(admin).client, RecordedEvents(), Records())
            first.acting = failing(asyncio.CancelledError())  # type: ignore[arg-type]  # what ends a process raises
            with pytest.raises(asyncio.CancelledError):
                await first.reconcile(created.key)
            assert (await admin.get(created)).status.phase == "Processing"
            records = Records()
            second = ErrandReconciler(Manager(admin).client, RecordedEvents(), records)
            await second.reconcile(created.key)
            ended = await admin.get(created)
            assert (ended.status.phase, ended.status.attempts) == ("Completed", 2)
            assert records.phases == [("Processing", "Completed")]

    run_virtual(main)


# Audit


def test_item_87_a_record_has_creator_action_outcome_and_duration(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    async def slow(request: Errand) -> str:
        await asyncio.sleep(3)
        return "fetched"

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand(user="bob"))
            reconciler = ErrandReconciler(Manager(admin).client, RecordedEvents(), FileAudit(path))
            reconciler.acting = slow
            await reconciler.reconcile(created.key)

    run_virtual(main)
    start, end = (msgspec.json.decode(line) for line in path.read_text().splitlines())
    assert start["phase"] == "Processing"
    assert "seconds" not in start or start["seconds"] is None
    del end["uid"], end["time"]
    assert end == {
        "kind": "Errand",
        "namespace": "default",
        "name": "one",
        "generation": 1,
        "creator": "alice",
        "action": {"action": "Fetch", "user": "bob"},
        "before": "Processing",
        "phase": "Completed",
        "attempt": 1,
        "seconds": 3.0,
        "message": "fetched",
        "controller": "test",
    }


def test_records_go_to_the_log_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kubewright.audit")

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            await ErrandReconciler(Manager(admin).client, RecordedEvents()).reconcile(created.key)

    run_virtual(main)
    lines = [msgspec.json.decode(record.getMessage()) for record in caplog.records if record.name == "kubewright.audit"]
    assert [line["phase"] for line in lines] == ["Processing", "Completed"]


def test_a_sink_that_fails_changes_nothing_for_the_request(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            audit = FileAudit(tmp_path / "missing" / "audit.jsonl")
            await ErrandReconciler(Manager(admin).client, RecordedEvents(), audit).reconcile(created.key)
            assert (await admin.get(created)).status.phase == "Completed"

    run_virtual(main)
    assert "the audit record of default/one could not be written" in caplog.text


def test_a_kind_whose_status_is_not_that_of_a_request_is_refused() -> None:
    class Wrong(RequestReconciler[ConfigMap]):
        async def act(self, request: ConfigMap) -> str:
            return ""

    async def main() -> None:
        async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(ConfigMap(metadata=ObjectMeta(name="one", namespace="default")))
            with pytest.raises(TypeError, match="its status must derive from RequestStatus"):
                await Wrong(Manager(admin).client, RecordedEvents()).reconcile(created.key)

    run_virtual(main)


def test_a_reconciler_without_act_cannot_be_made(admin: Client) -> None:
    class Empty(RequestReconciler[Errand]):
        pass

    with pytest.raises(TypeError, match=r"abstract class Empty .*act"):
        Empty(Manager(admin).client, RecordedEvents())  # type: ignore[abstract]
