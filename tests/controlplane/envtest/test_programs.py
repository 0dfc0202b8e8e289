from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kubewright.controlplane import ControlPlaneError
from kubewright.controlplane.envtest.programs import lay_down


def test_the_programs_are_executable_from_any_folder(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "it's a folder" / "assets", tmp_path / "elsewhere"
    elsewhere.mkdir()
    # As a Go project may well have: it must not be found in the place of Python's own.
    (elsewhere / "json.py").write_text("raise ImportError('the wrong one')\n")
    lay_down(directory)
    assert sorted(path.name for path in directory.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
    for program, option in (("etcd", "--version"), ("kube-apiserver", "--version"), ("kubectl", "version")):
        arguments = [option, "--client"] if program == "kubectl" else [option]
        said = subprocess.run([directory / program, *arguments], cwd=elsewhere, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr


def test_laying_down_again_replaces_what_was_laid_down(tmp_path: Path) -> None:
    lay_down(tmp_path)
    before = (tmp_path / "etcd").read_text()
    (tmp_path / "etcd").write_text(before + "# of an older version\n")
    lay_down(tmp_path)
    assert (tmp_path / "etcd").read_text() == before


def test_programs_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_bytes(b"\x7fELF")
    with pytest.raises(ControlPlaneError, match="kubectl' is not a program that this command has written"):
        lay_down(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kubectl"]
    lay_down(tmp_path, force=True)
    assert (tmp_path / "kubectl").read_text().startswith("#!/bin/sh\n")


def test_without_a_kubectl_there_is_one_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "assets"))
    lay_down(tmp_path / "assets")
    lay_down(tmp_path / "assets")  # and does not take it for one
    said = subprocess.run([tmp_path / "assets" / "kubectl", "get", "pods"], capture_output=True, text=True)
    assert said.returncode == 1
    assert "python -m kubewright.controlplane.binaries" in said.stderr
    assert os.access(tmp_path / "assets" / "kube-apiserver", os.X_OK)


def test_what_cannot_be_written_is_said_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "kubectl").mkdir()
    with pytest.raises(ControlPlaneError, match=r"cannot write '.*kubectl': Is a directory"):
        lay_down(tmp_path, force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
