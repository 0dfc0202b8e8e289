from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise

import pytest
from tests.patterns.errands import Errand, ErrandReconciler, Records, done, errand, failing, world

from kubewright import (
    CachedClient,
    Client,
    Conflict,
    ControlPlane,
    Forbidden,
    Invalid,
    Manager,
    ObjectMeta,
    TerminalError,
    controller_for,
    now,
)
from kubewright.api.core.v1 import ConfigMap
from kubewright.client.errors import InternalError, ServerTimeout, Status, Unauthorized
from kubewright.client.wait import Field, deleted
from kubewright.patterns import NotYet, Permanent, RequestReconciler
from kubewright.testing import Install, RecordedEvents, Running, count_requests, run_virtual, settled

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


async def test_item_68_the_server_lets_no_request_go_back(admin: Client, namespace: str, install: Install) -> None:
    await install(Errand)
    created = await admin.create(errand(namespace=namespace))
    for phase, is_allowed in (
        ("Processing", True),
        ("Pending", False),
        ("Completed", True),
        ("Processing", False),
        ("Failed", False),
    ):
        there = await admin.get(created)
        there.status.phase = phase  # type: ignore[assignment]  # a text
        if is_allowed:
            await admin.status.patch(there)
            continue
        with pytest.raises(Invalid, match="a phase only goes from Pending to Processing, and on to"):
            await admin.status.patch(there)


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
        there = await admin.patch(there)
        there.status.progress = 7
        await admin.status.patch(there)
        return "done"

    reconciler.acting = interrupted
    created = await admin.create(errand(namespace=namespace))
    await reconciler.reconcile(created.key)
    ended = await admin.get(created)
    assert (ended.status.phase, ended.metadata.labels) == ("Completed", {"foreign": "yes"})
    assert ended.status.progress == 7, "neither is what others report in the status"


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
    await reconciler.reconcile(created.key)
    assert (await admin.get(created)).status.message == "by another"
    assert reconciler.acted == ["one"]


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
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Completed"), timeout=120)
            assert timedelta(seconds=90) <= now() - began <= timedelta(seconds=92)
            status = await it.status()
            assert (status.attempts, status.message) == (3, "done")
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Completed")]

    run_virtual(main)


def test_a_retry_is_never_earlier_than_it_is_to_be() -> None:
    async def main() -> None:
        async with world(failing(ConnectionResetError("reset")), retry=timedelta(minutes=5)) as it:
            await it.admin.create(errand())
            await asyncio.sleep(290)
            assert await it.phase() == "Processing"
            await asyncio.sleep(20)
            assert await it.phase() == "Completed"

    run_virtual(main)


def test_a_request_that_another_writer_has_finished_is_deleted_in_time() -> None:
    async def main() -> None:
        busy = failing(NotYet("busy", after=7200))
        async with world(busy, expiry=timedelta(hours=9), retention=timedelta(minutes=1)) as it:
            created = await it.admin.create(errand())
            await asyncio.sleep(30)
            there = await it.admin.get(created)
            there.status.phase, there.status.completion_time = "Failed", now()
            await it.admin.status.patch(there)
            await asyncio.sleep(50)
            assert await it.phase() == "Failed"
            await asyncio.sleep(20)
            assert await it.phase() == "gone"

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


def test_what_is_cancelled_inside_of_an_act_is_an_error_like_any_other() -> None:
    async def main() -> None:
        cancelled = asyncio.CancelledError()
        async with world(failing(*[cancelled] * 99)) as it:  # type: ignore[arg-type]  # as of a task that was awaited
            await it.admin.create(errand())
            ended = await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=610)
            assert ended is not None
            assert ended.status.message == "expired after 600 s: something that it waited for was cancelled"
            assert ended.status.attempts > 1

    run_virtual(main)


def test_a_request_that_cannot_be_described_is_carried_out_and_recorded(caplog: pytest.LogCaptureFixture) -> None:
    class Careless(ErrandReconciler):
        def describe(self, request: Errand) -> Mapping[str, str]:
            return None if request.metadata.name == "one" else {"action": ["Fetch"]}  # type: ignore[return-value,dict-item]

    async def main() -> None:
        async with world(made=Careless) as it:
            for name in ("one", "two"):
                await it.admin.create(errand(name))
                await it.admin.wait_for(Errand, name, Field("status.phase").equals("Completed"), timeout=60)
            assert [record.action for record in it.records.records] == [{}, {}, *[{"action": "['Fetch']"}] * 2]

    run_virtual(main)
    assert "what default/one requests could not be described" in caplog.text


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


