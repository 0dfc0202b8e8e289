"""`python -m bench [--quick] [NAME …]`: run the benchmarks, or those that are named, and print one table.

--quick measures the Widget workload with 1,000 objects only, in about a minute.
"""

from __future__ import annotations

import importlib
import sys

from bench.figures import Figure, report

NAMES = (
    "http",
    "decode",
    "imports",
    "controlplane",
    "apiserver",
    "limits",
    "patterns",
    "explore",
    "webhooks",
    "users",
    "widgets",
    "wukong",
)
QUICK = "--quick"


def main(arguments: list[str]) -> None:
    """Measure and print."""
    if {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n\nbenchmarks: {', '.join(NAMES)}\nexample: python -m bench http")
        return
    names = [argument for argument in arguments if argument != QUICK]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise SystemExit(f"bench: there is no benchmark {', '.join(unknown)} (there are: {', '.join(NAMES)})")
    figures: list[Figure] = []
    for name in names or NAMES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        benchmark = importlib.import_module(f"bench.{name}")
        figures += benchmark.run_quick() if QUICK in arguments and hasattr(benchmark, "run_quick") else benchmark.run()
    print(report(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
