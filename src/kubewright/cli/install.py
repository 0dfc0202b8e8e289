"""`kubewright install`: the definitions of an operator's kinds, without the operator."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from kubewright.cli.arguments import command_parser
from kubewright.cli.cluster.applying import DesiredObjects, add_apply_arguments, apply
from kubewright.cli.cluster.target import cluster_of
from kubewright.cli.named_operator import add_operator_arguments, named_operator
from kubewright.deployment.extensions import definitions

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "install",
        summary="install the definitions of an operator's kinds in a cluster",
        description="Apply the CustomResourceDefinitions of an operator, and wait until their kinds are served. The "
        "operator itself is not deployed: run it here, with python -m PACKAGE.",
        examples=[
            "kubewright install podmanager",
            "kubewright install podmanager:setup --context staging --dry-run",
        ],
    )
    add_operator_arguments(parser)
    add_apply_arguments(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    operator = asyncio.run(named_operator(options)).operator
    cluster = cluster_of(options)
    print(f"install the definitions of {operator.name} in {cluster}", flush=True)
    apply(DesiredObjects(operator, definitions(operator)), cluster, options)
