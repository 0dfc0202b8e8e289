from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from bench import interpreter

_SEARCHED = """
import sys, json, kopf, kubewright, bench
print(json.dumps({"modules": [json.__file__, kubewright.__file__, bench.__file__], "path": sys.path}))
"""


class _Searched(msgspec.Struct):
    modules: list[str]
    path: list[str]


def test_the_standard_library_is_searched_before_our_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    python = interpreter._installed(sys.executable)
    assert python is not None
    done = subprocess.run(
        [python, "-c", _SEARCHED], env=interpreter.environment(), check=True, stdout=subprocess.PIPE, cwd="/"
    )
    found = msgspec.json.decode(done.stdout, type=_Searched)
    standard, ours, benchmarks = [
        next(position for position, folder in enumerate(found.path) if folder and module.startswith(f"{folder}/"))
        for module in found.modules
    ]
    assert standard < ours
    assert standard < benchmarks
    assert "/elsewhere" not in found.path


def test_bytecode_is_written_whichever_program_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in interpreter.environment()


def test_a_python_that_cannot_run_our_programs_is_never_the_fastest() -> None:
    assert interpreter._installed("/nonexistent/python3.11") is None
    assert interpreter._sample("/nonexistent/python3.11") == float("inf")
