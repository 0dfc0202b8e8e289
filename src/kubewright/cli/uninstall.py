"""`kubewright uninstall`: the definitions of an operator's kinds go, and their objects with them."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.cli.arguments import command_parser
from kubewright.cli.cluster.removing import Remains, add_remove_arguments, remove
from kubewright.cli.cluster.target import cluster_of
from kubewright.cli.named_operator import add_operator_arguments, named_operator
from kubewright.deployment.extensions import definitions

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "uninstall",
        summary="delete the definitions of an operator's kinds from a cluster",
        description="Delete the CustomResourceDefinitions of an operator. Objects of these kinds are deleted first, "
        "after a question, and the operator has to be running to clean up after those that have finalizers.",
        examples=[
            "kubewright uninstall podmanager --dry-run",
            "kubewright uninstall podmanager:setup --delete-objects",
        ],
    )
    add_operator_arguments(parser)
    add_remove_arguments(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    operator = asyncio.run(named_operator(options)).operator
    cluster = cluster_of(options)
    print(f"uninstall the definitions of {operator.name} from {cluster}", flush=True)
    remove(Remains(operator, definitions(operator), [CustomResourceDefinition]), cluster, options)
