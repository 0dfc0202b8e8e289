"""What all operators that come with kubewright have in common."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kubewright import Client
from kubewright.api import Dynamic, Object
from kubewright.api.codec import from_json
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import resource_info
from kubewright.manifest.documents import documents
from kubewright.testing import Install

ROOT = Path(__file__).parents[2] / "operators"
OPERATORS = sorted(path.parent.name for path in ROOT.glob("*/__main__.py"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT.parent, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


@pytest.mark.parametrize("name", OPERATORS)
def test_an_installed_operator_can_be_run(name: str, installed: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"kubewright_operators.{name}", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    answer = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    assert name in answer.stdout
    assert "--kubeconfig" in answer.stdout
    assert not list((installed / "kubewright_operators").glob("**/tests"))


@pytest.mark.parametrize("name", OPERATORS)
async def test_the_samples_of_an_operator_are_accepted(
    name: str, admin: Client, namespace: str, install: Install
) -> None:
    module = importlib.import_module(f"operators.{name}")
    kinds = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, Object)]
    await install(*kinds)
    types = {resource_info(kind).gvk: kind for kind in kinds}
    samples = sorted((ROOT / name / "samples").glob("*.yaml"))
    assert samples
    for path in samples:
        for document in documents(path.read_text(), path.name):
            found = from_json(Dynamic, document.value)
            gvk = GroupVersionKind.parse(found.api_version, found.kind)
            sample = from_json(types[gvk], document.value)
            created = await admin.in_namespace(namespace).create(sample, dry_run=True, field_validation="Strict")
            assert (created.api_version, created.kind) == (gvk.api_version, gvk.kind)


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_explained_and_drawn(name: str) -> None:
    text = (ROOT / name / "README.md").read_text()
    assert "```mermaid" in text
    assert f"python -m kubewright_operators.{name}" in text
    for file in (ROOT / name).glob("*.py"):
        assert file.name.startswith("__") or f"`{file.name}`" in text
