"""docs/testing.md: its examples are a user's project, and they pass there, with nothing of ours but the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kubewright.testing

DOCUMENT = (Path(__file__).parents[2] / "docs/testing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the document, each named in its first line."""
    for _, name, text in BLOCKS:
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_examples_pass_as_a_project_of_their_own(project: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def test_the_examples_pass_mypy_strict(project: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(project / "cache"), "."]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


def test_everything_exported_is_documented_and_exists() -> None:
    for name in kubewright.testing.__all__:
        assert getattr(kubewright.testing, name).__doc__
    undocumented = {name for name in kubewright.testing.__all__ if not re.search(rf"\b{name}\b", DOCUMENT)}
    assert undocumented == {"EventCall", "NeverEnds", "RequestCount"}  # what others return or raise
