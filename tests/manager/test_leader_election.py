"""Who leads, how the lease is handed over, and the options of an election."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.manager.candidates import NAME, Candidate, now, started, stored, virtually

from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.token_bucket import TokenBucket
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manager import leader_election
from kubewright.manager.leader_election import LeaderElection
from kubewright.testing.namespaces import unique_name


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
            # Each time at another moment between two attempts of the standby.
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
async def test_work_ends_before_the_lease_is_released(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a", "b") as (a, b):
        a.drain = 60.0
        await a.stop()
        # It took longer than the lease lasts, and was renewed all the while.
        assert a.ended > 59
        await b.leads.wait()
        assert a.ended <= b.began < a.ended + 3


@virtually
async def test_work_that_ends_by_itself_ends_the_election_and_releases_the_lease(plane: EmbeddedControlPlane) -> None:
    async with started(plane, "a") as (a,):
        a.may_end.set()
        assert a.task is not None
        await a.task
        assert not a.election.is_leader
        assert a.election.hard_deadline is None
        assert (await stored(a.client)).spec.holder_identity == ""


@virtually
async def test_an_error_of_the_work_is_raised_after_the_lease_is_released(plane: EmbeddedControlPlane) -> None:
    async def fail() -> None:
        raise ValueError("broken")

    async with plane.client() as client:
        election = LeaderElection(client, NAME, namespace="default", identity="a")
        with pytest.raises(ValueError, match="broken"):
            await election.run(fail)
        assert (await stored(client)).spec.holder_identity == ""


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease_duration": 12.0}, "lease_duration is 12 s: expected more than the renew_deadline of 12 s"),
        ({"renew_deadline": 2.4}, "renew_deadline is 2.4 s: expected more than 1.2 times the retry_period of 2 s"),
        ({"retry_period": 0.0}, "retry_period is 0 s: expected more than 0"),
        (
            {"lease_duration": 0.9, "renew_deadline": 0.5, "retry_period": 0.1},
            "lease_duration is 0.9 s: expected at least 1",
        ),
    ],
)
async def test_inconsistent_durations_are_refused(
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


async def test_neither_slow_requests_nor_a_rate_limit_delay_renewals(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    """More requests than the client has connections for, none of which is answered, and no further one allowed."""
    plane, may_answer, requests = embedded_control_plane, asyncio.Event(), 0

    def is_slow(target: Target) -> bool:
        nonlocal requests
        requests += target.resource == "configmaps"
        return target.resource == "configmaps"

    plane.faults.delay(is_slow, may_answer, times=None)
    config = Config.from_kubeconfig_text(plane.kubeconfig())
    async with asyncio.timeout(50), Client(config, rate_limit=TokenBucket(0.0001, burst=120), timeout=600) as client:
        slow = [asyncio.create_task(client.get(ConfigMap, "slow", namespace="default")) for _ in range(120)]
        while requests < 100:
            await asyncio.sleep(0.01)
        leads = asyncio.Event()

        async def lead() -> None:
            leads.set()
            await asyncio.Event().wait()

        election = LeaderElection(
            client, NAME, namespace="default", lease_duration=60, renew_deadline=50, retry_period=0.05
        )
        leading = asyncio.create_task(election.run(lead))
        await leads.wait()
        while election.statistics.renewals < 3:
            await asyncio.sleep(0.01)
        leading.cancel()
        await asyncio.wait((leading,))
        # They are counted with the others.
        assert sum(number for (_, method, _), number in client.answers.items() if method == "PUT") >= 3
        may_answer.set()
        for task in slow:
            task.cancel()
        await asyncio.wait(slow)


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
