"""The command line: finds the subcommand, and reports a user's mistake in one line on standard error."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence

from kubewright.api.errors import KubernetesError
from kubewright.cli import controlplane, types
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.version import __version__


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command. Ends the process with 2 for a wrong use and 1 for a failure."""
    given = [*(sys.argv[1:] if arguments is None else arguments)]
    parser = argparse.ArgumentParser(
        prog="kubewright",
        description="Kubernetes operators in Python.",
        epilog="example: kubewright controlplane --kubeconfig ./kubeconfig",
    )
    parser.add_argument("--version", action="version", version=f"kubewright {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    controlplane.add_command(commands)
    types.add_command(commands)
    _check_command(given, commands.choices)
    options, unknown = parser.parse_known_args(given)
    if unknown:
        _refuse_argument(unknown[0], given[0], commands.choices[given[0]])
    try:
        options.run(options)
    except (ControlPlaneError, KubernetesError, OSError) as error:
        sys.exit(f"kubewright: {error}")


def _check_command(arguments: Sequence[str], commands: Iterable[str]) -> None:
    """End the process when there is no such command; without any, and with options before it, the parser does."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands:
        known = ", ".join(commands)
        _refuse(
            f'there is no command "{arguments[0]}"{_suggestion(arguments[0], commands)} (commands: {known}); '
            "see kubewright --help"
        )


def _refuse_argument(argument: str, command: str, parser: argparse.ArgumentParser) -> None:
    if not argument.startswith("-"):
        _refuse(f'"{argument}" is one argument too many; see kubewright {command} --help')
    option = argument.partition("=")[0]
    known = [name for action in parser._actions for name in action.option_strings]
    _refuse(f'{command} has no option "{option}"{_suggestion(option, known)}; see kubewright {command} --help')


def _suggestion(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, [*known], 1)
    return f', did you mean "{close[0]}"?' if close else ""


def _refuse(sentence: str) -> None:
    sys.stderr.write(f"kubewright: {sentence}\n")
    sys.exit(2)
