"""What a reconcile hands to the writes made in it, through a context variable."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct


class WriteContext(Struct, gc=False, eq=False):
    """The priority of a reconcile, and the number of its writes, including deletions.

    What its writes cause is enqueued with the same `priority`. `sent` are all writes, `changes` those that changed
    something.
    """

    priority: int = 0
    changes: int = 0
    sent: int = 0


_OUTSIDE = WriteContext()  # its counts are never read

write_context: ContextVar[WriteContext] = ContextVar("kubewright.write_context", default=_OUTSIDE)
"""That of the running reconcile."""
