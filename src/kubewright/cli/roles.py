"""`kubewright roles`: what an operator may do, what it has really used, and the difference."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kubewright.api.codec import to_json
from kubewright.api.errors import KubernetesError
from kubewright.api.rbac.v1 import ClusterRole, Role
from kubewright.cli.arguments import command_parser
from kubewright.cli.named_operator import NamedOperator, add_operator_arguments, named_operator
from kubewright.cli.used_permissions import granted, used_permissions
from kubewright.deployment.declared import own_permissions
from kubewright.manager.roles import Grant, grants_of, roles_of
from kubewright.manifest.yaml import to_yaml
from kubewright.testing.roles import compare_grants

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "roles",
        summary="print the roles of an operator, or compare them with what it has used",
        description="Print the roles that an operator declares; with --used, the least ones that the requests in FILE "
        "needed, which come from a test run or from the audit log of an API server.",
        examples=[
            "kubewright roles podmanager",
            "pytest --record-permissions used.jsonl && kubewright roles podmanager --used used.jsonl --check",
        ],
    )
    add_operator_arguments(parser)
    parser.add_argument(
        "--used",
        type=Path,
        metavar="FILE",
        help="what pytest --record-permissions FILE, or a kube-apiserver with --audit-log-path, has written",
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="NAME",
        help="whose requests in FILE count; may be repeated (default: its ServiceAccount, and the users of tests)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="print what is declared and never used, and what was used and is not declared; exit with 1 if anything is",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if options.used is None and (options.check or options.user):
        given = "--check" if options.check else "--user"
        raise KubernetesError(f"{given} is about what was used: add --used FILE")
    named = asyncio.run(named_operator(options))
    if options.used is None:
        _print(named.operator.bound_roles)
        return
    used = used_permissions(options.used, named.operator, options.user)
    for warning in used.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not options.check:
        _print(roles_of(named.operator.name, used.permissions()))
        return
    permitted = granted(named.operator.bound_roles)
    difference = compare_grants(asyncio.run(_needed(named, permitted)), permitted, used.grants)
    if difference:
        print(difference, flush=True)
        sys.exit(f"kubewright: the roles of {named.operator.name} are not what was used")


async def _needed(named: NamedOperator, permitted: set[Grant]) -> set[Grant]:
    """What the program itself needs. Its election, certificates and metrics are not its own tests' to use."""
    if named.setup is None:
        return permitted
    return grants_of(await own_permissions(named.operator, named.setup.function, options=named.setup.options))


def _print(roles: Iterable[ClusterRole | Role]) -> None:
    print("---\n".join(to_yaml(to_json(role)) for role in roles), end="")
