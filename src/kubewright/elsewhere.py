"""Where names are that are not at the front door. Imported only when one is looked for there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

_HOMES = ("api", "client", "cache", "controller", "manager", "patterns")
_NAMES = {
    "TemporaryError": "raise any error: the reconcile is retried with back-off",
    "PermanentError": "raise TerminalError",
}
"""What there is in kopf, and what takes its place."""


def check_home(name: str) -> None:
    """Raise an ImportError that says where a name is which is not at the front door, if it is anywhere."""
    fix = _NAMES.get(name)
    if fix is None:
        homes = (f"kubewright.{each}" for each in _HOMES)
        home = next((each for each in homes if name in import_module(each).__all__), None) or _home_of_kind(name)
        fix = f"write from {home} import {name}" if home else None
    if fix is not None:
        raise ImportError(f"cannot import name {name!r} from 'kubewright': {fix}", name="kubewright")


def _home_of_kind(name: str) -> str | None:
    """The module that has a structure of Kubernetes itself. Its source is read: to import them all takes a second."""
    folder = Path(__file__).parent / "api"
    for path in sorted(folder.glob("*/v*")):
        sources = path.glob("*.py") if path.is_dir() else [path]
        if any(f"\nclass {name}(" in source.read_text() for source in sources):
            return ".".join(("kubewright", "api", *path.relative_to(folder).with_suffix("").parts))
    return None
