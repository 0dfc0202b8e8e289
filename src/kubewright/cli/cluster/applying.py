"""Bringing objects into a cluster: what that will do is shown, then done, and waited for."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cli.arguments import add_timeout_argument
from kubewright.cli.cluster.permitted import permitted
from kubewright.cli.cluster.plan import (
    FieldConflicts,
    PlannedChange,
    Verb,
    changes,
    conflict_lines,
    conflict_message,
    described,
    plan_to_apply,
    plan_to_prune,
)
from kubewright.cli.cluster.readiness import wait_until_ready
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.target import TargetCluster
from kubewright.client import Client
from kubewright.client.errors import Conflict
from kubewright.deployment import Operator

_DONE: Final = {Verb.CREATE: "created", Verb.CHANGE: "changed", Verb.DELETE: "deleted", Verb.UNCHANGED: "unchanged"}
_VERBS: Final = ("get", "list", "create", "patch", "delete")


def add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how objects are applied, and how long is waited."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument(
        "--force-conflicts", action="store_true", help="take over objects and fields of others, such as kubectl"
    )
    parser.add_argument("--no-wait", action="store_true", help="return when the server has taken everything")
    add_timeout_argument(parser, "it is ready")


class DesiredObjects(Struct, frozen=True):
    """Objects of an operator that are to be in a cluster."""

    operator: Operator
    objects: Sequence[Object]
    service: ObjectKey | None = None
    """The Service whose webhooks have to have a certificate."""
    prunes: bool = False
    """Whether objects go that the operator no longer has."""


def apply(desired: DesiredObjects, cluster: TargetCluster, options: argparse.Namespace) -> None:
    """Show what will be done, and do it, with the user's consent where the cluster is not local."""
    force = options.force_conflicts
    steps = asyncio.run(_planned(desired, cluster, force=force))
    for step in steps:
        print(f"  {step}")
    sys.stdout.flush()
    if options.dry_run:
        return
    if changes(steps):
        cluster.consent(yes=options.yes)
    asyncio.run(_applied(desired, cluster, steps, options))
    counts = Counter(_DONE[step.verb] for step in steps if step.verb in _DONE)
    print(", ".join(f"{counts[done]} {done}" for done in _DONE.values() if counts[done]))


async def _planned(desired: DesiredObjects, cluster: TargetCluster, *, force: bool) -> list[PlannedChange]:
    objects = desired.objects
    async with cluster.client() as client, permitted(client, objects, *_VERBS):
        steps = await plan_to_apply(client, desired.operator, objects, force=force)
        return steps + (await plan_to_prune(client, desired.operator, objects) if desired.prunes else [])


async def _applied(
    desired: DesiredObjects, cluster: TargetCluster, steps: Sequence[PlannedChange], options: argparse.Namespace
) -> None:
    objects = desired.objects
    async with cluster.client() as client, permitted(client, objects, *_VERBS):
        with StatusLine() as line:
            await _carry_out(client, steps, force=options.force_conflicts, line=line)
            if not options.no_wait:
                await wait_until_ready(client, objects, desired.service, timeout=options.timeout, line=line)


async def _carry_out(client: Client, steps: Sequence[PlannedChange], *, force: bool, line: StatusLine) -> None:
    """Apply and delete what the steps say; what is unchanged costs no request."""
    todo = changes(steps)
    for number, step in enumerate(todo):
        line.doing(f"{step.verb} {described(step.obj)}")
        try:
            if step.verb is Verb.DELETE:
                await client.delete(step.obj, uid=step.obj.metadata.uid, missing_ok=True)
            else:
                await client.apply(step.obj, force=force)
        except KubernetesError as error:
            failure: KubernetesError = error
            if isinstance(error, Conflict) and error.status.causes:
                failure = FieldConflicts(conflict_message(conflict_lines(step.obj, error)))
            if number:
                failure.add_note(f"{number} of {len(todo)} changes were made; the same command goes on")
            raise failure from None
