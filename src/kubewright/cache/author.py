"""In whose name a program writes: mostly that of one pass of a controller."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct


class Author(Struct, gc=False, eq=False):
    """Who writes."""

    priority: int = 0
    """How urgent it is; what comes of its writes is as urgent."""
    writes: int = 0
    """How many there were so far, deletions too."""


NOBODY = Author()
"""Of writes in no particular name."""

author: ContextVar[Author] = ContextVar("kubewright.author", default=NOBODY)
"""That of the running code."""
