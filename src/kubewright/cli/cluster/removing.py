"""Removing objects from a cluster, those that depend on others first.

Objects of an operator's own kinds and their definitions go before the operator, which has to clean up after them:
without it, finalizers would block them and their namespaces for ever. What is not of the operator is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import Namespace, Pod
from kubewright.api.resources import Object
from kubewright.cli.arguments import add_timeout_argument
from kubewright.cli.cluster.custom_objects import (
    CustomObjects,
    StillThere,
    check_none_is_new,
    custom_objects,
    delete_custom_objects,
)
from kubewright.cli.cluster.labelled import labelled
from kubewright.cli.cluster.namespaces import reason_to_keep
from kubewright.cli.cluster.permitted import permitted
from kubewright.cli.cluster.plan import PlannedChange, Verb, changes, described
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.target import TargetCluster, ask
from kubewright.cli.cluster.waiting import Deadline, wait_until_none
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.client.paths import Propagation
from kubewright.deployment import Operator
from kubewright.deployment.layout import position

_VERBS: Final = ("get", "list", "delete")


def add_remove_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the consent to lose objects, and how long is waited."""
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument(
        "--delete-objects",
        action="store_true",
        help="do not ask before objects of the operator's own kinds are deleted",
    )
    add_timeout_argument(parser, "everything has gone")


class _Removal(Struct, frozen=True):
    """What goes, what is kept, and the objects that go with their definitions."""

    steps: list[PlannedChange]
    custom: list[CustomObjects]
    warning: str = ""

    @property
    def count(self) -> int:
        """How many custom objects go."""
        return sum(len(each.objects) for each in self.custom)


class Remains(Struct, frozen=True):
    """What there may be of an operator in a cluster."""

    operator: Operator
    objects: Sequence[Object]
    """Those that are deployed of it."""
    kinds: Sequence[type[Object]]
    """The kinds among which objects of earlier versions are looked for, by labels."""
    made: Sequence[Object] = ()
    """What it makes by itself, under fixed names."""
    kept: Sequence[Object] = ()
    """Those of the objects that stay."""


def remove(remains: Remains, cluster: TargetCluster, options: argparse.Namespace) -> None:
    """Show what goes, and remove it, with the user's consent where objects go or the cluster is not local."""
    removal = asyncio.run(_planned(remains, cluster))
    for step in removal.steps:
        print(f"  {step}")
    if not removal.steps:
        print("  nothing of it is there")
    sys.stdout.flush()
    if removal.warning:
        print(f"warning: {removal.warning}", file=sys.stderr)
    if options.dry_run or not changes(removal.steps):
        return
    if removal.count and not options.delete_objects:
        counts = " and ".join(str(each) for each in removal.custom if each.objects)
        ask(f"Delete {counts} from {cluster}?", f"{counts} would be deleted: confirm with --delete-objects")
    else:
        cluster.consent(yes=options.yes)
    asyncio.run(_removed(removal, cluster, options))
    print(f"{len(changes(removal.steps)) + removal.count} deleted")


async def _planned(remains: Remains, cluster: TargetCluster) -> _Removal:
    async with cluster.client() as client, permitted(client, remains.objects, *_VERBS):
        kept = {(type(each), each.key) for each in remains.kept}
        wanted = [each for each in remains.objects if (type(each), each.key) not in kept]
        found = [each for each in [await _find(client, obj) for obj in wanted] if each is not None]
        seen = kept | {(type(each), each.key) for each in found}
        found += [
            each
            async for each in labelled(client, remains.operator, remains.kinds)
            if (type(each), each.key) not in seen
        ]
        made = [each for each in [await _find(client, obj) for obj in remains.made] if each is not None]
        defined = {
            (each.spec.group, each.spec.names.kind) for each in found if isinstance(each, CustomResourceDefinition)
        }
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
                going = [step.obj for step in changes(steps)]
                reason = await reason_to_keep(client, remains.operator, each.metadata.name, going, remains.kept)
                steps.append(PlannedChange(Verb.KEEP if reason else Verb.DELETE, each, reason))
            else:
                steps.append(PlannedChange(Verb.DELETE, each))
        return _Removal(steps, custom, await _warning(client, remains.operator, custom))


async def _find(client: Client, obj: Object) -> Object | None:
    """The object, if there is any; there is none of a kind that the server does not serve."""
    try:
        return await client.find(obj)
    except NotFound:
        return None


def _last_first(found: Iterable[Object], made: Iterable[Object]) -> list[Object]:
    """Definitions first, then in the reverse of the order in which objects are applied. What a program has made goes
    when it has ended, and namespaces with all that is left in them.
    """
    ordered = sorted(found, key=position, reverse=True)
    first = [obj for obj in ordered if isinstance(obj, CustomResourceDefinition)]
    last = [obj for obj in ordered if isinstance(obj, Namespace)]
    return [*first, *(obj for obj in ordered if obj not in first and obj not in last), *made, *last]


async def _warning(client: Client, operator: Operator, custom: Sequence[CustomObjects]) -> str:
    if not any(each.has_finalizers for each in custom):
        return ""
    deployed = await client.find(Deployment, operator.name, namespace=operator.namespace)
    if deployed is not None and deployed.status.ready_replicas:
        return ""
    return (
        f"no replica of {operator.name} is ready in this cluster, and there are objects with finalizers: they go when "
        "the operator has cleaned up after them"
    )


async def _removed(removal: _Removal, cluster: TargetCluster, options: argparse.Namespace) -> None:
    deadline = Deadline(options.timeout)
    going = [step.obj for step in changes(removal.steps)]
    async with cluster.client() as client, permitted(client, going, *_VERBS):
        with StatusLine() as line:
            agreed = [] if options.delete_objects else removal.custom
            await check_none_is_new(client, agreed)
            await delete_custom_objects(client, removal.custom, deadline=deadline, line=line)
            await check_none_is_new(client, agreed)
            for obj in going:
                line.doing(f"delete {described(obj)}")
                propagation: Propagation | None = "Foreground" if isinstance(obj, Deployment) else None
                with suppress(NotFound):
                    await client.delete(obj, uid=obj.metadata.uid, propagation=propagation)
                if isinstance(obj, CustomResourceDefinition | Deployment):
                    # Definitions need the operator until their objects have gone, and its pods need its roles.
                    await _gone(client, obj, deadline, line)
            for obj in going:
                await _gone(client, obj, deadline, line)


async def _gone(client: Client, obj: Object, deadline: Deadline, line: StatusLine) -> None:
    async def reasons() -> list[str]:
        found = await _find(client, obj)
        if found is None or found.metadata.uid != obj.metadata.uid:
            return []
        return [f"{described(obj)} to go: {await _blocked(client, found)}"]

    if left := await wait_until_none(reasons, deadline=deadline, line=line):
        raise StillThere(f"not gone after {deadline.timeout:g} s: {left[0]}")


async def _blocked(client: Client, obj: Object) -> str:
    """What an object that is being deleted waits for."""
    match obj:
        case Namespace():
            messages = [each.message for each in obj.status.conditions if each.status == "True" and each.message]
            return "; ".join(messages) or "what is in it is being deleted"
        case Deployment():
            pods = await client.list(Pod, namespace=obj.metadata.namespace, labels=obj.spec.selector)
            names = ", ".join(pod.metadata.name for pod in pods)
            return f"its pods are ending: {names}" if names else "its pods are ending"
        case CustomResourceDefinition():
            left = await custom_objects(client, obj)
            return f"{left} are still there" if left.objects else "its objects are being deleted"
    return f"finalizers {', '.join(obj.metadata.finalizers) or 'none'}"
