from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path

import pytest

from kubewright.api.coordination.v1 import Lease, LeaseSpec
from kubewright.api.core.v1 import Namespace
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import MicroTime, micro_now
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.request import Target
from kubewright.manager import leader_election
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.testing.namespaces import unique_name
from kubewright.testing.virtual_time import VirtualTimeLoop, run_virtual

NAME = "podmanager"
ASKING: ContextVar[str] = ContextVar("asking", default="")


class Candidate:
    """An election in a task of its own, and a record of what it did when."""

    def __init__(self, client: Client, identity: str, **options: float | Callable[[], MicroTime]) -> None:
        self.election = LeaderElection(client, NAME, namespace="default", identity=identity, **options)  # type: ignore[arg-type]  # of several types
        self.leads = asyncio.Event()
        self.began = self.ended = -1.0
        self.holder_at_end = ""
        self.client = client
        self.may_end = asyncio.Event()
        self.drain = 0.0
        self.is_stubborn = False
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        ASKING.set(self.election.identity)
        await self.election.run(self.lead)

    async def lead(self) -> None:
        assert self.election.is_leader
        self.began = asyncio.get_running_loop().time()
        self.leads.set()
        try:
            while True:
                try:
                    await self.may_end.wait()
                    break
                except asyncio.CancelledError:
                    if self.is_stubborn:
                        continue
                    await asyncio.sleep(self.drain)
                    raise
        finally:
            self.ended = asyncio.get_running_loop().time()

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task

    async def lost(self) -> LeadershipLost:
        assert self.task is not None
        with pytest.raises(LeadershipLost) as lost:
            await self.task
        return lost.value


@asynccontextmanager
async def started(plane: EmbeddedControlPlane, *identities: str, **options: float) -> AsyncIterator[list[Candidate]]:
    """Candidates that compete, the first of which leads already."""
    async with plane.client() as client:
        candidates = [Candidate(client, identity, **options) for identity in identities]
        try:
            for candidate in candidates:
                candidate.start()
                await candidates[0].leads.wait()
            yield candidates
        finally:
            for candidate in candidates:
                if candidate.task is not None and not candidate.task.done():
                    candidate.may_end.set()
                    candidate.task.cancel()
                    await asyncio.wait([candidate.task])


def virtually(test: Callable[[EmbeddedControlPlane], Coroutine[None, None, None]]) -> Callable[[], None]:
    """The test on an embedded control plane, in virtual time, of which it has an hour."""

    async def main() -> None:
        async with asyncio.timeout(3600), ControlPlane.embedded(controllers=(), nodes=0) as plane:
            await test(plane)

    def run() -> None:
        run_virtual(main)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def by(identity: str, *verbs: str) -> Callable[[Target], bool]:
    """Requests of one candidate for leases."""
    return lambda target: (
        target.resource == "leases" and ASKING.get() == identity and (not verbs or target.verb in verbs)
    )


def now() -> float:
    return asyncio.get_running_loop().time()


async def stored(client: Client) -> Lease:
    return await client.get(Lease, NAME, namespace="default")


