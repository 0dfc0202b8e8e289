"""What a reconcile hands to the writes made in it, through context variables."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct


class WriteCount(Struct, gc=False, eq=False):
    """The number of writes, including deletions: `value` of those that changed something, `sent` of all."""

    value: int = 0
    sent: int = 0


_UNREAD = WriteCount()

reconcile_priority: ContextVar[int] = ContextVar("kubewright.reconcile_priority", default=0)
"""The priority of the running reconcile: what its writes cause is enqueued with the same."""

write_count: ContextVar[WriteCount] = ContextVar("kubewright.write_count", default=_UNREAD)
"""Counts the writes of the running reconcile."""
