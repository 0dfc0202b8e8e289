"""What the helpers for tests accept, and the sentence for a test that gives them something else."""

from __future__ import annotations

from kubewright.manager import Manager


def check_manager(manager: object, call: str) -> None:
    """Raise a TypeError unless it is a manager."""
    if isinstance(manager, Manager):
        return
    if callable(manager):
        hint = "make one with Manager(client), and call setup with it"
    else:
        hint = "make one with Manager(client)"
    raise TypeError(f"{call}: expected a manager, not {manager!r}: {hint}")
