"""The operators that come with kubewright, by their names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from kubewright import Manager

_ROOT = Path(__file__).parents[2] / "operators"

OPERATORS: dict[str, Callable[[Manager], None]] = {
    path.parent.name: importlib.import_module(f"operators.{path.parent.name}").setup
    for path in sorted(_ROOT.glob("*/__main__.py"))
}
"""Their setup functions."""
