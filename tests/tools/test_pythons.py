from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest
from tools.pythons import __main__ as program
from tools.pythons import debian, found

OWN = ".".join(platform.python_version_tuple()[:2])


def _script(folder: Path, name: str, text: str) -> Path:
    script = folder / name
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return script


def test_a_command_in_path_that_does_not_run_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyenv has a command for each version, and refuses to run those that are switched off."""
    versions = tmp_path / "pyenv/versions/3.77.1/bin"
    versions.mkdir(parents=True)
    _script(tmp_path, "python3.77", "exit 127")
    works = _script(versions, "python", "echo CPython 3.77.1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert found.find("3.77") == works
    assert found.find("3.7") is None


def test_a_python_of_another_version_or_make_is_not_taken(tmp_path: Path) -> None:
    assert found.runs(Path(sys.executable), OWN)
    assert not found.runs(Path(sys.executable), "3.7")
    assert not found.runs(_script(tmp_path, "pypy", f"echo PyPy {OWN}.0"), OWN)


def test_the_run_names_the_versions_it_could_not_test_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "SUPPORTED", (OWN, "3.77"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.main([]) == 0
    assert capsys.readouterr().out == (
        f"kubewright: tried on Python {OWN}; not tried: 3.77 (apt-get is not on this machine)\n"
    )


def test_tests_that_fail_on_one_of_them_fail_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "SUPPORTED", ("3.77",))
    monkeypatch.setattr(found, "find", lambda version: Path(sys.executable))
    monkeypatch.setattr(program, "_environment", lambda python, version: _script(tmp_path, "python", "exit 1"))
    assert program.main([]) == 1
    assert capsys.readouterr().err == "kubewright: tests failed on Python 3.77\n"


def test_a_partly_unpacked_python_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def interrupted(version: str, folder: Path, tree: Path) -> None:
        (tree / "usr/bin").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(debian, "_unpack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        debian.fetch("3.77")
    assert list((tmp_path / "kubewright/pythons").iterdir()) == []


def test_the_error_of_apt_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path, "apt-get", "echo 'E: Unable to locate package python3.77' >&2; exit 100")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(debian.Unavailable, match=r"apt-get says: E: Unable to locate package python3\.77"):
        debian.fetch("3.77")


@pytest.mark.parametrize("folder", program.TESTS)
def test_the_tests_it_runs_exist(folder: str) -> None:
    root = Path(program.__file__).parent.parent.parent
    assert list((root / "tests" / folder).rglob("test_*.py"))
