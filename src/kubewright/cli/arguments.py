"""Parsers of commands, and values of arguments, with the sentence for those that are none."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubewright.manager.durations import parse_duration

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
    """To which a command is added."""


def command_parser(
    commands: Commands, name: str, *, summary: str, description: str, examples: Sequence[str]
) -> argparse.ArgumentParser:
    """A new command, whose help ends with examples."""
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog="\n  ".join(["examples:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def duration(text: str) -> float:
    """The seconds of a duration such as 90s, 5m or 1h30m."""
    try:
        return parse_duration(text).total_seconds()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: expected one such as 90s, 5m or 1h30m") from None


def directory(text: str) -> Path:
    """The path of a directory. What a variable that is not set gives is not the current one."""
    if not text:
        raise argparse.ArgumentTypeError("no directory: expected one such as bin/envtest, or . for this one")
    return Path(text)


def add_timeout_argument(parser: argparse.ArgumentParser, until: str) -> None:
    """Add how long the command may take."""
    parser.add_argument(
        "--timeout",
        type=duration,
        default=duration("5m"),
        metavar="DURATION",
        help=f"how long to wait until {until}, and for whatever comes before that (default 5m)",
    )
