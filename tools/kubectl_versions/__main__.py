"""The command: `python -m tools.kubectl_versions [VERSION …] [--script NAME …]`.

Builds each version of kubectl, runs all scripts with it on both control planes, those of the test suite and the long
ones, and prints what differs. Ends with 1 when something does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.kubectl_script import BOOK, both, differences
from tools.kubectl_versions.build import BuildError, built

from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.binaries.recipe import kubernetes_version

VERSIONS = ("v1.30.14", "v1.31.3", "v1.32.3", "v1.33.13", "v1.34.13", "v1.35.10")
_SCRIPTS = (*BOOK.scripts, *BOOK.long_scripts)


def main() -> int:
    """Compare; 1 when something differs or a version cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m tools.kubectl_versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"such as {VERSIONS[0]}; without any: all")
    parser.add_argument("--script", action="append", choices=_SCRIPTS, help="only this one; may be repeated")
    options = parser.parse_args()
    versions = options.versions or [*VERSIONS, kubernetes_version()]
    try:
        programs = {version: _program(version) for version in versions}
        differing = asyncio.run(_compare(programs, options.script or _SCRIPTS))
    except (BuildError, ControlPlaneError) as error:
        print(f"kubewright: cannot compare versions of kubectl: {error}", file=sys.stderr)
        return 1
    return 1 if differing else 0


def _program(version: str) -> Path:
    return find_binaries().kubectl if version == kubernetes_version() else built(version)


async def _compare(programs: dict[str, Path], scripts: Sequence[str]) -> int:
    """How many steps differ."""
    differing = 0
    async with (
        # Without nodes, as the real one is.
        ControlPlane.embedded(nodes=0) as embedded,
        ControlPlane.real(controller_manager=True) as real,
    ):
        for version, program in programs.items():
            for script in scripts:
                namespace = f"{version.replace('.', '-')}-{script}"
                with tempfile.TemporaryDirectory(prefix="kubectl-") as folder:
                    async with both(program, (embedded, real), namespace, Path(folder)) as pair:
                        found = await differences(script, pair)
                differing += len(found)
                print(f"{version} {script}: {len(BOOK.script(script))} steps, {len(found)} differ", flush=True)
                print("\n".join(found), end="", flush=True)
    return differing


if __name__ == "__main__":
    sys.exit(main())
