"""The command line: finds the subcommand, and reports a user's mistake in one line on standard error."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Final

from kubewright.api.errors import KubernetesError
from kubewright.cli.printable import printable
from kubewright.cli.suggestion import did_you_mean
from kubewright.cli.termination import Terminated, terminable
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.version import __version__

# The module of each command; only that of the given one is imported.
_COMMANDS: Final = {
    "controlplane": "controlplane",
    "deploy": "deploy",
    "generate": "generate",
    "install": "install",
    "requests": "requests",
    "roles": "roles",
    "types": "types",
    "undeploy": "undeploy",
    "uninstall": "uninstall",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command.

    Ends the process with 2 for a wrong use, 1 for a failure, 130 for an interrupt, and 143 for SIGTERM.
    """
    given, further = _split([*(sys.argv[1:] if arguments is None else arguments)])
    parser = argparse.ArgumentParser(
        prog="kubewright",
        description="Kubernetes operators in Python.",
        epilog="example: kubewright controlplane --kubeconfig ./kubeconfig",
    )
    parser.add_argument("--version", action="version", version=f"kubewright {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _check_command(given, _COMMANDS)
    for name, module in _COMMANDS.items():
        if name in given[:1] or not _COMMANDS.keys() & given[:1]:
            importlib.import_module(f"kubewright.cli.{module}").add_command(commands)
    command = _command(parser, given)
    command.allow_abbrev = False  # half an option must not be taken for one that deletes something
    options, unknown = parser.parse_known_args(given)
    if further and not hasattr(options, "arguments"):
        unknown += further
    if unknown:
        _refuse_argument(unknown[0], command)
    if further:
        options.arguments = further
    try:
        with terminable():
            options.run(options)
    except BrokenPipeError:
        # `head` has read enough; what is left of the output must not be an error at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (ControlPlaneError, KubernetesError, OSError) as error:
        sys.exit(printable("\n".join([f"kubewright: {error}", *getattr(error, "__notes__", ())])))
    except Terminated:
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    """The arguments before and after `--`."""
    end = given.index("--") if "--" in given else len(given)
    return given[:end], given[end + 1 :]


def _command(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command, or of the command within a command, that the arguments are for."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            _check_command(arguments, action.choices, parser.prog)
            if arguments and arguments[0] in action.choices:
                return _command(action.choices[arguments[0]], arguments[1:])
    return parser


def _check_command(arguments: Sequence[str], known: Collection[str], prog: str = "kubewright") -> None:
    """End the process when there is no such command; without any, and with options before it, the parser does."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in known:
        _refuse(
            f'there is no command "{arguments[0]}"{did_you_mean(arguments[0], known)} (commands: {", ".join(known)}); '
            f"see {prog} --help"
        )


def _refuse_argument(argument: str, command: argparse.ArgumentParser) -> None:
    if not argument.startswith("-"):
        _refuse(f'"{argument}" is one argument too many; see {command.prog} --help')
    option = argument.partition("=")[0]
    known = [name for action in command._actions for name in action.option_strings]
    name = command.prog.removeprefix("kubewright ")
    _refuse(f'{name} has no option "{option}"{did_you_mean(option, known)}; see {command.prog} --help')


def _refuse(sentence: str) -> None:
    sys.stderr.write(f"kubewright: {sentence}\n")
    sys.exit(2)
