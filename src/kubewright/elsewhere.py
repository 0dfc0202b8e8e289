"""Where names are that are not at the front door. Imported only when one is looked for there."""

from __future__ import annotations

from importlib import import_module
from opcode import opmap
from pathlib import Path
from types import FrameType

_HOMES = ("api", "client", "cache", "controller", "manager", "webhook", "patterns")
_NAMES = {
    "TemporaryError": "raise any error: the reconcile is retried with back-off",
    "PermanentError": "raise TerminalError",
}
"""What there is in kopf, and what takes its place."""


def missing_name(name: str, frame: FrameType) -> ImportError | AttributeError:
    """The error for a name that is not at the front door, with where it is, if it is anywhere.

    It is an ImportError for `from kubewright import ...` in the frame, which does not show the message of an
    AttributeError, and an AttributeError for hasattr and all others.
    """
    fix = _NAMES.get(name)
    if fix is None:
        homes = (f"kubewright.{each}" for each in _HOMES)
        home = next((each for each in homes if name in import_module(each).__all__), None) or _home_of_kind(name)
        fix = f"write from {home} import {name}" if home else None
    if fix is None:
        return AttributeError(f"module 'kubewright' has no attribute {name!r}")
    if frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from 'kubewright': {fix}", name="kubewright")
    return AttributeError(f"module 'kubewright' has no attribute {name!r}: {fix}")


def _home_of_kind(name: str) -> str | None:
    """The module that has a structure of Kubernetes itself. Its source is read: to import them all takes a second."""
    folder = Path(__file__).parent / "api"
    for path in sorted(folder.glob("*/v*")):
        sources = path.glob("*.py") if path.is_dir() else [path]
        if any(f"\nclass {name}(" in source.read_text(encoding="utf-8") for source in sources):
            return ".".join(("kubewright", "api", *path.relative_to(folder).with_suffix("").parts))
    return None
