"""Pythons that are on this machine: in PATH, or where pyenv keeps its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


def find(version: str) -> Path | None:
    """A CPython of that version ("3.12") that runs; None when there is none."""
    return next((python for python in _candidates(version) if runs(python, version)), None)


def runs(python: Path, version: str) -> bool:
    """Whether it is a CPython of that version, with all that the standard library has of C.

    A name in PATH is not enough: pyenv's commands exist for versions that are switched off.
    """
    program = "import ctypes, sqlite3, ssl, zlib, platform as p; print(p.python_implementation(), p.python_version())"
    try:
        answer = subprocess.run([python, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.stdout.startswith(f"CPython {version}.")


def _candidates(version: str) -> Iterator[Path]:
    if named := shutil.which(f"python{version}"):
        yield Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from sorted((pyenv / "versions").glob(f"{version}.*/bin/python"), reverse=True)