@virtually
async def test_one_of_two_candidates_leads(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(600)
        assert a.election.is_leader
        assert not b.election.is_leader
        assert not b.leads.is_set()
        assert b.election.leader == a.election.leader == "a"
        assert a.election.statistics.renewals > 250


@virtually
async def test_the_lease_is_written_as_client_go_writes_it(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        first = await stored(a.client)
        assert first.spec.holder_identity == "a"
        assert first.spec.lease_duration_seconds == 15
        assert first.spec.lease_transitions == 0
        assert first.spec.acquire_time is not None
        await asyncio.sleep(3)
        second = await stored(a.client)
        assert second.spec.acquire_time == first.spec.acquire_time
        assert second.spec.lease_transitions == 0
        assert second.spec.renew_time is not None
        assert first.spec.renew_time is not None
        assert second.spec.renew_time > first.spec.renew_time
        await a.stop()
        released = await stored(a.client)
        assert released.spec.holder_identity == ""
        assert released.spec.lease_duration_seconds == 1
        assert released.spec.lease_transitions == 0


@virtually
async def test_a_standby_takes_over_within_three_seconds_of_a_clean_stop(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        for number in range(20):
            # At ever another moment between two looks of the standby.
            await asyncio.sleep(7.3 + 0.37 * number)
            stopped = now()
            await a.stop()
            await b.leads.wait()
            assert b.began - stopped < 3
            a, b = b, Candidate(a.client, f"{a.election.identity}x")
            b.start()
        await a.stop()
        await b.stop()
        lease = await stored(a.client)
        assert (lease.spec.lease_transitions or 0) >= 20


@virtually
async def test_work_ends_before_the_lease_is_given_back(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        a.drain = 60.0
        await a.stop()
        # It took longer than the lease lasts, and was renewed all the while.
        assert a.ended > 59
        await b.leads.wait()
        assert a.ended <= b.began < a.ended + 3


@virtually
async def test_work_that_ends_by_itself_ends_the_election_and_gives_the_lease_back(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        a.may_end.set()
        assert a.task is not None
        await a.task
        assert not a.election.is_leader
        assert a.election.hard_deadline is None
        assert (await stored(a.client)).spec.holder_identity == ""


@virtually
async def test_an_error_of_the_work_is_told_after_the_lease_is_given_back(plane: EmbeddedControlPlane) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async with plane.client() as client:
        election = LeaderElection(client, NAME, namespace="default", identity="a")
        with pytest.raises(ValueError, match="broken"):
            await election.run(fail)
        assert (await stored(client)).spec.holder_identity == ""


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
async def test_a_leader_cut_off_stops_before_another_one_can_lead(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(30)
        plane.faults.drop(by("a"), times=None)
        cut = now()
        lost = await a.lost()
        assert lost.is_work_over
        assert "could not be renewed for 10 s" in str(lost)
        assert "no answer within 5 s" in str(lost)
        assert a.ended - cut <= 10
        await b.leads.wait()
        assert a.ended < b.began
        assert b.began - cut < 18
        assert not a.election.is_leader


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
        a.drain = 3.0
        plane.faults.drop(by("a"), times=None)
        await asyncio.sleep(11)
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
async def test_losing_the_lease_cuts_a_clean_stop_short(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        await asyncio.sleep(30)
        a.drain = 60.0
        plane.faults.drop(by("a"), times=None)
        # The caller wanted it to stop, and it has stopped: that is what it is told.
        await a.stop()
        await b.leads.wait()
        assert a.ended < b.began


@virtually
async def test_work_that_fails_when_it_is_cancelled_tells_why(plane: EmbeddedControlPlane) -> None:
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
async def test_failures_that_pass_before_the_deadline_are_survived(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        for code in (409, 500, 503, 429, 404):
            plane.faults.fail(by("a"), code=code, times=3)
            await asyncio.sleep(30)
            assert a.election.is_leader, code
            assert a.election.trouble == ""
        plane.faults.drop(by("a"), times=4)
        await asyncio.sleep(30)
        assert a.election.is_leader
        assert not b.leads.is_set()
        assert a.election.statistics.failures > 0


@virtually
async def test_a_renewal_whose_answer_is_lost_does_not_end_leadership(plane: EmbeddedControlPlane) -> None:
    """The server has it, the leader does not know: the next one conflicts and looks first."""
    async with started(plane, "a") as (a,):
        lease = await stored(a.client)
        lease.spec.renew_time = micro_now()
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
        await asyncio.sleep(30)
        lease = await stored(a.client)
        lease.spec.holder_identity = "usurper"
        await a.client.update(lease)
        taken = now()
        lost = await a.lost()
        assert 'taken over by "usurper"' in str(lost)
        assert a.ended - taken < 3
        # It is not ours to give back.
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
async def test_a_deleted_lease_is_made_again(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        await a.client.delete(Lease, NAME, namespace="default")
        await asyncio.sleep(5)
        assert a.election.is_leader
        assert (await stored(a.client)).spec.holder_identity == "a"


@virtually
async def test_a_lease_deleted_just_before_the_end_is_nobodys(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        await a.client.delete(Lease, NAME, namespace="default")
        await a.stop()
        # Writing a lease that is gone makes it again: the server allows that for leases.
        lease = await a.client.find(Lease, NAME, namespace="default")
        assert lease is None or lease.spec.holder_identity == ""


@virtually
async def test_giving_back_is_tried_again_when_the_server_stumbles(plane: EmbeddedControlPlane) -> None:
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
        update = client.update

        async def slow(lease: Lease, **options: bool | None) -> Lease:
            answer = await update(lease)
            await asyncio.sleep(2)
            return answer

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "update", slow)
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
async def test_troubles_are_told_once_and_remembered(plane: EmbeddedControlPlane) -> None:
    async with plane.client() as client:
        plane.faults.fail(by("a"), code=403, message="no leases for you", times=None)
        candidate = Candidate(client, "a")
        candidate.start()
        with _logged() as lines:
            await asyncio.sleep(60)
        assert "no leases for you" in candidate.election.trouble
        assert len([line for line in lines if "no leases for you" in line]) == 1
        plane.faults.clear()
        await candidate.leads.wait()
        assert candidate.election.trouble == ""
        await candidate.stop()


@virtually
async def test_an_election_does_not_run_twice_at_once(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        with pytest.raises(RuntimeError, match="default/podmanager runs already"):
            await a.election.run(a.lead)


@virtually
async def test_a_stopped_election_may_run_again(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        await a.stop()
        a.leads.clear()
        a.start()
        async with asyncio.timeout(3):
            await a.leads.wait()
        assert a.election.statistics.acquisitions == 2


class BlockableLoop(VirtualTimeLoop):
    """Virtual time in which the loop can be blocked: timers come due, and nothing is called meanwhile."""

    blocked = 0.0

    def time(self) -> float:
        return super().time() + self.blocked

    def block(self, seconds: float) -> None:
        self.blocked += seconds


@pytest.mark.parametrize("seconds", [12.0, 20.0])
def test_a_leader_whose_loop_was_blocked_too_long_stops(seconds: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, started(plane, "a") as (a,):
            plane.faults.delay(by("a"), 0.5, times=None)
            await asyncio.sleep(30)
            loop.block(seconds)
            assert a.election.is_leader is (seconds < 15)
            lost = await a.lost()
            assert "could not be renewed for 10 s" in str(lost)
            assert a.ended == pytest.approx(loop.time(), abs=0.1)

    with asyncio.Runner(loop_factory=BlockableLoop) as runner:
        runner.run(main())


def test_an_answer_read_too_late_is_no_lease_to_begin_with() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, BlockableLoop)
        async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
            candidate, create = Candidate(client, "a"), client.create

            async def late(lease: Lease) -> Lease:
                answer = await create(lease)
                loop.block(20)
                return answer

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(client, "create", late)
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease_duration": 10.0}, "lease_duration is 10 s: expected more than the renew_deadline of 10 s"),
        ({"renew_deadline": 2.4}, "renew_deadline is 2.4 s: expected more than 1.2 times the retry_period of 2 s"),
        ({"retry_period": 0.0}, "retry_period is 0 s: expected more than 0"),
        (
            {"lease_duration": 0.9, "renew_deadline": 0.5, "retry_period": 0.1},
            "lease_duration is 0.9 s: expected at least 1",
        ),
    ],
)
async def test_durations_that_cannot_work_are_refused(
    embedded_control_plane: EmbeddedControlPlane, options: dict[str, float], message: str
) -> None:
    async with embedded_control_plane.client() as client:
        with pytest.raises(ValueError, match=re.escape(message)):
            LeaderElection(client, NAME, **options)  # type: ignore[arg-type]  # all of them are durations


async def test_names_that_are_empty_are_refused(embedded_control_plane: EmbeddedControlPlane) -> None:
    async with embedded_control_plane.client() as client:
        with pytest.raises(ValueError, match="needs the name of a lease"):
            LeaderElection(client, "")
        with pytest.raises(ValueError, match="identity of a candidate"):
            LeaderElection(client, NAME, identity="")


async def test_identities_are_different_and_the_namespace_is_the_pods_or_the_clients(
    embedded_control_plane: EmbeddedControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with embedded_control_plane.client() as client:
        monkeypatch.setattr(leader_election, "SERVICE_ACCOUNT", tmp_path)
        one, two = LeaderElection(client, NAME), LeaderElection(client, NAME)
        assert one.identity != two.identity
        assert one.namespace == "default"
        (tmp_path / "namespace").write_text("ops\n")
        assert LeaderElection(client, NAME).namespace == "ops"
        assert LeaderElection(client, NAME, namespace="other").namespace == "other"


@pytest.fixture(params=["embedded", "real"])
def plane(request: pytest.FixtureRequest) -> ControlPlane:
    found: ControlPlane = request.getfixturevalue(f"{request.param}_control_plane")
    return found


async def test_the_lease_is_handed_over_on_both_control_planes(plane: ControlPlane) -> None:
    async with asyncio.timeout(30), plane.client() as client:
        namespace = unique_name("leader-election")
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        leading: asyncio.Queue[str] = asyncio.Queue()

        def candidate(identity: str) -> asyncio.Task[None]:
            async def lead() -> None:
                leading.put_nowait(identity)
                await asyncio.Event().wait()

            election = LeaderElection(
                client,
                NAME,
                namespace=namespace,
                identity=identity,
                retry_period=0.1,
                labels={"app": "podmanager"},
            )
            return asyncio.create_task(election.run(lead))

        first, second = candidate("a"), candidate("b")
        tasks = {"a": first, "b": second}
        leader = await leading.get()
        tasks[leader].cancel()
        await asyncio.wait([tasks[leader]])
        successor = await leading.get()
        assert {leader, successor} == {"a", "b"}
        lease = await client.get(Lease, NAME, namespace=namespace)
        assert lease.spec.holder_identity == successor
        assert lease.spec.lease_transitions == 1
        assert lease.metadata.labels == {"app": "podmanager"}
        tasks[successor].cancel()
        await asyncio.wait([tasks[successor]])
        released = await client.get(Lease, NAME, namespace=namespace)
        assert released.spec.holder_identity == ""
        assert released.spec.lease_duration_seconds == 1
        await client.delete(Namespace, namespace)
