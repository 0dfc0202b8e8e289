"""`kubewright generate`: the manifests of an operator and the Dockerfile of its image, from its code."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kubewright.cli.arguments import command_parser, directory
from kubewright.cli.generated_files import DOCKERFILE, compared, operator_of, write
from kubewright.cli.named_operator import add_image_argument, add_operator_arguments, named_operator
from kubewright.deployment import dockerfile_of, files_of
from kubewright.manifest.errors import ManifestError

if TYPE_CHECKING:
    from kubewright.cli.arguments import Commands


def add_command(commands: Commands) -> None:
    """Add this command to the parser."""
    parser = command_parser(
        commands,
        "generate",
        summary="write the manifests and the Dockerfile of an operator",
        description="Write what is deployed of an operator: config/ in kubebuilder's layout, dist/install.yaml, and a "
        "Dockerfile unless you have your own. The samples are those in the folder samples/ beside its module. Files "
        "that were generated before and are no longer needed are removed; files of others are not touched.",
        examples=[
            "kubewright generate podmanager",
            "kubewright generate podmanager:setup --image podmanager:1.0 -- --namespace=shop",
            "kubewright generate podmanager --check",
        ],
    )
    add_operator_arguments(parser)
    add_image_argument(parser, "NAME:latest")
    parser.add_argument(
        "--output", type=directory, default=Path(), metavar="DIR", help="the directory to write to (default: this one)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing: show what differs in meaning from what would be written, and exit with 1 if anything does",
    )
    parser.add_argument(
        "--force", action="store_true", help="overwrite files in config/ and dist/ that are not of this operator"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    named = asyncio.run(named_operator(options))
    if not named.is_runnable:
        print(
            f"warning: {named.program} has no __main__.py, which its image runs: write one that calls "
            f'run(setup, name="{named.operator.name}")',
            file=sys.stderr,
        )
    files = compared(options.output, {**files_of(named.operator), DOCKERFILE: dockerfile_of(named.program)})
    if options.check:
        different = [each for each in files if not each.is_same]
        for each in different:
            sys.stdout.write(each.diff())
        if different:
            count = f"{len(different)} file{'s' if len(different) > 1 else ''}"
            sys.exit(f"kubewright: not up to date: {count} in {options.output}; run the same without --check")
        return
    former = operator_of(options.output)
    if former and former != named.operator.name and not options.force:
        raise ManifestError(
            f"the manifests in {options.output} are of the operator {former}: name another directory for those of "
            f"{named.operator.name} with --output DIR, or replace them with --force"
        )
    write(options.output, files, force=options.force)
    for each in files:
        print(f"{each.outcome:<9}  {each.path}")
