"""Removing objects from a cluster, those that depend on others first.

Objects of an operator's own kinds and their definitions go before the operator, which has to clean up after them:
without it, finalizers would block them and their namespaces for ever. What is not of the operator is kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.cli.arguments import add_timeout_argument
from kubewright.cli.cluster.custom_objects import (
    CONFIGURATIONS,
    CustomObjects,
    check_none_is_new,
    custom_objects,
    delete_custom_objects,
    is_asked_before_deletions,
)
from kubewright.cli.cluster.deletion import delete, find, wait_until_gone
from kubewright.cli.cluster.labelled import labelled
from kubewright.cli.cluster.namespaces import reason_to_keep
from kubewright.cli.cluster.permitted import permitted
from kubewright.cli.cluster.plan import PlannedChange, Verb, action, changes, described
from kubewright.cli.cluster.progress import ChangeProgress, planned_on
from kubewright.cli.cluster.target import Refused, TargetCluster, add_change_arguments, ask
from kubewright.cli.termination import run_terminable
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.deployment import Operator
from kubewright.deployment.layout import position

_VERBS: Final = ("get", "list", "delete")
# In its own namespace only, and called as it is.
_NAMED: Final = (Deployment, ServiceAccount)


def add_remove_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the cluster, the consent to change it and to lose objects, and how long that may take."""
    add_change_arguments(parser)
    parser.add_argument(
        "--delete-objects",
        action="store_true",
        help="do not ask before objects of the operator's own kinds are deleted",
    )
    add_timeout_argument(parser, "everything has gone")


class Remains(Struct, frozen=True):
    """What there may be of an operator in a cluster."""

    operator: Operator
    objects: Sequence[Object]
    """Those that are deployed of it."""
    kinds: Sequence[type[Object]]
    """The kinds among which objects of earlier versions are looked for, by labels."""
    made: Sequence[Object] = ()
    """What it makes by itself in its namespace, under fixed names."""
    kept: Sequence[Object] = ()
    """Those of the objects that stay."""
    is_only_there: bool = False
    """Whether the user has named the namespace of the operator, so that it must not go from another one."""


class _Removal(Struct, frozen=True):
    """What goes, what is kept, and the objects that go with their definitions."""

    remains: Remains
    steps: list[PlannedChange]
    custom: list[CustomObjects]
    warning: str = ""

    @property
    def deleted(self) -> list[CustomObjects]:
        """The custom objects that go, as far as there are any."""
        return [each for each in self.custom if each.objects]

    @property
    def count(self) -> int:
        """How many custom objects go."""
        return sum(len(each.objects) for each in self.custom)

    @property
    def going(self) -> list[PlannedChange]:
        """The steps that delete something."""
        return changes(self.steps)


def remove(remains: Remains, cluster: TargetCluster, options: argparse.Namespace) -> None:
    """Show what goes, and remove it, with the user's consent where objects go or the cluster is not local."""
    planning = ChangeProgress((), options.timeout)
    with planning.reported():
        removal = run_terminable(_planned(remains, cluster, planning))
        for step in removal.steps:
            print(f"  {step}")
        if not removal.steps:
            print("  nothing of it is there")
        sys.stdout.flush()
        if removal.warning:
            print(f"warning: {removal.warning}", file=sys.stderr)
        if options.dry_run or not removal.going:
            return
        _consent(removal, cluster, options)
    planned = [*(each.deletion for each in removal.deleted), *map(action, removal.going)]
    progress = ChangeProgress(planned, options.timeout)
    with progress.reported():
        kept = run_terminable(_removed(removal, cluster, options, progress))
    for step in kept:
        print(f"  {step}")
    print(f"{len(removal.going) - len(kept) + removal.count} deleted")


def _consent(removal: _Removal, cluster: TargetCluster, options: argparse.Namespace) -> None:
    if removal.count and not options.delete_objects:
        counts = " and ".join(map(str, removal.deleted))
        ask(f"Delete {counts} from {cluster}?", f"{counts} would be deleted: confirm with --delete-objects")
    else:
        cluster.consent(yes=options.yes)


async def _planned(remains: Remains, cluster: TargetCluster, planning: ChangeProgress) -> _Removal:
    async with planned_on(cluster, planning) as client, permitted(client, remains.objects, *_VERBS):
        planning.line.doing(f"look for what there is of {remains.operator.name}")
        return await _removal(client, remains)


async def _removal(client: Client, remains: Remains) -> _Removal:
    kept = {(type(each), each.key) for each in remains.kept}
    wanted = [each for each in remains.objects if (type(each), each.key) not in kept]
    found = [each for each in [await find(client, obj) for obj in wanted] if each is not None]
    seen = kept | {(type(each), each.key) for each in found}
    found += [
        each async for each in labelled(client, remains.operator, remains.kinds) if (type(each), each.key) not in seen
    ]
    if remains.is_only_there:
        _check_namespace(remains.operator, found)
    made = await _made(client, remains, found)
    defined = {(each.spec.group, each.spec.names.kind) for each in found if isinstance(each, CustomResourceDefinition)}
    found = [each for each in found if (each.api_version.rpartition("/")[0], each.kind) not in defined]
    custom: list[CustomObjects] = []
    steps: list[PlannedChange] = []
    for each in _last_first(found, made):
        if not remains.operator.owns(each) and each not in made:
            steps.append(PlannedChange(Verb.KEEP, each, "it does not have the labels of this operator"))
        elif isinstance(each, CustomResourceDefinition):
            custom.append(await custom_objects(client, each))
            steps.append(PlannedChange(Verb.DELETE, each, f"with {custom[-1]}" if custom[-1].objects else ""))
        elif isinstance(each, Namespace):
            reason = await _reason_to_keep(client, remains, each, [step.obj for step in changes(steps)])
            steps.append(PlannedChange(Verb.KEEP if reason else Verb.DELETE, each, reason))
        else:
            steps.append(PlannedChange(Verb.DELETE, each))
    return _Removal(remains, steps, custom, await _warning(client, remains.operator, custom))


