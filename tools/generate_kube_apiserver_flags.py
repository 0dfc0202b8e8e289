"""The command: `python -m tools.generate_kube_apiserver_flags`.

Writes the flags of the pinned kube-apiserver, each with the type of its value, for the program that stands for it.
"""

from __future__ import annotations

import re
import subprocess
import sys

from kubewright.controlplane import ControlPlaneError
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.envtest.kube_apiserver import FLAGS

_FLAG = re.compile(r"^ +(?:-\w, )?--([\w-]+)(?: (\S+))?(?:  |$)", re.MULTILINE)


def main() -> int:
    """Write the file; 1 when there is no kube-apiserver."""
    try:
        program = find_binaries(controller_manager=False).kube_apiserver
    except ControlPlaneError as error:
        print(f"kubewright: cannot list the flags of kube-apiserver: {error}", file=sys.stderr)
        return 1
    lines = flags_in_help(subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout)
    FLAGS.write_text("".join(f"{line}\n" for line in lines))
    print(f"wrote {len(lines)} flags to {FLAGS}")
    return 0


def flags_in_help(text: str) -> list[str]:
    """`name type` for each flag, and `name` for one that needs no value, from what `--help` prints."""
    found = ((name, "" if "[=" in kind else kind) for name, kind in _FLAG.findall(text))
    return [f"{name} {kind}".rstrip() for name, kind in found]


if __name__ == "__main__":
    sys.exit(main())
