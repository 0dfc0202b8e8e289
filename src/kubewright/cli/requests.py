"""`kubewright requests`: the requests of a cluster, of any kind whose status is a `RequestStatus`."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Event
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.cli.arguments import duration
from kubewright.cli.cluster.target import (
    TargetCluster,
    add_cluster_arguments,
    add_consent_argument,
    cluster_of,
)
from kubewright.cli.printable import printable_line
from kubewright.cli.request_kinds import PHASES, request_kinds
from kubewright.cli.request_objects import RequestFilter, RequestObject, request_of, requests_of
from kubewright.client import Client
from kubewright.client.errors import BadRequest, Conflict, Forbidden, Invalid, NotFound
from kubewright.manifest.yaml import to_yaml
from kubewright.patterns.request_status import FINISHED

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_COLUMNS: Final = ("KIND", "NAMESPACE", "NAME", "USER", "PHASE", "AGE", "MESSAGE")
_MAX_MESSAGE: Final = 60


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = commands.add_parser(
        "requests",
        help="list, show and clean up requests",
        description="Requests are objects of any kind whose status is a kubewright.patterns.RequestStatus: in its "
        "definition it has the phases Pending, Processing, Completed and Failed, a rule that lets them only go "
        "forward, and a completionTime.",
        epilog="""examples:
  kubewright requests list -A --phase Failed
  kubewright requests cleanup --older-than 24h --dry-run""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parts = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_list(parts)
    _add_show(parts)
    _add_cleanup(parts)


def _add_list(commands: Commands) -> None:
    parser = commands.add_parser(
        "list",
        help="list requests",
        description="List requests. Their age is the time since they ended, or since their creation.",
        epilog="""examples:
  kubewright requests list
  kubewright requests list operationrequests --user alice --phase Failed -o json""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_selection(parser, PHASES)
    parser.add_argument(
        "--older-than", type=_age, metavar="AGE", help="only those of at least this age, such as 90m or 7d"
    )
    _add_output(parser, "table")
    add_cluster_arguments(parser)
    parser.set_defaults(run=_list)


def _add_show(commands: Commands) -> None:
    parser = commands.add_parser(
        "show",
        help="show one request, and its events",
        description="Show what is requested, what became of it, and the events about it.",
        epilog="""examples:
  kubewright requests show operationrequest/grant-alice
  kubewright requests show deleterequests.user.example.com/alice -o json""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("request", metavar="KIND/NAME", help="the kind and the name of the request")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="its namespace (default: that of the context)")
    _add_output(parser, "yaml")
    add_cluster_arguments(parser)
    parser.set_defaults(run=_show)


