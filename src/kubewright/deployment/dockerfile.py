"""The image of an operator: small, not root, and without a shell between the container runtime and Python.

The packages are installed in a first stage and copied, so that neither sources nor caches are in the image. Python is
process 1 and gets SIGTERM itself. Bytecode is compiled when packages are installed: the file system is read-only later.
"""

from __future__ import annotations

import json
import re

from kubewright.deployment.operator import USER
from kubewright.manifest.errors import ManifestError

_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


def dockerfile_of(module: str, *, python: str = "3.13") -> str:
    """The Dockerfile of a project whose `python -m MODULE` runs the operator.

    It has a `pyproject.toml` at its root. Besides what that names, `cryptography` is installed, for certificates.
    """
    if not re.fullmatch(_MODULE, module):
        raise ManifestError(f'"{module}" is not a module: expected what python -m runs, such as "podmanager"')
    if not re.fullmatch(r"3\.\d+(\.\d+)?", python):
        raise ManifestError(f'the image cannot have Python "{python}": expected a version such as "3.13"')
    base = f"python:{python}-slim"
    return "\n".join(
        [
            f"FROM {base} AS build",
            _run("python", "-m", "venv", "/operator"),
            "COPY . /src",
            _run("/operator/bin/pip", "install", "--no-cache-dir", "/src", "kubewright[webhooks]"),
            "",
            f"FROM {base}",
            "COPY --from=build /operator /operator",
            "ENV PATH=/operator/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1",
            f"USER {USER}:{USER}",
            f"ENTRYPOINT {json.dumps(['/operator/bin/python', '-m', module])}",
            "",
        ]
    )


def _run(*command: str) -> str:
    return f"RUN {json.dumps(command)}"