def _check_namespace(operator: Operator, found: Iterable[Object]) -> None:
    """Raise `Refused` if what was found is deployed to another namespace."""
    for each in found:
        if isinstance(each, Deployment) and each.metadata.name == operator.name:
            namespace = each.metadata.namespace
            if namespace != operator.namespace:
                raise Refused(
                    f"{operator.name} is deployed to the namespace {namespace}, and not to {operator.namespace}: "
                    f"undeploy it with --namespace {namespace}"
                )


async def _made(client: Client, remains: Remains, found: Iterable[Object]) -> list[Object]:
    """What it has made by itself, wherever it is deployed or was before: elsewhere, that name is of others."""
    operator = remains.operator
    namespaces = {
        each.metadata.namespace or each.metadata.name
        for each in found
        if operator.owns(each)
        and (isinstance(each, Namespace) or (isinstance(each, _NAMED) and each.metadata.name == operator.name))
    }
    made = [
        await client.find(type(obj), obj.metadata.name, namespace=namespace)
        for namespace in sorted(namespaces)
        for obj in remains.made
    ]
    return [each for each in made if each is not None]


def _last_first(found: Iterable[Object], made: Iterable[Object]) -> list[Object]:
    """Definitions first, then in the reverse of the order in which objects are applied. What a program has made goes
    when it has ended, before its ServiceAccount, by which it is known to be there; and namespaces go with all that is
    left in them.
    """
    ordered = sorted(found, key=position, reverse=True)
    first = [obj for obj in ordered if isinstance(obj, CustomResourceDefinition)]
    last = [obj for obj in ordered if isinstance(obj, ServiceAccount | Namespace)]
    return [*first, *(obj for obj in ordered if obj not in first and obj not in last), *made, *last]


async def _warning(client: Client, operator: Operator, custom: Sequence[CustomObjects]) -> str:
    """What custom objects wait for in vain while no replica of the operator is there."""
    present = {resource_info(each.kind).gvk.group for each in custom if each.objects}
    holding = ["there are objects with finalizers"] if any(each.has_finalizers for each in custom) else []
    try:
        configurations = [each async for each in labelled(client, operator, CONFIGURATIONS)] if present else []
        asking = [each for each in configurations if is_asked_before_deletions(each, present)]
        holding += [f"the {described(obj)} has it asked before they are deleted" for obj in asking]
        deployments = await client.list(Deployment, labels=operator.labels) if holding else []
    except Forbidden:
        return ""  # who may delete definitions need not be permitted to read more than these
    if not holding or any(each.status.ready_replicas for each in deployments):
        return ""
    fix = "they go when the operator has cleaned up after them"
    if asking:
        fix = f"let it run, or delete the {' and the '.join(obj.kind for obj in asking)} first"
    return f"no replica of {operator.name} is ready in this cluster, and {' and '.join(holding)}: {fix}"


async def _removed(
    removal: _Removal, cluster: TargetCluster, options: argparse.Namespace, progress: ChangeProgress
) -> list[PlannedChange]:
    """Returns the namespaces that are kept after all."""
    agreed = [] if options.delete_objects else removal.custom
    kept: list[PlannedChange] = []
    async with cluster.client() as client, permitted(client, [step.obj for step in removal.going], *_VERBS):
        with progress.line:
            await check_none_is_new(client, agreed, progress)
            await delete_custom_objects(client, removal.deleted, progress)
            await check_none_is_new(client, agreed, progress)
            for step in removal.going:
                if isinstance(step.obj, Namespace) and (reason := await _new_reason(client, removal, step, progress)):
                    kept.append(PlannedChange(Verb.KEEP, step.obj, reason))
                    progress.gone(action(step))  # there is nothing left to do
                    continue
                await delete(client, step, progress)
                if isinstance(step.obj, CustomResourceDefinition | Deployment):
                    # Definitions need the operator until their objects have gone, and its pods need its roles.
                    await wait_until_gone(client, step, progress)
            for step in removal.going:
                if not any(each.obj is step.obj for each in kept):
                    await wait_until_gone(client, step, progress)
    return kept


async def _new_reason(client: Client, removal: _Removal, step: PlannedChange, progress: ChangeProgress) -> str:
    """Why a namespace is to be kept by now: what others have put there since the user agreed would go with it."""
    progress.line.doing(f"look for what is new in {described(step.obj)}")
    async with progress.deadline.limit(progress.line):
        return await _reason_to_keep(client, removal.remains, step.obj, [each.obj for each in removal.going])


async def _reason_to_keep(client: Client, remains: Remains, namespace: Object, going: Iterable[Object]) -> str:
    name = namespace.metadata.name
    made = [replace(obj, metadata=ObjectMeta(name=obj.metadata.name, namespace=name)) for obj in remains.made]
    return await reason_to_keep(client, remains.operator, name, [*going, *made], remains.kept)
