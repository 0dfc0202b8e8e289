"""Deliberate differences of the embedded control plane from the real one. Everything else is the same."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.controlplane.embedded.builtins.without_effect import WITHOUT_EFFECT, warning_of

# It warns of what it stores but does not act on yet.
_WARNINGS = [warning_of(name) for name in WITHOUT_EFFECT]
_HEADERS = frozenset(f'299 - "{warning}"' for warning in _WARNINGS)
_LINES = frozenset(f"Warning: {warning}" for warning in _WARNINGS)


def comparable_warnings(headers: Iterable[str]) -> list[str]:
    """The `Warning` header fields of an answer without the declared ones."""
    return [header for header in headers if header not in _HEADERS]


def comparable_output(said: str) -> str:
    """The output of kubectl without the declared warnings."""
    return "".join(line for line in said.splitlines(keepends=True) if line.rstrip() not in _LINES)
