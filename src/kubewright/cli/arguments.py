"""Values of arguments, with the sentence for those that are none."""

from __future__ import annotations

import argparse

from kubewright.manager.durations import parse_duration


def duration(text: str) -> float:
    """The seconds of a duration such as 90s, 5m or 1h30m."""
    try:
        return parse_duration(text).total_seconds()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: expected one such as 90s, 5m or 1h30m") from None


def add_timeout_argument(parser: argparse.ArgumentParser, until: str) -> None:
    """Add how long is waited."""
    parser.add_argument(
        "--timeout",
        type=duration,
        default=duration("5m"),
        metavar="DURATION",
        help=f"how long to wait until {until} (default 5m)",
    )
