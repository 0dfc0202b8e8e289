"""Taking turns: of the requests with the same key one runs at a time, in this process, and the oldest is next."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import TypeAlias

from kubewright.controller import Channel, Request

Order: TypeAlias = tuple[datetime, str]
"""The time of creation of a request, and its uid."""


class Turns:
    """The requests that have a key, and those that wait for it.

    Guarantees: a key is taken by one request at a time. When it is released, or a request that has or had it, or the
    oldest that waits for it, leaves, then the oldest that still waits is sent to `woken`. Nothing is kept of requests
    that have left.
    """

    def __init__(self) -> None:
        self.woken: Channel[Request] = Channel("turn")
        self._taken: set[Hashable] = set()
        self._keys: dict[Request, Hashable] = {}
        self._waiting: dict[Hashable, dict[Request, Order]] = {}

    def take(self, request: Request, key: Hashable) -> bool:
        """Take the key, unless another request has it. To be followed by `release`."""
        if key in self._taken:
            return False
        self._move(request, key)
        self._taken.add(key)
        return True

    def release(self, key: Hashable) -> None:
        """Let another request have the key."""
        self._taken.remove(key)
        self._wake(key)

    def wait(self, request: Request, key: Hashable, order: Order) -> None:
        """Wake the request when it may be its turn."""
        self._move(request, key)
        self._waiting.setdefault(key, {})[request] = order

    def leave(self, request: Request) -> None:
        """The request has ended: others need not wait for it."""
        key = self._keys.get(request)
        if key is not None and self._remove(request, key):
            self._wake(key)

    def _move(self, request: Request, key: Hashable) -> None:
        """Neither run nor wait for another key, nor wait for this one."""
        before = self._keys.get(request, key)
        self._remove(request, before)
        if before != key:
            self._wake(before)
        self._keys[request] = key

    def _remove(self, request: Request, key: Hashable) -> bool:
        """Forget the request. True when others may have waited for just this one."""
        self._keys.pop(request, None)
        waiting = self._waiting.get(key, {})
        was_next = request not in waiting or request == _oldest(waiting)
        waiting.pop(request, None)
        if not waiting:
            self._waiting.pop(key, None)
        return was_next

    def _wake(self, key: Hashable) -> None:
        if key in self._waiting and key not in self._taken:
            self.woken.send(_oldest(self._waiting[key]))


def _oldest(waiting: dict[Request, Order]) -> Request:
    return min(waiting, key=waiting.__getitem__)
