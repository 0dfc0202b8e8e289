"""`kubewright deploy`: everything that an operator consists of."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from kubewright.cli.arguments import command_parser
from kubewright.cli.cluster.applying import DesiredObjects, add_apply_arguments, apply
from kubewright.cli.cluster.target import cluster_of
from kubewright.cli.named_operator import add_image_argument, add_operator_arguments, named_operator
from kubewright.deployment import objects_of
from kubewright.manifest.errors import ManifestError

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "deploy",
        summary="deploy an operator to a cluster",
        description="Apply everything that an operator consists of, and wait until it is ready. What an earlier "
        "version had and this one has not is deleted, but for definitions. The cluster has to find the image.",
        examples=[
            "kubewright deploy podmanager --image example.com/podmanager:1.0",
            "kubewright deploy podmanager:setup --image podmanager:dev --context kind-kind -- --namespace=shop",
        ],
    )
    add_operator_arguments(parser)
    add_image_argument(parser, "that of the Operator, if one is named; required otherwise")
    parser.add_argument(
        "--move",
        action="store_true",
        help="delete it first from the namespace that it was deployed to before",
    )
    add_apply_arguments(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    named = asyncio.run(named_operator(options))
    operator = named.operator
    if named.setup is not None and options.image is None:
        # A name without a registry is that of an image on a public one, whoever may have made it.
        raise ManifestError(
            f"deploy needs --image: the image of {operator.name} where the cluster finds it, such as "
            f"example.com/{operator.name}:1.0"
        )
    service = operator.webhook_service if operator.webhooks else None
    desired = DesiredObjects(operator, objects_of(operator), service, prunes=True, moves=options.move)
    cluster = cluster_of(options)
    print(f"deploy {operator.name} to {cluster}", flush=True)
    apply(desired, cluster, options)
