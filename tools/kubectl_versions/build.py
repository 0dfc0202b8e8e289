"""Builds versions of kubectl from their Go module, once, into the user's cache.

It is kubectl's library with a `main` of its own: a tenth of what there is to compile for k8s.io/kubernetes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from kubewright.controlplane.binaries import cached_directory
from kubewright.controlplane.binaries.recipe import ENVIRONMENT

_MAIN = Path(__file__).with_name("main.go")
_STAMP = "k8s.io/component-base/version"


class BuildError(Exception):
    """A version cannot be built; the message has the last lines of what Go says."""


def built(version: str) -> Path:
    """The program of a version such as `v1.30.14`, built unless it is there already."""
    program = cached_directory().parent / f"kubectl-{version}" / "kubectl"
    if not program.exists():
        _build(version, program)
    return program


def _build(version: str, program: Path) -> None:
    major, minor, patch = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {_STAMP}.{name}={value}" for name, value in stamps.items())])
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kubectl-", dir=program.parent) as folder:
        shutil.copy(_MAIN, folder)
        _go(folder, "mod", "init", "kubectl")
        _go(folder, "get", f"k8s.io/kubectl@v0.{minor}.{patch}")
        _go(folder, "build", "-mod=mod", "-trimpath", "-ldflags", flags, "-o", "kubectl", ".")
        # Only what is complete has the name.
        Path(folder, "kubectl").rename(program)


def _go(folder: str, *arguments: str) -> None:
    environment = os.environ | ENVIRONMENT
    finished = subprocess.run(
        ["go", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if finished.returncode:
        last = "\n".join(finished.stderr.strip().splitlines()[-10:])
        raise BuildError(f"go {' '.join(arguments[:2])}: {last}")
