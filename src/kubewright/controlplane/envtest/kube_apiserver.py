"""The program that stands for kube-apiserver: the embedded server with kube-apiserver's flags.

It is run by its path, so that `--help`, by which envtest finds out which flags there are, imports nothing.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

FLAGS = Path(__file__).with_name("kube_apiserver_flags.txt")
"""The flags of the pinned kube-apiserver, each with the type of its value."""


def main(arguments: Sequence[str]) -> None:
    """Serve until SIGTERM or SIGINT. Ends the process with 1 where that is not possible."""
    if not {"-h", "--help"}.isdisjoint(arguments):
        listed = "\n".join(f"      --{line}" for line in FLAGS.read_text().splitlines())
        sys.stdout.write(f"kube-apiserver on the embedded control plane of kubewright.\n\nFlags:\n{listed}\n")
        return
    # Until the server runs there is nothing to keep: an interrupt ends the process, without Python's traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kubewright.controlplane.envtest.serving import run

    run(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