def test_a_request_may_take_and_be_kept_for_ever() -> None:
    async def main() -> None:
        async with world(retention=timedelta.max, expiry=timedelta.max) as it:
            await it.admin.create(errand())
            await asyncio.sleep(10 * 86400)
            assert await it.phase() == "Completed"

    run_virtual(main)


@pytest.mark.parametrize(
    ("said", "message"), [("x" * 3_000_000, "x" * 32765 + "..."), ("file \udcff", "file ?")], ids=["long", "surrogate"]
)
def test_a_request_ends_whatever_is_said_of_it(said: str, message: str) -> None:
    async def main() -> None:
        for acting, phase in ((failing(NotYet(said, after=5)), "Completed"), (failing(Permanent(said)), "Failed")):
            async with world(acting) as it:
                await it.admin.create(errand())
                await asyncio.sleep(1)
                assert (await it.status()).message == message
                await asyncio.sleep(10)
                assert await it.phase() == phase

    run_virtual(main)


def test_item_80_there_is_one_event_for_the_end_of_a_request() -> None:
    async def main() -> None:
        async with world(failing(ConnectionResetError("reset"))) as it:
            await it.admin.create(errand())
            await asyncio.sleep(100)
            assert [(call.reason, call.note) for call in it.events.calls] == [("Completed", "done")]

    run_virtual(main)


def test_item_76_a_request_that_was_being_acted_upon_when_the_process_ended_is_acted_upon_again() -> None:
    async def hang(request: Errand) -> str:
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[Errand], controllers=[]) as plane, plane.client() as admin:
            created = await admin.create(errand())
            first = ErrandReconciler(Manager(admin).client, RecordedEvents(), Records())
            first.acting = hang
            process = asyncio.create_task(first.reconcile(created.key))
            await asyncio.sleep(1)
            process.cancel()
            with pytest.raises(asyncio.CancelledError):
                await process
            assert (await admin.get(created)).status.phase == "Processing"
            records = Records()
            second = ErrandReconciler(Manager(admin).client, RecordedEvents(), records)
            await second.reconcile(created.key)
            ended = await admin.get(created)
            assert (ended.status.phase, ended.status.attempts) == ("Completed", 2)
            assert records.phases == [("Processing", "Processing"), ("Processing", "Completed")]

    run_virtual(main)


def test_times_are_given_to_a_reconciler_or_those_of_its_class() -> None:
    class Hasty(ErrandReconciler):
        expiry = timedelta(seconds=20)

    async def main() -> None:
        async with world(failing(*[NotYet("busy", after=60)] * 99), made=Hasty, retention=timedelta(seconds=30)) as it:
            began = now()
            await it.admin.create(errand())
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=3600)
            assert timedelta(seconds=20) <= now() - began <= timedelta(seconds=22)
            await it.admin.wait_for(Errand, "one", deleted, timeout=3600)
            assert timedelta(seconds=50) <= now() - began <= timedelta(seconds=53)

    run_virtual(main)


@pytest.mark.parametrize(
    ("name", "seconds", "expected"),
    [("retention", -1, "0 or more"), ("expiry", 0, "more than 0"), ("retry", 0, "more than 0")],
)
async def test_times_that_make_no_sense_are_refused(admin: Client, name: str, seconds: int, expected: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is {seconds} s: expected {expected}"):
        ErrandReconciler(Manager(admin).client, RecordedEvents(), None, **{name: timedelta(seconds=seconds)})


def test_retries_are_twice_as_far_apart_each_time_up_to_a_limit() -> None:
    began: list[float] = []

    async def act(request: Errand) -> str:
        began.append(asyncio.get_running_loop().time())
        raise ConnectionResetError("reset")

    async def main() -> None:
        async with world(act) as it:
            await it.admin.create(errand())
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=3600)
            assert (await it.status()).attempts == len(began)

    run_virtual(main)
    pauses = [round(after - before) for before, after in pairwise(began)]
    assert pauses == [30, 60, 120, 120, 120, 120]


