"""`python -m kubewright.controlplane.binaries`: make sure that there are binaries of a real control plane."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from kubewright.controlplane.binaries import find_binaries, needed_go
from kubewright.controlplane.binaries.build import build
from kubewright.controlplane.binaries.progress import Progress
from kubewright.controlplane.binaries.recipe import etcd_version, kubernetes_version
from kubewright.controlplane.errors import BinariesNotFound, ControlPlaneError

_EXAMPLE = """\
example:
  export KUBEBUILDER_ASSETS=$(python -m kubewright.controlplane.binaries)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the folder that holds the binaries, after building them where needed. Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m kubewright.controlplane.binaries",
        description=(
            f"Print the folder with kube-apiserver, kube-controller-manager, kubectl ({kubernetes_version()}) and etcd "
            f"({etcd_version()}). KUBEBUILDER_ASSETS is used when set; otherwise they are built once, with "
            f"{needed_go()}, into the user's cache."
        ),
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--if-possible",
        action="store_true",
        help="when they cannot be built, say why and succeed all the same (unless KUBEWRIGHT_REQUIRE_REAL=1)",
    )
    parser.add_argument("--force", action="store_true", help="build into the cache even when they are there already")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(f"{_directory(force=options.force)}\n")
    except ControlPlaneError as error:
        optional = options.if_possible and os.environ.get("KUBEWRIGHT_REQUIRE_REAL") != "1"
        prefix = "kubewright: no real control plane, tests that need it will not run: " if optional else "kubewright: "
        sys.stderr.write(f"{prefix}{error}\n")
        return 0 if optional else 1
    except KeyboardInterrupt:
        sys.stderr.write("kubewright: interrupted, nothing was built\n")
        return 130
    return 0


def _directory(*, force: bool) -> Path:
    if not force:
        try:
            return find_binaries().directory
        except BinariesNotFound:
            pass
    return build(Progress(sys.stderr), force=force)


if __name__ == "__main__":
    # An orderly end by any of these leaves nothing behind, as Ctrl-C does.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)
    sys.exit(main())
