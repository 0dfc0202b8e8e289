"""The command: `python -m tools.controller_gen`.

Runs controller-gen, a tool of the Go module in this directory, on the packages in it. Its definition of their kind,
without descriptions, and the names of its markers go to tests/manifest/controller_gen, where tests compare them with
ours; and a digest of the packages, by which a test finds that they were changed since.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

_MODULE = Path(__file__).parent
_OUTPUT = _MODULE.parents[1] / "tests" / "manifest" / "controller_gen"


def main() -> None:
    """Write the files."""
    _run("crd:allowDangerousTypes=true,maxDescLen=0", "paths=./...", f"output:crd:dir={_OUTPUT}")
    categories = json.loads(_run("-wwww", "crd"))
    names = {marker["name"] for category in categories for marker in category["markers"]}
    (_OUTPUT / "markers.txt").write_text("".join(f"{name}\n" for name in sorted(names)))
    (_OUTPUT / "digest.txt").write_text(f"{digest()}\n")


def digest() -> str:
    """The digest of what is rendered: the types in Go, and the version of controller-gen among the modules."""
    files = [*sorted(_MODULE.glob("*/types.go")), _MODULE / "go.mod"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _run(*arguments: str) -> str:
    return subprocess.run(
        ["go", "tool", "controller-gen", *arguments], cwd=_MODULE, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    main()
