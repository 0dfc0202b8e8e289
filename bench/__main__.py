"""`python -m bench [NAME …]`: run the benchmarks, or those that are named, and print one table."""

from __future__ import annotations

import importlib
import sys

from bench.figures import Figure, report

NAMES = ("http", "decode", "imports", "controlplane", "apiserver")


def main(arguments: list[str]) -> None:
    """Measure and print."""
    if {"-h", "--help"} & set(arguments):
        print(f"{__doc__}\n\nbenchmarks: {', '.join(NAMES)}\nexample: python -m bench http")
        return
    unknown = [name for name in arguments if name not in NAMES]
    if unknown:
        raise SystemExit(f"bench: there is no benchmark {', '.join(unknown)} (there are: {', '.join(NAMES)})")
    figures: list[Figure] = []
    for name in arguments or NAMES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += importlib.import_module(f"bench.{name}").run()
    print(report(figures))


if __name__ == "__main__":
    main(sys.argv[1:])
