"""Taking turns: of the unfinished requests of one key the one that was begun goes on, and then the oldest is next."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from datetime import datetime
from typing import NamedTuple, TypeAlias

from kubewright.controller import Request

Order: TypeAlias = tuple[datetime, str]
"""The time of creation of a request, and its uid."""


class Turn(NamedTuple):
    """Where a request stands: in the line of its key, by its order, unless it was begun already."""

    key: Hashable
    order: Order
    is_begun: bool


class Turns:
    """The unfinished requests, each in the line of its key.

    Guarantees: no call goes through a line to find its request, and nothing is kept of requests that have left.
    """

    def __init__(self) -> None:
        self._turns: dict[Request, Turn] = {}
        self._lines: dict[Hashable, _Line] = {}

    def enter(self, request: Request, turn: Turn) -> Request | None:
        """The request stands there now. Returns the one that is next in another line, if it has left one."""
        before = self._turns.get(request)
        if before == turn:
            return None
        next_ = self.leave(request)
        self._turns[request] = turn
        self._lines.setdefault(turn.key, _Line()).add(request, turn)
        return next_ if before is not None and before.key != turn.key else None

    def leave(self, request: Request) -> Request | None:
        """The request has ended. Returns the one that is next instead, if others waited in its line."""
        turn = self._turns.pop(request, None)
        if turn is None:
            return None
        line = self._lines[turn.key]
        line.remove(request, turn)
        if line.is_empty:
            del self._lines[turn.key]
        return line.next

    def is_next(self, request: Request) -> bool:
        """Whether the request was begun, or may be: no other of its key was, and it is the oldest."""
        turn = self._turns.get(request)
        return turn is not None and (turn.is_begun or self._lines[turn.key].next == request)


class _Line:
    """The requests of one key."""

    __slots__ = ("_begun", "_waiting")

    def __init__(self) -> None:
        self._begun: set[Request] = set()
        self._waiting: list[tuple[Order, Request]] = []

    def add(self, request: Request, turn: Turn) -> None:
        if turn.is_begun:
            self._begun.add(request)
        else:
            insort(self._waiting, (turn.order, request))

    def remove(self, request: Request, turn: Turn) -> None:
        if turn.is_begun:
            self._begun.remove(request)
        else:
            del self._waiting[bisect_left(self._waiting, (turn.order, request))]

    @property
    def next(self) -> Request | None:
        """The one that may begin; None while one that was begun goes on."""
        return self._waiting[0][1] if self._waiting and not self._begun else None

    @property
    def is_empty(self) -> bool:
        return not self._begun and not self._waiting
