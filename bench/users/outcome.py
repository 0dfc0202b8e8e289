"""Whether everything is as it was requested. A run that lost something has no figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
from operators.user.names import role_reference, subjects_of, user_of

from bench.users.load import Load
from bench.users.phases import Phases
from bench.widgets.program import ProgramFailed
from kubewright.api.rbac.v1 import RoleBinding
from kubewright.patterns import AuditRecord

_PHASES = ["Pending", "Processing", "Completed"]


def check_requests(phases: Phases) -> None:
    """Every request went through the three phases, once, and was completed."""
    wrong = {uid: found for uid, found in phases.of.items() if found != _PHASES}
    if wrong:
        raise ProgramFailed(f"{len(wrong)} requests went another way, such as {next(iter(wrong.values()))}")


def check_records(phases: Phases, file: Path) -> int:
    """Every change of a phase has its audit record. Returns how many were written again by the second process."""
    decoder = msgspec.json.Decoder(AuditRecord)
    written = Counter(decoder.decode(line).id for line in file.read_bytes().splitlines())
    expected = {f"{uid}/{phase}" for uid in phases.of for phase in _PHASES[1:]}
    if written.keys() != expected:
        lost, invented = len(expected - written.keys()), len(written.keys() - expected)
        raise ProgramFailed(f"{lost} changes of phases have no audit record, and {invented} records no change")
    return written.total() - len(written)


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
