"""The command line: finds the subcommand, and turns what a person did wrong into one line on standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kubewright.api.errors import KubernetesError
from kubewright.cli import controlplane
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.version import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Ends the process with 2 for a wrong use and 1 for a failure."""
    parser = argparse.ArgumentParser(
        prog="kubewright",
        description="Kubernetes operators in Python.",
        epilog="example: kubewright controlplane --kubeconfig ./kubeconfig",
    )
    parser.add_argument("--version", action="version", version=f"kubewright {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    controlplane.add_command(commands)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (ControlPlaneError, KubernetesError, OSError) as error:
        sys.exit(f"kubewright: {error}")
