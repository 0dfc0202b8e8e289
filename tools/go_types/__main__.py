"""The command: `python -m tools.go_types`. It needs `go` and the modules that `make control-plane` fetches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kubewright.api.builtin import MODULES
from kubewright.api.scheme import built_in_kinds

_VERSION = "v0.36.4"
_TARGET = Path(__file__).parents[2] / "src/kubewright/controlplane/embedded/builtins/go_types.json"
_ELSEWHERE = {
    "apiextensions": "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions",
    "apiregistration": "k8s.io/kube-aggregator/pkg/apis/apiregistration",
    "resource_k8s_io": "k8s.io/api/resource",
}


def main() -> int:
    """Write the table; 1 when Go cannot make it."""
    folder = Path(__file__).parent
    modules = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    command = ["go", "run", str(folder / "main.go"), f"{modules}/k8s.io", _VERSION, *_kinds()]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        print(f"kubewright: cannot read Kubernetes' Go types: {made.stderr.strip()}", file=sys.stderr)
        return 1
    _TARGET.write_text(made.stdout, encoding="utf-8")
    print(f"wrote {_TARGET}")
    return 0


def _kinds() -> list[str]:
    """The kinds of stable versions, as `<Go package>#<Name>`."""
    found = []
    for api_version, module in MODULES.items():
        group, version = module.split(".")[-2:]
        if "beta" not in version:
            package = _ELSEWHERE.get(group, f"k8s.io/api/{group}")
            found += [f"{package}/{version}#{cls.__name__}" for cls in built_in_kinds(api_version)]
    return found


if __name__ == "__main__":
    sys.exit(main())
