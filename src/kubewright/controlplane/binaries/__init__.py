"""Finding the programs of a real control plane; `build` builds them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kubewright.controlplane.binaries.recipe import PROGRAMS, folder_name, go_version
from kubewright.controlplane.errors import BinariesNotFound, BinariesUnusable

__all__ = ["Binaries", "cached_directory", "find_binaries", "needed_go", "remedies"]

_ASSETS = "KUBEBUILDER_ASSETS"
# envtest's assets come without it, and are good enough for a control plane without it.
_OPTIONAL = "kube-controller-manager"


@dataclass(frozen=True)
class Binaries:
    """A folder that holds the programs."""

    directory: Path

    @property
    def kube_apiserver(self) -> Path:
        """The API server."""
        return self.directory / "kube-apiserver"

    @property
    def kube_controller_manager(self) -> Path:
        """The built-in controllers."""
        return self.directory / "kube-controller-manager"

    @property
    def kubectl(self) -> Path:
        """The command-line client."""
        return self.directory / "kubectl"

    @property
    def etcd(self) -> Path:
        """The database of the API server."""
        return self.directory / "etcd"


def find_binaries(*, controller_manager: bool = True) -> Binaries:
    """The programs in KUBEBUILDER_ASSETS when that is set, else those built into the user's cache.

    Raises BinariesUnusable when the first is set and lacks a program, BinariesNotFound when there are none at all.
    """
    needed = [name for name in PROGRAMS if controller_manager or name != _OPTIONAL]
    if assets := os.environ.get(_ASSETS):
        folder = Path(assets).expanduser().absolute()
        for name in needed:
            if problem := _problem(folder / name):
                raise BinariesUnusable(
                    f"{_ASSETS} is {folder}, but {name} {problem} there: it must hold {_listed(needed)}; "
                    f"unset {_ASSETS} to use those that kubewright builds"
                )
        return Binaries(folder)
    folder = cached_directory()
    if any(_problem(folder / name) for name in needed):
        raise BinariesNotFound(
            f"there is no real control plane in {folder}: build it with {needed_go()} "
            f"(python -m kubewright.controlplane.binaries), or {remedies()}"
        )
    return Binaries(folder)


def cached_directory() -> Path:
    """The folder in the user's cache that holds, or will hold, the programs of the pinned versions."""
    if sys.platform == "darwin" and "XDG_CACHE_HOME" not in os.environ:
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "kubewright" / "control-plane" / folder_name()


def needed_go() -> str:
    """The Go that building takes, such as `Go 1.26 or newer`."""
    return "Go {}.{} or newer".format(*go_version())


def remedies() -> str:
    """How to get the programs without building them, as the end of a sentence."""
    return (
        f"set {_ASSETS} to a folder with {_listed(PROGRAMS)}, "
        f"or copy {cached_directory()} from a machine of the same kind that has built it"
    )


def _problem(program: Path) -> str | None:
    if not program.is_file():
        return "is missing"
    return None if os.access(program, os.X_OK) else "is not executable"


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
