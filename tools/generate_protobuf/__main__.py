"""The command: `python -m tools.generate_protobuf`. It needs `go`, which fetches the modules it lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent
_ROOT = _FOLDER.parents[1]
_TARGETS = {
    "./table": _ROOT / "src/kubewright/controlplane/embedded/protobuf/table.json",
    "./pod_template": _ROOT / "src/kubewright/controlplane/controllers/pod_template_types.json",
    "./vectors": _ROOT / "tests/controlplane/embedded/protobuf/vectors.jsonl",
}


def main() -> int:
    """Write all files; 1 when Go cannot make one."""
    for command, target in _TARGETS.items():
        made = subprocess.run(["go", "run", command], cwd=_FOLDER, capture_output=True, text=True, check=False)
        if made.returncode:
            print(f"kubewright: cannot make {target.name}: {made.stderr.strip()}", file=sys.stderr)
            return 1
        target.write_text(made.stdout, encoding="utf-8")
        print(f"wrote {target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
