"""Laying down kube-apiserver, etcd and kubectl in a folder, for `KUBEBUILDER_ASSETS`.

The first two are shell scripts that start this package with this Python; they hold nothing else, so that upgrading the
package upgrades them. kubectl is the real one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from kubewright.controlplane.binaries import cached_directory, needed_go
from kubewright.controlplane.errors import ControlPlaneError

_MARK = "# Laid down by `kubewright controlplane --envtest-dir`."
_HERE = Path(__file__).parent


def lay_down(directory: Path, *, force: bool = False) -> None:
    """Write the three programs; the folder is made where it is missing.

    Raises ControlPlaneError, before anything is written, where a program of someone else would be overwritten without
    `force`.
    """
    kubectl = _real_kubectl(directory)
    scripts = {
        "kube-apiserver": _starting("kube_apiserver.py"),
        "etcd": _starting("etcd.py"),
        "kubectl": _without_kubectl() if kubectl is None else f'exec {shlex.quote(str(kubectl))} "$@"\n',
    }
    if not force:
        for name in scripts:
            _must_be_ours(directory / name)
    directory.mkdir(parents=True, exist_ok=True)
    for name, script in scripts.items():
        _write(directory / name, f"#!/bin/sh\n{_MARK}\n{script}")


def _starting(module: str) -> str:
    # By path and not with -m, so that `--help`, which envtest calls before each start, imports nothing. With -P the
    # folder that a suite runs in does not hide Python's own modules.
    return f'exec {shlex.quote(sys.executable)} -P {shlex.quote(str(_HERE / module))} "$@"\n'


def _real_kubectl(directory: Path) -> Path | None:
    cached = cached_directory() / "kubectl"
    if os.access(cached, os.X_OK):
        return cached
    found = shutil.which("kubectl")
    # Not ours, where the folder is on the PATH already.
    return None if found is None or Path(found).resolve().parent == directory.resolve() else Path(found).absolute()


def _without_kubectl() -> str:
    sentence = (
        f"kubectl: there was none when this folder was made: build it with {needed_go()} "
        "(python -m kubewright.controlplane.binaries) or install it, and run the command again: "
        "kubewright controlplane --envtest-dir DIR"
    )
    return f"echo {shlex.quote(sentence)} >&2\nexit 1\n"


def _must_be_ours(path: Path) -> None:
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            ours = _MARK.encode() in file.read(256)
    except OSError:
        ours = False
    if not ours:
        raise ControlPlaneError(
            f"{str(path)!r} is not a program that this command has written: name another folder with --envtest-dir "
            "DIR, or overwrite it with --force"
        )


def _write(path: Path, text: str) -> None:
    """Replace the file in one step: a suite may be running the old one, and a link is not followed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ControlPlaneError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
