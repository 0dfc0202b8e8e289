"""`kubewright install`: the definitions of an operator's kinds, without the operator."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from kubewright.cli.cluster.applying import DesiredObjects, add_apply_arguments, apply
from kubewright.cli.cluster.target import add_cluster_arguments, add_consent_argument, cluster_of
from kubewright.cli.named_operator import add_operator_arguments, named_operator
from kubewright.deployment.extensions import definitions

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = commands.add_parser(
        "install",
        help="install the definitions of an operator's kinds in a cluster",
        description="Apply the CustomResourceDefinitions of an operator, and wait until their kinds are served. The "
        "operator itself is not deployed: run it here, with python -m PACKAGE.",
        epilog="""examples:
  kubewright install podmanager
  kubewright install podmanager:setup --context staging --dry-run""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_operator_arguments(parser)
    add_cluster_arguments(parser)
    add_apply_arguments(parser)
    add_consent_argument(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    operator = asyncio.run(named_operator(options)).operator
    cluster = cluster_of(options)
    print(f"install the definitions of {operator.name} in {cluster}", flush=True)
    apply(DesiredObjects(operator, definitions(operator)), cluster, options)