def test_what_waits_is_one_attempt_and_is_written_once() -> None:
    async def main() -> None:
        async with world(failing(*[NotYet("busy", after=5)] * 20)) as it:
            await it.admin.create(errand())
            await asyncio.sleep(20)
            with count_requests(it.admin) as requests:
                await asyncio.sleep(60)
            assert requests.writes == 0
            await asyncio.sleep(60)
            status = await it.status()
            assert (status.phase, status.attempts, len(it.reconciler.acted)) == ("Completed", 1, 21)

    run_virtual(main)


def test_errors_of_our_own_credentials_do_not_fail_a_request() -> None:
    refused = Unauthorized(Status(code=401, reason="Unauthorized", message="no"), "create Role a/b")

    async def main() -> None:
        async with world(failing(refused)) as it:
            await it.admin.create(errand())
            await asyncio.sleep(35)
            assert await it.phase() == "Completed"

    run_virtual(main)


def test_a_request_expires_in_time_although_every_attempt_ends_with_an_unexpected_exception() -> None:
    """The back-off of a queue grows up to 1000 s, beyond the time of the request."""

    async def main() -> None:
        async with world(failing(*[KeyError("bug")] * 99)) as it:
            began = now()
            await it.admin.create(errand())
            await it.admin.wait_for(Errand, "one", Field("status.phase").equals("Failed"), timeout=3600)
            assert timedelta(minutes=10) <= now() - began <= timedelta(minutes=10, seconds=2)

    run_virtual(main)


@pytest.mark.parametrize("is_stored", [False, True])
def test_an_outcome_whose_storing_failed_is_stored_later_without_acting_again(is_stored: bool) -> None:
    class Unstable(ErrandReconciler):
        """The server fails when the end of a request is stored for the first time."""

        has_failed = False

        async def _store(self, obj: Errand) -> Errand | None:
            if not self.has_failed:
                self.has_failed = True
                if is_stored:
                    await super()._store(obj)
                raise InternalError(Status(code=500, reason="InternalError", message="etcd"), "patch Errand")
            return await super()._store(obj)

    async def main() -> None:
        async with world(made=Unstable) as it:
            await it.admin.create(errand())
            await asyncio.sleep(5)
            assert await it.phase() == "Completed"
            assert it.reconciler.acted == ["one"]
            assert it.records.phases == [("Pending", "Processing"), ("Processing", "Completed")]
            assert it.events.reasons == ["Completed"]

    run_virtual(main)


def test_a_request_that_another_writer_finishes_is_deleted_in_time_too() -> None:
    async def main() -> None:
        async with world(failing(NotYet("busy", after=500))) as it:
            created = await it.admin.create(errand())
            await asyncio.sleep(1)
            there = await it.admin.get(created)
            there.status.phase, there.status.completion_time = "Failed", now()
            await it.admin.status.patch(there)
            await asyncio.sleep(3595)
            assert await it.phase() == "Failed"
            await asyncio.sleep(10)
            assert await it.phase() == "gone"
            assert (it.events.calls, it.reconciler.acted) == ([], ["one"])

    run_virtual(main)


def test_reasons_of_events_are_those_of_the_class() -> None:
    class Named(ErrandReconciler):
        completed_reason, failed_reason = "OperationCompleted", "OperationFailed"

    async def main() -> None:
        async with world(failing(Permanent("no")), made=Named) as it:
            await it.admin.create(errand("bad"))
            await asyncio.sleep(1)
            await it.admin.create(errand("good"))
            await asyncio.sleep(1)
            assert it.events.reasons == ["OperationFailed", "OperationCompleted"]

    run_virtual(main)


def test_nothing_is_kept_of_requests_that_are_finished_or_gone() -> None:
    async def main() -> None:
        async with world(failing(NotYet("busy", after=500))) as it:
            await it.admin.create(errand("gone", user="bob"))
            await asyncio.sleep(1)
            await it.admin.create(errand("finished", user="bob"))
            await it.admin.delete(Errand, "gone")
            await asyncio.sleep(1)
            assert await it.phase("finished") == "Completed"
            assert (it.reconciler._progress, it.reconciler._running) == ({}, set())

    run_virtual(main)


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
