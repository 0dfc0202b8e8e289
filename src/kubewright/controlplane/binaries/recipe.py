"""What the binaries are made of: the Go module next to this file, and how it is compiled."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from functools import cache
from pathlib import Path

MODULE_DIRECTORY = Path(__file__).parent
MODULE_FILES = ("go.mod", "go.sum", "binaries.go")
# Program → the Go package it is built from.
PROGRAMS = {
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "etcd": "go.etcd.io/etcd/server/v3",
}
# -trimpath keeps the paths of the machine out of the programs. `go list` needs the same flags as `go build`, or what
# it calls stale is not what is going to be compiled.
FLAGS = ("-mod=readonly", "-trimpath")
# Static programs, as Kubernetes releases them, whatever workspace the user is in.
ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off"}


@cache
def _go_mod() -> str:
    return (MODULE_DIRECTORY / "go.mod").read_text()


def _required(pattern: str) -> str:
    match = re.search(pattern, _go_mod(), re.MULTILINE)
    if match is None:
        raise AssertionError(f"{MODULE_DIRECTORY / 'go.mod'} has no line that matches {pattern!r}")
    return match[1]


def kubernetes_version() -> str:
    """The pinned version, such as `v1.36.4`."""
    return _required(r"^\s*k8s\.io/kubernetes (v\S+)$")


def etcd_version() -> str:
    """The pinned version, such as `v3.6.8`."""
    return _required(r"^\s*go\.etcd\.io/etcd/server/v3 (v\S+)$")


def go_version() -> tuple[int, int]:
    """The oldest Go that compiles this, such as (1, 26)."""
    major, minor = _required(r"^go (\d+\.\d+)").split(".")
    return int(major), int(minor)


def linker_flags() -> str:
    """Without symbols, and with the version that a released Kubernetes reports."""
    major, minor, _ = kubernetes_version().removeprefix("v").split(".")
    stamps = {"gitVersion": kubernetes_version(), "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{name}={stamp}" for name, stamp in stamps.items())])


def folder_name() -> str:
    """Names the result of this recipe on this machine; a changed recipe has another name."""
    recipe = [_go_mod(), linker_flags(), PROGRAMS, FLAGS, ENVIRONMENT]
    fingerprint = hashlib.sha256(repr(recipe).encode()).hexdigest()[:8]
    return f"{kubernetes_version()}-{sys.platform}-{platform.machine()}-{fingerprint}"
