"""`kubewright undeploy`: everything that an operator consists of goes, after it has cleaned up."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import Secret
from kubewright.api.meta import ObjectMeta
from kubewright.certificates.registrations import secret_of
from kubewright.cli.arguments import command_parser
from kubewright.cli.cluster.labelled import kinds_of
from kubewright.cli.cluster.removing import Remains, add_remove_arguments, remove
from kubewright.cli.cluster.target import cluster_of
from kubewright.cli.named_operator import add_operator_arguments, named_operator
from kubewright.deployment import objects_of
from kubewright.deployment.extensions import definitions
from kubewright.deployment.layout import required_objects

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "undeploy",
        summary="remove an operator from a cluster",
        description="Delete everything that an operator consists of. Objects of its kinds are deleted first, after a "
        "question, while it is still there to clean up after them. A namespace with other things in it is kept.",
        examples=[
            "kubewright undeploy podmanager --dry-run",
            "kubewright undeploy podmanager:setup --keep-definitions --context staging --yes",
        ],
    )
    add_operator_arguments(parser)
    parser.add_argument(
        "--keep-definitions",
        action="store_true",
        help="keep the definitions of its kinds, all of their objects, and what else it requires in the cluster",
    )
    add_remove_arguments(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    operator = asyncio.run(named_operator(options)).operator
    objects = objects_of(operator)
    keeps = options.keep_definitions
    # What an operator requires is used by what it has made: without it, that would not work either.
    kept = [*definitions(operator), *required_objects(operator)] if keeps else []
    certificates = secret_of(operator.webhook_service)
    made = [
        Lease(metadata=operator.metadata()),
        Secret(metadata=ObjectMeta(name=certificates.name, namespace=certificates.namespace)),
    ]
    kinds = [kind for kind in kinds_of(objects) if not (keeps and kind is CustomResourceDefinition)]
    cluster = cluster_of(options)
    print(f"undeploy {operator.name} from {cluster}", flush=True)
    remains = Remains(operator, objects, kinds, made, kept, is_only_there=options.namespace is not None)
    remove(remains, cluster, options)
