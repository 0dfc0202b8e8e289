"""Whether everything is as it was requested. A run that lost something has no figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from operators.user import Options
from operators.user.names import role_reference, subjects_of, user_of

from bench.users.load import Load
from bench.users.phases import Phases
from bench.users.traffic import Counts
from bench.widgets.program import ProgramFailed
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.patterns import AuditRecord

MAX_WRITES = 15
"""Of a new user."""

_PHASES = ["Pending", "Processing", "Completed"]


def check_requests(phases: Phases) -> None:
    """Every request went through the three phases, once, and was completed."""
    wrong = {uid: found for uid, found in phases.of.items() if found != _PHASES}
    if wrong:
        raise ProgramFailed(f"{len(wrong)} requests went another way, such as {next(iter(wrong.values()))}")


def check_records(uids: Iterable[str], *files: Path) -> int:
    """Every change of a phase has its audit record, and no process, each with a file of its own, has written one twice.

    Returns how many were written again by the second one: at most both of each request that the first was at.
    """
    decoder = msgspec.json.Decoder(AuditRecord)
    trails = [Counter(decoder.decode(line).id for line in file.read_bytes().splitlines()) for file in files]
    written = sum(trails, Counter[str]())
    expected = {f"{uid}/{phase}" for uid in uids for phase in _PHASES[1:]}
    if written.keys() != expected:
        lost, invented = len(expected - written.keys()), len(written.keys() - expected)
        raise ProgramFailed(f"{lost} changes of phases have no audit record, and {invented} records no change")
    twice = sum(trail.total() - len(trail) for trail in trails)
    if twice:
        raise ProgramFailed(f"{twice} audit records were written again by the same process")
    repeated, in_flight = written.total() - len(written), Options().request_workers
    if repeated > 2 * in_flight:
        raise ProgramFailed(f"{repeated} audit records were written again, of {in_flight} requests at a time")
    return repeated


def check_costs(users: int, made: Counts, settled: Counts) -> None:
    """A new user takes few writes, and what is settled nothing."""
    if made.writes > MAX_WRITES * users:
        raise ProgramFailed(f"{users} users took {made.writes} writes: expected at most {MAX_WRITES} each")
    if any(settled):
        raise ProgramFailed(f"at rest there were {settled.reads} reads and {settled.writes} writes")


async def check_roles(load: Load) -> None:
    """Everybody has the roles that were requested, and no other ones."""
    bindings = {
        (each.metadata.namespace, each.metadata.name): each
        for each in await load.client.list(RoleBinding)
        if user_of(each.metadata.namespace) is not None
    }
    expected = load.expected()
    if bindings.keys() != expected.keys():
        missing, surplus = len(expected.keys() - bindings.keys()), len(bindings.keys() - expected.keys())
        raise ProgramFailed(f"{missing} role bindings are missing, and {surplus} should not be there")
    for (namespace, name), role in expected.items():
        found = bindings[namespace, name]
        user = name.removesuffix(f"-{role}")
        if found.role_ref != role_reference(role) or found.subjects != subjects_of(user):
            raise ProgramFailed(f"the role binding {namespace}/{name} does not give {role} to {user}")
