"""Whose turn it is among the requests of a kind, from the events of its watch.

Without a watch, as in a test that calls a reconciler, all requests are listed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar, cast

from kubewright.api import Object, now
from kubewright.api.errors import DecodeError
from kubewright.cache import CachedClient
from kubewright.controller import Event, Request
from kubewright.patterns.request_status import status_of
from kubewright.patterns.turns import Turn, Turns

R = TypeVar("R", bound=Object)


class RequestTurns(Generic[R]):
    """The turns of the requests of one kind. One that cannot be decoded, or has no key, holds up no other."""

    def __init__(self, client: CachedClient, kind: type[R], key_of: Callable[[R], Hashable | None]) -> None:
        self._client = client
        self._kind = kind
        self._key_of = key_of
        self._turns: Turns | None = None

    @property
    def is_following(self) -> bool:
        """Whether those whose turn it is are enqueued: `follow` is called with all events."""
        return self._turns is not None

    def follow(self, event: Event[Object]) -> Iterable[Request]:
        """Keep the turns up to date, and return the requests to enqueue.

        These are the one whose turn it is now, and one that another writer has finished: it is to be deleted in time,
        like any other.
        """
        if self._turns is None:
            self._turns = Turns()
        try:
            obj = cast("R | None", event.new_object)
        except DecodeError:  # its own reconcile reports it
            obj = None
        turn = self._turn_of(obj) if obj is not None else None
        woken = self._turns.enter(event.key, turn) if turn is not None else self._turns.leave(event.key)
        if woken is not None:
            yield woken
        if obj is not None and not event.own and status_of(obj).is_finished:
            yield event.key

    async def is_next(self, obj: R) -> bool:
        """Whether the request was begun, or may be."""
        turns = self._turns
        if turns is None:
            turns = Turns()
            for each in [*await self._client.list(self._kind), obj]:
                turn = self._turn_of(each)
                if turn is not None:
                    turns.enter(each.key, turn)
        return turns.is_next(obj.key)

    def _turn_of(self, obj: R) -> Turn | None:
        """None for a request that others need not wait for."""
        status, metadata = status_of(obj), obj.metadata
        if status.is_finished or metadata.deletion_timestamp is not None:
            return None
        try:
            key = self._key_of(obj)
        except Exception:  # its own reconcile reports it
            return None
        order = metadata.creation_timestamp or now(), metadata.uid
        return Turn(key, order, status.phase == "Processing") if key is not None else None
