"""Bringing objects into a cluster: what that will do is shown, then done, and waited for."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kubewright.api.apps.v1 import Deployment
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cli.arguments import add_timeout_argument
from kubewright.cli.cluster.conversion import take_over_dropped_conversion
from kubewright.cli.cluster.deletion import delete, wait_until_gone
from kubewright.cli.cluster.permitted import permitted
from kubewright.cli.cluster.plan import (
    FieldConflicts,
    PlannedChange,
    Verb,
    action,
    changes,
    conflict_lines,
    conflict_message,
    former_deployments,
    plan_to_apply,
    plan_to_prune,
)
from kubewright.cli.cluster.progress import ChangeProgress, planned_on
from kubewright.cli.cluster.readiness import wait_until_ready
from kubewright.cli.cluster.target import Refused, TargetCluster, add_change_arguments
from kubewright.cli.cluster.waiting import Deadline
from kubewright.cli.termination import run_terminable
from kubewright.client import Client
from kubewright.client.errors import Conflict
from kubewright.deployment import Operator

_DONE: Final = {Verb.CREATE: "created", Verb.CHANGE: "changed", Verb.DELETE: "deleted", Verb.UNCHANGED: "unchanged"}
_VERBS: Final = ("get", "list", "create", "patch", "delete")


def add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cluster, the consent to change it, how objects are applied, and how long that may take."""
    add_change_arguments(parser)
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
    moves: bool = False
    """Whether the user has agreed that it goes from the namespace that it was deployed to before."""


def apply(desired: DesiredObjects, cluster: TargetCluster, options: argparse.Namespace) -> None:
    """Show what will be done, and do it, with the user's consent where the cluster is not local."""
    planning = ChangeProgress((), options.timeout)
    with planning.reported():
        steps = run_terminable(_planned(desired, cluster, planning, force=options.force_conflicts))
        for step in steps:
            print(f"  {step}")
        sys.stdout.flush()
        if not desired.moves:
            _check_stays(desired.operator, steps)
        if options.dry_run:
            return
        if changes(steps):
            cluster.consent(yes=options.yes)
    progress = ChangeProgress(map(action, changes(steps)), options.timeout)
    with progress.reported():
        run_terminable(_applied(desired, cluster, steps, options, progress))
    counts = Counter(_DONE[step.verb] for step in steps if step.verb in _DONE)
    print(", ".join(f"{counts[done]} {done}" for done in _DONE.values() if counts[done]))


def _check_stays(operator: Operator, steps: Sequence[PlannedChange]) -> None:
    """Raise `Refused` if the operator would be deleted from another namespace."""
    former = former_deployments(operator, steps)
    if former:
        namespace = former[0].obj.metadata.namespace
        raise Refused(
            f"{operator.name} is deployed to the namespace {namespace}, and would be deleted there: confirm with "
            f"--move that it moves to {operator.namespace}, deploy it to {namespace}, or give a second one another name"
        )


async def _planned(
    desired: DesiredObjects, cluster: TargetCluster, planning: ChangeProgress, *, force: bool
) -> list[PlannedChange]:
    operator, objects, line = desired.operator, desired.objects, planning.line
    async with planned_on(cluster, planning) as client, permitted(client, objects, *_VERBS):
        steps = await plan_to_apply(client, operator, objects, force=force, line=line)
        pruned = await plan_to_prune(client, operator, objects, line) if desired.prunes else []
        # First: in two namespaces there would be two leaders.
        former = former_deployments(operator, pruned)
        return [*former, *steps, *(step for step in pruned if step not in former)]


async def _applied(
    desired: DesiredObjects,
    cluster: TargetCluster,
    steps: Sequence[PlannedChange],
    options: argparse.Namespace,
    progress: ChangeProgress,
) -> None:
    objects = desired.objects
    async with cluster.client() as client, permitted(client, objects, *_VERBS):
        with progress.line:
            await _carry_out(client, steps, progress, force=options.force_conflicts)
            if not options.no_wait:
                await wait_until_ready(
                    client, objects, desired.service, deadline=Deadline(options.timeout), line=progress.line
                )


async def _carry_out(client: Client, steps: Sequence[PlannedChange], progress: ChangeProgress, *, force: bool) -> None:
    """Apply and delete what the steps say; what is unchanged costs no request."""
    for step in changes(steps):
        if step.verb is Verb.DELETE:
            await delete(client, step, progress)
            if isinstance(step.obj, Deployment):
                await wait_until_gone(client, step, progress)
            else:
                progress.gone(action(step))
            continue
        try:
            async with progress.change(action(step)):
                await take_over_dropped_conversion(client, step.obj)
                await client.apply(step.obj, force=force)
        except Conflict as error:
            if not error.status.causes:
                raise
            raise FieldConflicts(conflict_message(conflict_lines(step.obj, error))) from None
