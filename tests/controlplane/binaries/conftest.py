from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

# Behaves as the go command does for `go env`, `go list` and `go build`, as far as build.py uses them. Each call is
# written to calls.jsonl; `mode` selects the failure.
FAKE_GO = """\
#!{python} -IS
import json, os, pathlib, signal, sys
home = pathlib.Path(__file__).parent
call = json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ), "pid": os.getpid()}}) + "\\n"
with open(home / "calls.jsonl", "ab", buffering=0) as calls:
    calls.write(call.encode())  # at once: a test may be reading
mode = (home / "mode").read_text()
if sys.argv[1] == "env":
    print("go1.25.1" if mode == "old" else "go1.26.8")
elif sys.argv[1] == "list":
    print("one\\ntwo\\n\\nthree")
elif sys.argv[1] == "build":
    print("go: downloading one v1.0.0", file=sys.stderr)
    if mode == "hang":
        with open(home / "gate") as gate:
            gate.read()
    if mode == "fail":
        print("get https://user:hush@proxy.example/one: 404", file=sys.stderr)
        sys.exit(1)
    output = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
    output.mkdir()
    etcd = "2.0" if mode == "wrong" else "3.6.8"
    for name, version in dict.fromkeys(["kube-apiserver", "kube-controller-manager", "kubectl"], "v1.36.4").items():
        (output / name).write_text(f"#!/bin/sh\\necho {{version}}\\n")
    (output / "server").write_text(f"#!/bin/sh\\necho etcd Version: {{etcd}}\\n")
    for program in output.iterdir():
        program.chmod(0o755)
    print("one\\ntwo\\nthree", file=sys.stderr)
"""


class FakeGo:
    """A folder with a go command that behaves as the test configures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        program = folder / "go"
        program.write_text(FAKE_GO.format(python=sys.executable))
        program.chmod(0o755)
        self.mode("work")

    def mode(self, mode: str) -> None:
        """work, old (version), fail, wrong (programs) or hang (until `gate` is opened)."""
        (self.folder / "mode").write_text(mode)

    def calls(self, command: str) -> list[dict[str, object]]:
        path = self.folder / "calls.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        recorded = [json.loads(line) for line in lines if line.endswith("\n")]
        return [call for call in recorded if call["arguments"][0] == command]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that will hold the built ones; nothing is built and KUBEBUILDER_ASSETS is not set."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KUBEWRIGHT_REQUIRE_REAL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kubewright" / "control-plane"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> FakeGo:
    fake = FakeGo(tmp_path / "go")
    monkeypatch.setenv("PATH", str(fake.folder), prepend=":")
    return fake


@pytest.fixture
def no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
