"""The User operator under load: two replicas with an election, many users and requests, and a leader that is killed.

It runs with just its role on a real control plane, whose audit log says what it requests. Half-way through the requests
the leader is killed. The figures count only if nothing was lost: every request ends once, each change of its phase has
an audit record, and everybody has just the roles that were requested; and if a new user takes no more writes than it is
to, and what is settled none. One round; there is no peer.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from operators.user import Deleterequest, Operationrequest, User, setup
from operators.user.program import NAME

from bench.figures import Figure
from bench.interpreter import interpreter
from bench.users.load import PATIENCE, Load
from bench.users.outcome import MAX_WRITES, check_costs, check_records, check_requests, check_roles
from bench.users.traffic import Traffic
from bench.widgets.program import Peer, Program, progress, running, warm_up
from kubewright import Client, ControlPlane, Manager, Permission
from kubewright.api.coordination.v1 import Lease
from kubewright.client.wait import Field
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.roles import declared_permissions
from kubewright.testing import restricted_client
from kubewright.testing.audit_file import AuditFile

_USERS, _QUICK_USERS = 1_000, 50
_LEASE_NAMESPACE = "default"
_SETTLED_SECONDS = 20.0
_FIRST_TRAIL, _SECOND_TRAIL = "first.jsonl", "second.jsonl"


def run() -> list[Figure]:
    """Measure with 1,000 users and 5,000 requests."""
    return _measured(_USERS)


def run_quick() -> list[Figure]:
    """The same with 50 users and 250 requests."""
    return _measured(_QUICK_USERS)


def _measured(users: int) -> list[Figure]:
    warm_up(["operators.user"])
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_measure(users, Path(name)))


async def _measure(users: int, directory: Path) -> list[Figure]:
    audit = AuditFile(directory)
    plane = ControlPlane.real(
        controller_manager=True, api_server_flags=audit.flags, definitions=[User, Operationrequest, Deleterequest]
    )
    async with (
        plane,
        plane.client() as admin,
        _deployed(plane, admin, directory) as kubeconfig,
        _leader(admin, directory / _FIRST_TRAIL, kubeconfig) as first,
        _replica(directory / _SECOND_TRAIL, kubeconfig) as second,
    ):
        trails = [directory / _FIRST_TRAIL, directory / _SECOND_TRAIL]
        return await _figures(Load(admin, users), Traffic(audit, NAME), first, second, trails)


@asynccontextmanager
async def _deployed(plane: ControlPlane, admin: Client, directory: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a user with the role of the operator, where what it needs has been applied."""
    made: list[Manager] = []

    def manager(client: Client) -> Manager:
        election = LeaderElection(client, NAME, namespace=_LEASE_NAMESPACE)
        made.append(Manager(client, election=election, webhook_address="0"))
        return made[0]

    needed: list[Permission] = await declared_permissions(setup, manager=manager)
    for obj in made[0].required_objects:
        await admin.apply(obj)
    async with restricted_client(plane, needed, user=NAME) as client:
        path = directory / "kubeconfig"
        path.write_text(client.config.to_kubeconfig())
        yield path


def _replica(trail: Path, kubeconfig: Path) -> AbstractAsyncContextManager[Program]:
    off = ["--webhook-address=0", "--health-address=0", "--metrics-address=0"]
    lease = f"--lease-namespace={_LEASE_NAMESPACE}"
    command = [interpreter(), "-m", "operators.user", *off, lease, f"--audit-file={trail}"]
    return running(Peer("the operator", command), "--leader-elect", kubeconfig)


@asynccontextmanager
async def _leader(admin: Client, trail: Path, kubeconfig: Path) -> AsyncIterator[Program]:
    async with _replica(trail, kubeconfig) as replica:
        held = Field("spec.holderIdentity").satisfies(bool, "is somebody")
        await admin.wait_for(Lease, NAME, held, namespace=_LEASE_NAMESPACE)
        yield replica


async def _figures(load: Load, traffic: Traffic, first: Program, second: Program, trails: list[Path]) -> list[Figure]:
    idle = first.cpu()
    async with first.patience("did not make all users active", PATIENCE):
        await load.create_users()
    await first.quiet()
    users_cpu, peak, made = first.cpu() - idle, first.peak(), traffic.since_last()
    progress(f"{load.users:,} users: {users_cpu:.1f} s of CPU, at most {peak:.0f} MB, {made.writes:,} writes")

    before, standby = first.cpu(), second.cpu()
    async with load.watched() as phases:
        await load.request_grants()
        await phases.finished(load.requests // 2)
        killed_at = first.cpu()
        await first.kill()
        progress(f"the leader was killed when {phases.count_finished():,} of {load.requests:,} requests were finished")
        async with second.patience("did not finish all requests", PATIENCE):
            await phases.finished(load.grants)
            await load.request_changes()
            await phases.finished(load.requests)
    await second.quiet()
    requests_cpu, peak = killed_at - before + second.cpu() - standby, max(peak, second.peak())
    handled = traffic.since_last()
    progress(f"{load.requests:,} requests: {requests_cpu:.1f} s of CPU, {handled.writes:,} writes")

    await asyncio.sleep(_SETTLED_SECONDS)
    settled = traffic.since_last()
    check_requests(phases)
    repeated = check_records(phases.of, *trails)
    progress(f"each of {2 * load.requests:,} changes of a phase has its audit record; {repeated} were written again")
    await check_roles(load)
    check_costs(load.users, made, settled)
    await second.stop()
    return [
        Figure("a new user", users_cpu / load.users * 1e6, None),
        Figure("… writes", made.writes / load.users, None, f"at most {MAX_WRITES}", "number"),
        Figure("… reads", made.reads / load.users, None, "", "number"),
        Figure("a request for a role", requests_cpu / load.requests * 1e6, None),
        Figure("… writes, with the change of leaders", handled.writes / load.requests, None, "", "number"),
        Figure("… reads, with the change of leaders", handled.reads / load.requests, None, "", "number"),
        Figure("peak memory of a replica", peak, None, "", "MB"),
        Figure(f"requests in {_SETTLED_SECONDS:.0f} s, settled", settled.writes + settled.reads, None, "0", "number"),
    ]