def _add_cleanup(commands: Commands) -> None:
    parser = commands.add_parser(
        "cleanup",
        help="delete requests that ended some time ago",
        description="Delete requests that are Completed or Failed, and have been so for some time. One that changes "
        "meanwhile is kept. In a pod nothing is asked: kubewright.deployment.RequestCleanup makes a CronJob of it.",
        epilog="""examples:
  kubewright requests cleanup --older-than 24h --dry-run
  kubewright requests cleanup operationrequests --older-than 7d --phase Failed -A --yes""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_selection(parser, FINISHED)
    parser.add_argument(
        "--older-than", type=_age, required=True, metavar="AGE", help="how long ago they ended, such as 90m, 24h or 7d"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be deleted")
    add_cluster_arguments(parser)
    add_consent_argument(parser)
    parser.set_defaults(run=_cleanup)


def _add_selection(parser: argparse.ArgumentParser, phases: Sequence[str]) -> None:
    parser.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help="a kind, a plural, PLURAL.GROUP or PLURAL.VERSION.GROUP, which needs no right to read definitions "
        "(default: all kinds of requests)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-n", "--namespace", metavar="NAME", help="only there (default: that of the context)")
    where.add_argument("-A", "--all-namespaces", action="store_true", help="in all namespaces")
    parser.add_argument(
        "--phase",
        action="append",
        choices=phases,
        default=[],
        help=f"only those in this phase: {', '.join(phases)}; may be repeated",
    )
    parser.add_argument("--user", default="", metavar="NAME", help="only those with this spec.user")


def _add_output(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("-o", "--output", choices=[default, "json"], default=default, help=f"(default {default})")


def _age(text: str) -> timedelta:
    seconds = duration(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no age: expected one above 0, such as 90m, 24h or 7d")
    return timedelta(seconds=seconds)


def _filter(options: argparse.Namespace) -> RequestFilter:
    return RequestFilter(options.phase, options.user, options.older_than)


# List


def _list(options: argparse.Namespace) -> None:
    found, namespace = asyncio.run(_listed(options))
    if options.output == "json":
        items = [to_json(request.obj) for request in found]
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))
    elif found:
        _print_table(found)
    else:
        print(f"no requests{_where(namespace)}", file=sys.stderr)


async def _listed(options: argparse.Namespace) -> tuple[list[RequestObject], str]:
    async with cluster_of(options).client() as client:
        kinds, namespace = await request_kinds(client, options.kinds), _namespace(client, options)
        return [each async for each in requests_of(client, kinds, namespace, _filter(options))], namespace


def _namespace(client: Client, options: argparse.Namespace) -> str:
    """Empty for all."""
    return "" if options.all_namespaces else options.namespace or client.namespace


def _where(namespace: str) -> str:
    """Not all of them: those that are missed may be elsewhere."""
    return f" in the namespace {namespace} (-A: in all namespaces)" if namespace else ""


def _print_table(found: Iterable[RequestObject]) -> None:
    rows = [_COLUMNS, *sorted(_cells(request) for request in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        print("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _cells(request: RequestObject) -> tuple[str, ...]:
    obj, status = request.obj, request.status
    user, message = printable_line(request.user), printable_line(status.message)
    shown = message if len(message) <= _MAX_MESSAGE else f"{message[: _MAX_MESSAGE - 1]}…"
    cells = (obj.kind, obj.metadata.namespace, obj.metadata.name, user, status.phase, request.age, shown)
    return tuple(cell or "-" for cell in cells[:-1]) + cells[-1:]


# Show


def _show(options: argparse.Namespace) -> None:
    kind, _, name = options.request.rpartition("/")
    if not kind or not name:
        raise KubernetesError(f'"{options.request}" does not name a request: expected KIND/NAME, such as grant/alice')
    request, events = asyncio.run(_shown(options, kind, name))
    if options.output == "json":
        print(json.dumps(to_json(request.obj), indent=2))
        return
    obj = request.obj
    print(f"{obj.kind} {obj.key}: {request.status.phase}, {request.age} ago")
    print(to_yaml({part: obj[part] for part in ("spec", "status") if part in obj.content}), end="")
    for event in events:
        print(printable_line(f"event: {event.type} {event.reason}: {event.message}"))


async def _shown(options: argparse.Namespace, kind: str, name: str) -> tuple[RequestObject, list[Event]]:
    async with cluster_of(options).client() as client:
        [found] = await request_kinds(client, [kind])
        namespace = (options.namespace or client.namespace) if found.is_namespaced else None
        try:
            obj = await client.get(found.kind, name, namespace=namespace)
        except NotFound as error:
            raise KubernetesError(f"there is no {found.kind.__name__} {ObjectKey(namespace or '', name)}") from error
        request = request_of(obj)
        if request is None:
            raise KubernetesError(f"{obj.kind} {obj.key} is not a request: its status is not one of a request")
        return request, await _events_of(client, obj) if options.output != "json" else []


async def _events_of(client: Client, obj: Dynamic) -> list[Event]:
    """The events about a request. Who may read requests may not always read these."""
    # Those of objects without a namespace are in this one.
    namespace, fields = obj.metadata.namespace or "default", {"involvedObject.uid": obj.metadata.uid}
    try:
        return await client.list(Event, namespace=namespace, fields=fields)
    except Forbidden as error:
        print(f"its events are not shown: {error}", file=sys.stderr)
        return []


# Clean up


def _cleanup(options: argparse.Namespace) -> None:
    cluster = cluster_of(options)
    found, namespace = asyncio.run(_ended(options, cluster))
    for request in found:
        verb = "would delete" if options.dry_run else "delete"
        print(f"{verb} {request.obj.kind} {request.obj.key}: {request.status.phase} {request.age} ago")
    sys.stdout.flush()
    if options.dry_run or not found:
        print(f"{len(found)} requests have ended so long ago{_where(namespace)}", file=sys.stderr)
        return
    if not cluster.is_in_cluster:
        cluster.consent(yes=options.yes)
    deleted, refused = asyncio.run(_deleted(cluster, found))
    kept = len(found) - deleted - refused
    print(f"{deleted} deleted{f', {kept} kept, which have changed meanwhile' if kept else ''}")
    if refused:
        raise KubernetesError(f"{refused} could not be deleted")


async def _ended(options: argparse.Namespace, cluster: TargetCluster) -> tuple[list[RequestObject], str]:
    wanted = RequestFilter(options.phase or FINISHED, options.user, options.older_than)
    async with cluster.client() as client:
        kinds, namespace = await request_kinds(client, options.kinds), _namespace(client, options)
        found = requests_of(client, kinds, namespace, wanted)
        return [each async for each in found if each.obj.metadata.deletion_timestamp is None], namespace


async def _deleted(cluster: TargetCluster, found: Sequence[RequestObject]) -> tuple[int, int]:
    """How many were deleted, and of how many the server refused it. One that is not as it was shown is kept."""
    deleted = refused = 0
    async with cluster.client() as client:
        for request in found:
            metadata = request.obj.metadata
            try:
                await client.delete(request.obj, uid=metadata.uid, resource_version=metadata.resource_version)
                deleted += 1
            except NotFound:
                deleted += 1
            except Conflict:
                print(f"kept {request.obj.kind} {request.obj.key}: it has changed meanwhile", file=sys.stderr)
            except (BadRequest, Forbidden, Invalid) as error:
                # An admission policy may hold just this one.
                print(f"kept {request.obj.kind} {request.obj.key}: {error}", file=sys.stderr)
                refused += 1
    return deleted, refused
