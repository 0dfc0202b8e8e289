"""`python -m tests.fuzz [--minutes 15] [--seed 1]`: fuzz an embedded control plane, a new one for every 2,000 requests.

It ends with an error at the first problem; its seed repeats it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter

from tests.fuzz.run import fuzz


def main() -> None:
    """Run until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--go-on", action="store_true", help="print problems and continue")
    options = parser.parse_args()
    end, seed = time.monotonic() + options.minutes * 60, options.seed
    statuses: Counter[int] = Counter()
    slowest: list[tuple[float, str]] = []
    problems = 0
    while time.monotonic() < end:
        outcome = asyncio.run(fuzz(seed, 2000, until=end))
        statuses += outcome.statuses
        slowest = sorted([*slowest, *outcome.slowest])[-5:]
        problems += len(outcome.problems)
        if outcome.problems:
            sys.stdout.write("\n".join([f"seed {seed}:", *outcome.problems, ""]))
            sys.stdout.flush()
            if not options.go_on:
                break
        seed += 1
    for seconds, request in reversed(slowest):
        sys.stdout.write(f"{seconds:.2f} s of CPU: {request[:300]}\n")
    sys.stdout.write(f"{statuses.total()} requests, seeds {options.seed} to {seed - 1}, {problems} problems\n")
    sys.stdout.write(f"{dict(sorted(statuses.items()))}\n")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
