"""`External`: a system outside the cluster as a source of a controller.

    hypervisor = External("hypervisor", concerns=widget_of, events=client.follow, state=client.states)
    controller_for(manager, Widget).source(hypervisor).complete(reconciler)

It combines a stream of events, which is fast and may lose some, with the state of everything, which is complete and
read from time to time: at the start, every `every` seconds, and whenever the stream was interrupted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar, cast

from kubewright.api import ObjectKey
from kubewright.controller import Request
from kubewright.controller.arguments import check_function, check_seconds
from kubewright.controller.cancelled import outcome
from kubewright.controller.queue import Queue, Reason
from kubewright.controller.source import (
    INITIAL_PRIORITY,
    RESTART,
    TIMEOUT,
    StandbySource,
    differences,
    state_of,
)
from kubewright.patterns.conditions import message_of

Id = TypeVar("Id", bound=Hashable)

_log = logging.getLogger(__name__)


class External(StandbySource, Generic[Id]):
    """Enqueues the objects whose counterparts in another system changed.

    Guarantees: what happens while the stream is interrupted is not missed: a stream that fails or ends is started again
    (after 1 s, 2 s … 60 s; after 1 s when it has sent something), and the state is read at once. A read that fails
    changes nothing, is repeated with the same back-off, and is the reason why the source is not ready.
    """

    def __init__(
        self,
        name: str,
        *,
        concerns: Callable[[Id], Request | Iterable[Request] | None],
        state: Callable[[], Awaitable[Mapping[Id, Hashable]]],
        events: Callable[[], AsyncIterator[Id | None]] | None = None,
        every: float = 300,
        timeout: float = TIMEOUT,
    ) -> None:
        """`concerns` returns the objects that an id of the system is about; None for those of no interest.

        `state` reads everything: ids, and values that differ when something has changed. `events` yields the ids of
        what changes, as it happens, and may yield None when it is connected: the state is then read again, as what
        happened while it was connecting is in neither. It may be silent for any time, while a read of the state that
        takes more than `timeout` seconds has failed.
        """
        check_function(concerns, "concerns of External", "id")
        check_function(state, "state of External", may_be_async=True)
        if events is not None:
            check_function(events, "events of External")
        check_seconds(every, "every")
        check_seconds(timeout, "timeout")
        self._name = name
        self._concerns = concerns
        self._state = state
        self._events = events
        self._every = every
        self._timeout = timeout
        self._known: dict[Id, Hashable] = {}
        self._synced = asyncio.Event()
        self._problem: str | None = f"{name} has not been read yet"

    async def run(self, queue: Queue[Request]) -> None:
        """See `Source`."""
        await self.started()
        self._known.clear()
        self._synced.clear()
        interrupted = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read_repeatedly(queue, interrupted))
            if self._events is not None:
                tasks.create_task(self._follow(self._events, queue, interrupted))

    async def synced(self) -> None:
        """See `Source`. On a standby there is nothing to wait for."""
        if not self.is_standby:
            await self._synced.wait()

    @property
    def not_ready_reason(self) -> str | None:
        """See `Source`."""
        return None if self.is_standby else self._problem

    async def _read_repeatedly(self, queue: Queue[Request], interrupted: asyncio.Event) -> None:
        failures = 0
        while True:
            interrupted.clear()
            try:
                found = await state_of(self._state, self._timeout)
            except Exception as error:
                failures += 1
                self._problem = f"{self._name}: {message_of(error)}"
                _log.warning("reading the state of %s failed: %s", self._name, message_of(error))
            else:
                failures, self._problem = 0, None
                self._compare(found, queue)
                self._synced.set()
            pause = min(RESTART.delay(failures), self._every) if failures else self._every
            try:
                async with asyncio.timeout(pause):
                    await interrupted.wait()
            except TimeoutError:
                continue

    def _compare(self, found: dict[Id, Hashable], queue: Queue[Request]) -> None:
        known, self._known = self._known, found
        priority = 0 if self._synced.is_set() else INITIAL_PRIORITY
        for id_, what in differences(known, found):
            self._enqueue(id_, what, queue, priority)

    async def _follow(
        self, events: Callable[[], AsyncIterator[Id | None]], queue: Queue[Request], interrupted: asyncio.Event
    ) -> None:
        failures = 0

        async def follow() -> None:
            nonlocal failures
            async for id_ in events():
                failures = 1
                if id_ is None:
                    interrupted.set()
                else:
                    self._enqueue(id_, "changed", queue, 0)

        while True:
            failures += 1
            try:
                await outcome(follow())
                _log.info("the events of %s ended", self._name)
            except Exception as error:
                _log.warning("following the events of %s failed: %s", self._name, message_of(error))
            await asyncio.sleep(RESTART.delay(failures))
            interrupted.set()

    def _enqueue(self, id_: Id, what: str, queue: Queue[Request], priority: int) -> None:
        try:
            requests = _requests(self._concerns(id_))
        except Exception:
            _log.exception("%s: which objects %r concerns is not known", self._name, id_)
            return
        for request in requests:
            queue.add(request, priority=priority, reason=Reason(self._name, what, None))


def _requests(concerned: object) -> list[Request]:
    """What `concerns` returned. A plain tuple of two strings would be taken for two keys."""
    if concerned is None:
        return []
    requests: list[object] = (
        [concerned] if isinstance(concerned, ObjectKey | str) else [*cast(Iterable[object], concerned)]
    )
    wrong = next((request for request in requests if not isinstance(request, ObjectKey)), None)
    if wrong is not None:
        raise TypeError(f"concerns returned {concerned!r}: expected Request(namespace, name), several of them, or None")
    return cast(list[Request], requests)
