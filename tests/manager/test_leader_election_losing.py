"""Leaders that die, are cut off, slow or blocked, and servers that stumble: there is never a second leader."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.manager.candidates import NAME, BlockableLoop, Candidate, by, now, started, stored, virtually

from kubewright.api.coordination.v1 import Lease, LeaseSpec
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import MicroTime, micro_now
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager.leader_election import LeaderElection, LeadershipLost


@virtually
async def test_a_leader_that_dies_is_replaced_when_its_lease_is_over(plane: EmbeddedControlPlane) -> None:
    async with plane.client() as client:
        spec = LeaseSpec(holder_identity="dead", lease_duration_seconds=15, renew_time=micro_now(), lease_transitions=3)
        await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace="default"), spec=spec))
        began = now()
        candidate = Candidate(client, "b")
        candidate.start()
        await candidate.leads.wait()
        assert 14.9 < candidate.began - began < 18
        assert (await stored(client)).spec.lease_transitions == 4
        await candidate.stop()


@virtually
async def test_an_isolated_leader_stops_before_another_one_can_lead(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(30)
        plane.faults.drop(by("a"), times=None)
        cut = now()
        lost = await a.lost()
        assert lost.is_work_over
        assert "could not be renewed for 12 s" in str(lost)
        assert "the connection was closed without a response" in str(lost)
        assert a.ended - cut <= 12
        await b.leads.wait()
        assert a.ended < b.began
        assert b.began - cut < 18
        assert not a.election.is_leader


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("begins_after", [0.0, 0.5, 1.0, 1.5, 1.9])
def test_an_outage_of_eight_seconds_does_not_end_leadership(is_silent: bool, begins_after: float) -> None:
    """Whenever it begins between two renewals, and whether requests fail or hang until it is over."""

    @virtually
    async def run(plane: EmbeddedControlPlane) -> None:
        async with started(plane, "a", "b") as (a, b):
            await asyncio.sleep(30 + begins_after)
            is_over = asyncio.Event()
            if is_silent:
                plane.faults.delay(lambda target: target.resource == "leases", is_over, times=None)
            else:
                plane.faults.drop(lambda target: target.resource == "leases", times=None)
            await asyncio.sleep(8)
            plane.faults.clear()
            is_over.set()
            await asyncio.sleep(60)
            assert a.election.is_leader
            assert a.election.statistics.acquisitions == 1
            assert not b.leads.is_set()

    run()


@pytest.mark.parametrize("outage", [12.5, 14.5])
def test_a_lease_that_was_lost_is_released_as_soon_as_the_server_answers(outage: float) -> None:
    """So that no candidate has to wait for its end as well. Its work has ended before."""

    @virtually
    async def run(plane: EmbeddedControlPlane) -> None:
        async with started(plane, "a", "b", lease_duration=60.0, renew_deadline=12.0) as (a, b):
            await asyncio.sleep(30)
            plane.faults.drop(by("a"), times=None)
            await asyncio.sleep(outage)
            plane.faults.clear()
            answers_at = now()
            await a.lost()
            assert now() - answers_at < 1
            await b.leads.wait()
            assert b.began - answers_at < 3
            assert a.ended < b.began

    run()


@pytest.mark.parametrize("answer_after", [4.9, 1000.0])
def test_slow_answers_do_not_let_two_lead(answer_after: float) -> None:
    @virtually
    async def run(plane: EmbeddedControlPlane) -> None:
        async with started(plane, "a", "b") as (a, b):
            await asyncio.sleep(30)
            plane.faults.delay(by("a"), answer_after, times=None)
            if answer_after < 5:
                # Each renewal takes nearly five seconds, and counts from when it was sent.
                await asyncio.sleep(600)
                assert a.election.is_leader
                return
            assert (await a.lost()).is_work_over
            await b.leads.wait()
            assert a.ended < b.began

    run()


@virtually
async def test_work_that_does_not_end_in_time_is_reported_when_another_may_lead(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(30)
        a.is_stubborn = True
        deadline = a.election.hard_deadline
        assert deadline is not None
        plane.faults.drop(by("a"), times=None)
        lost = await a.lost()
        assert not lost.is_work_over
        assert "has to exit" in str(lost)
        assert now() <= deadline + 0.001
        assert not b.leads.is_set()
        a.may_end.set()


@virtually
async def test_the_hard_deadline_is_known_while_cancelled_work_goes_on(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        a.drain = 2.0
        plane.faults.drop(by("a"), times=None)
        await asyncio.sleep(13)
        assert not a.election.is_leader
        assert a.election.hard_deadline is not None
        assert a.election.hard_deadline > now()
        await a.lost()
        assert a.election.hard_deadline is None


@virtually
async def test_the_hard_deadline_counts_from_when_a_renewal_was_sent(plane: EmbeddedControlPlane) -> None:
    """Others may have seen it long before its answer came."""
    async with started(plane, "a") as (a,):
        plane.faults.delay(by("a", "update"), 4.0, times=None)
        before = a.election.statistics.renewals
        while a.election.statistics.renewals < before + 2:
            await asyncio.sleep(0.1)
        assert a.election.hard_deadline is not None
        assert 10 < a.election.hard_deadline - now() <= 11.01


@virtually
async def test_losing_the_lease_ends_a_graceful_stop_early(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(30)
        a.drain = 60.0
        plane.faults.drop(by("a"), times=None)
        # The caller cancelled it, and it has stopped: that is what it gets.
        await a.stop()
        await b.leads.wait()
        assert a.ended < b.began


@virtually
async def test_work_that_fails_when_it_is_cancelled_is_the_cause_of_the_error(plane: EmbeddedControlPlane) -> None:
    async def fail_when_cancelled() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("broken")

    async with plane.client() as client:
        election = LeaderElection(client, NAME, namespace="default", identity="a")
        running = asyncio.create_task(election.run(fail_when_cancelled))
        await asyncio.sleep(1)
        running.cancel()
        with pytest.raises(ValueError, match="broken"):
            await running
        assert (await stored(client)).spec.holder_identity == ""


@virtually
async def test_cancelling_again_does_not_leave_work_behind(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        a.is_stubborn = True
        assert a.task is not None
        for _ in range(3):
            a.task.cancel()
            await asyncio.sleep(1)
            assert not a.task.done()
            assert a.election.is_leader
        a.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await a.task
        assert (await stored(a.client)).spec.holder_identity == ""


@virtually
async def test_failures_that_end_before_the_deadline_are_survived(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        for code in (409, 500, 503, 429, 404):
            plane.faults.fail(by("a"), code=code, times=3)
            await asyncio.sleep(30)
            assert a.election.is_leader, code
            assert a.election.last_error == ""
        plane.faults.drop(by("a"), times=4)
        await asyncio.sleep(30)
        assert a.election.is_leader
        assert not b.leads.is_set()
        assert a.election.statistics.failures > 0


@virtually
async def test_a_renewal_whose_answer_is_lost_does_not_end_leadership(plane: EmbeddedControlPlane) -> None:
    """The server has it, the leader does not know: the next one conflicts and reads first."""
    async with started(plane, "a") as (a,):
        lease = await stored(a.client)
        lease.spec.renew_time = micro_now() + timedelta(seconds=1)
        await a.client.update(lease)
        await asyncio.sleep(5)
        assert a.election.is_leader
        assert a.election.statistics.slow_paths == 1


@virtually
async def test_jumps_of_the_wall_clock_change_nothing(plane: EmbeddedControlPlane) -> None:
    jump = timedelta()

    def skewed() -> MicroTime:
        return micro_now() + jump

    async with plane.client() as client:
        a, b = Candidate(client, "a", now=skewed), Candidate(client, "b", now=skewed)
        a.start()
        await a.leads.wait()
        b.start()
        for days in (-3650, 3650, -1, 1):
            jump = timedelta(days=days)
            await asyncio.sleep(60)
            assert a.election.is_leader
            assert not b.leads.is_set()
        await a.stop()
        await b.leads.wait()
        await b.stop()


@virtually
async def test_a_lease_with_times_of_another_clock_is_not_taken_too_early(plane: EmbeddedControlPlane) -> None:
    """Its renew time is a year old by our clock, but we have just seen it for the first time."""
    async with plane.client() as client:
        old = micro_now() - timedelta(days=365)
        spec = LeaseSpec(holder_identity="go", lease_duration_seconds=15, renew_time=old, acquire_time=old)
        await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace="default"), spec=spec))
        candidate = Candidate(client, "b")
        candidate.start()
        for _ in range(6):
            await asyncio.sleep(10)
            assert not candidate.leads.is_set()
            lease = await stored(client)
            assert lease.spec.renew_time is not None
            lease.spec.renew_time += timedelta(seconds=10)
            await client.update(lease)
        await candidate.stop()


@virtually
async def test_leadership_ends_at_once_when_another_has_taken_the_lease(plane: EmbeddedControlPlane) -> None:
    """client-go goes on for ten seconds."""
    async with started(plane, "a") as (a,):
        await asyncio.sleep(31)  # between two renewals
        lease = await stored(a.client)
        lease.spec.holder_identity = "usurper"
        await a.client.update(lease)
        taken = now()
        lost = await a.lost()
        assert 'taken over by "usurper"' in str(lost)
        assert a.ended - taken < 3
        # It is not ours to release.
        assert (await stored(a.client)).spec.holder_identity == "usurper"


@virtually
async def test_changes_of_labels_do_not_prolong_the_lease_of_another(plane: EmbeddedControlPlane) -> None:
    async with plane.client() as client:
        spec = LeaseSpec(holder_identity="dead", lease_duration_seconds=15)
        await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace="default"), spec=spec))
        candidate = Candidate(client, "b")
        candidate.start()
        for number in range(10):
            await asyncio.sleep(1.4)
            lease = await stored(client)
            lease.metadata.labels["touched"] = str(number)
            await client.update(lease)
        async with asyncio.timeout(5):
            await candidate.leads.wait()
        lease = await stored(client)
        assert lease.metadata.labels == {"touched": "9"}
        await candidate.stop()


@virtually
async def test_a_deleted_lease_is_created_again(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        await a.client.delete(Lease, NAME, namespace="default")
        await asyncio.sleep(5)
        assert a.election.is_leader
        assert (await stored(a.client)).spec.holder_identity == "a"


@virtually
async def test_a_lease_deleted_just_before_the_end_stays_deleted(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        await a.client.delete(Lease, NAME, namespace="default")
        await a.stop()
        # Writing a lease that is gone makes it again: the server allows that for leases.
        lease = await a.client.find(Lease, NAME, namespace="default")
        assert lease is None or lease.spec.holder_identity == ""


@virtually
async def test_releasing_the_lease_is_retried_when_the_server_fails(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        plane.faults.fail(by("a", "update"), code=500, times=2)
        plane.faults.fail(by("a", "update"), code=409, times=1)
        stopped = now()
        await a.stop()
        await b.leads.wait()
        assert b.began - stopped < 4


@virtually
async def test_stopping_does_not_wait_long_for_a_server_that_is_gone(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        plane.faults.delay(by("a"), 1000.0, times=None)
        stopped = now()
        await a.stop()
        assert now() - stopped <= 5.001


@virtually
async def test_a_candidate_cancelled_while_taking_the_lease_does_not_leave_it_taken(
    plane: EmbeddedControlPlane,
) -> None:
    async with plane.client() as client:
        spec = LeaseSpec(holder_identity="", lease_duration_seconds=1)
        await client.create(Lease(metadata=ObjectMeta(name=NAME, namespace="default"), spec=spec))
        candidate = Candidate(client, "a")
        update = Client.update

        async def slow(client: Client, lease: Lease, **options: bool | None) -> Lease:
            answer = await update(client, lease)
            await asyncio.sleep(2)
            return answer

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Client, "update", slow)
            candidate.start()
            await asyncio.sleep(1)
            assert (await stored(client)).spec.holder_identity == "a"
            assert candidate.task is not None
            candidate.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await candidate.task
        assert (await stored(client)).spec.holder_identity == ""
        assert not candidate.leads.is_set()


@virtually
async def test_errors_are_logged_once_and_kept(plane: EmbeddedControlPlane) -> None:
    async with plane.client() as client:
        plane.faults.fail(by("a"), code=403, message="no leases for you", times=None)
        candidate = Candidate(client, "a")
        candidate.start()
        with _logged() as lines:
            await asyncio.sleep(60)
        assert "no leases for you" in candidate.election.last_error
        assert len([line for line in lines if "no leases for you" in line]) == 1
        plane.faults.clear()
        await candidate.leads.wait()
        assert candidate.election.last_error == ""
        await candidate.stop()


@pytest.mark.parametrize("seconds", [12.0, 20.0])
def test_a_leader_whose_loop_was_blocked_too_long_stops(seconds: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, started(plane, "a") as (a,):
            plane.faults.delay(by("a"), 0.5, times=None)
            await asyncio.sleep(30)
            loop.block(seconds)
            woken_at = loop.time()
            assert a.election.is_leader is (seconds < 15)
            lost = await a.lost()
            assert "could not be renewed for 12 s" in str(lost)
            assert a.ended == pytest.approx(woken_at, abs=0.1)

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())


def test_a_leader_that_was_frozen_sends_no_write_when_it_wakes() -> None:
    """It has not noticed yet that its lease is over, and another may lead. Its reads do no harm."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
            election = LeaderElection(client, NAME, namespace="default", identity="a")
            refused: list[str] = []

            async def write(name: str) -> None:
                await client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))

            async def work() -> None:
                await write("before")
                assert isinstance(loop, BlockableLoop)
                loop.block(20)
                assert len(await client.list(ConfigMap, namespace="default")) == 1
                for attempt in (write("after"), asyncio.create_task(write("from a task"))):
                    try:
                        await attempt
                    except LeadershipLost as error:
                        refused.append(str(error))
                await asyncio.Event().wait()

            with pytest.raises(LeadershipLost, match="could not be renewed"):
                await election.run(work)
            words = "not sent, because the lease default/podmanager is no longer ours: another may lead"
            assert refused == [words] * 2
            # Code that does not need the lease may write.
            await write("outside")
            names = [each.metadata.name for each in await client.list(ConfigMap, namespace="default")]
            assert names == ["before", "outside"]

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())


def test_a_response_read_too_late_does_not_acquire_the_lease() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
            candidate, create = Candidate(client, "a"), Client.create

            async def late(client: Client, lease: Lease) -> Lease:
                answer = await create(client, lease)
                loop.block(20)
                return answer

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Client, "create", late)
                candidate.start()
                await candidate.leads.wait()
            assert candidate.began > 20
            deadline = candidate.election.hard_deadline
            assert deadline is not None
            assert deadline - candidate.began > 14
            await candidate.stop()

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    """The lines of warnings and worse."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = Collect(logging.WARNING)
    logger = logging.getLogger("kubewright.manager.leader_election")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def test_the_health_check_fails_while_it_leads_without_a_lease_for_too_long() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, started(plane, "a", "b") as (a, b):
            leader, standby = a.election.check(tolerance=20), b.election.check(tolerance=20)
            assert leader() is None
            loop.block(30)  # of which 15 are the lease's
            assert leader() is None
            loop.block(10)
            reason = leader()
            assert reason is not None
            assert reason.startswith("leading, and the lease default/podmanager could not be renewed: it ran out 2")
            assert standby() is None
            await a.lost()
            assert leader() is None

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())
