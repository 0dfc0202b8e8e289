"""Assigns connections to requests.

Requests share at most `limit` connections and wait in line beyond that. Streams have connections of their own, without
a limit: a watch holds its connection for minutes, and must neither starve the requests nor be starved by them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from kubewright.client.errors import ConnectionLost, RequestTimeout
from kubewright.client.http.connection import Connection
from kubewright.client.http.deadlines import Deadlines

# Clearly less than the 90 s of kube-apiserver: a write that meets a connection as the server closes it is lost.
IDLE_SECONDS = 60.0


class Pool:
    """Hands out connections: the most recently used idle one, else first come, first served.

    Guarantee: a connection is idle, with one exchange, or closed. One that was made for a request that was cancelled in
    the meantime goes to the next in line.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadlines: Deadlines,
        dial: Callable[[Connection], Awaitable[None]],
        *,
        peer: str,
        limit: int,
        max_body: int,
    ) -> None:
        self.time = loop.time
        self._loop = loop
        self._deadlines = deadlines
        self._dial = dial
        self._peer = peer
        self._limit = limit
        self._max_body = max_body
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._live: set[Connection] = set()
        self._dials: set[asyncio.Task[None]] = set()
        self._dialing = 0  # dials for the line; those for one certain waiter are not in it
        self._count = 0  # connections of requests: idle, busy, and being made
        self._generation = 0
        self._sweeping = False
        self._closed: asyncio.Future[None] | None = None

    def take(self, now: float) -> Connection | None:
        """An idle connection for a request, or None: then `wait`."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_usable:
                continue
            if connection.idle_since > now - IDLE_SECONDS:
                return connection
            # `expire` is late: the process was frozen, or the loop blocked.
            connection.abort()
        return None

    def take_for_stream(self, now: float) -> Connection | None:
        """An idle connection for a stream, or None: then `open`. It leaves the share of the requests."""
        connection = self.take(now)
        if connection is not None:
            connection.counted = False
            self._count -= 1
        return connection

    async def wait(self, what: str, due: float | None, timeout: float) -> Connection:
        """A connection for a request, as soon as it is this caller's turn; `RequestTimeout` at `due`."""
        while True:
            self._check_open()
            connection = await self._result(self._line_up(), what, due, timeout)
            # It may have been lost between being handed over and this task's turn to run. A fresh one is used even so:
            # its loss has a reason that the caller must get, and the next would be lost in the same way.
            if connection.is_usable or not connection.reused:
                return connection

    async def open(self, what: str, due: float | None, timeout: float, *, counted: bool) -> Connection:
        """A new connection, outside the line; `counted` when it is for a request."""
        self._check_open()
        return await self._result(self._dial_for_one(counted), what, due, timeout)

    def drop_idle(self) -> None:
        """Close idle connections now and the busy ones after their response: the next ones use new credentials."""
        self._generation += 1
        for connection in self._idle:
            connection.abort()
        self._idle.clear()

    def drop_writes(self) -> None:
        """End writes under way with `ConnectionLost`; nothing more of them is sent."""
        for connection in [each for each in self._live if each.is_writing]:
            connection.fail(ConnectionLost(f"{self._peer}: this program reset the connection"))

    async def aclose(self) -> None:
        """Close everything. Exchanges under way end with `ConnectionLost`; returns when no socket is left."""
        if self._closed is None:
            self._closed = self._loop.create_future()
        for waiter in self._waiting:
            self._refuse(waiter)
        self._waiting.clear()
        for task in self._dials:
            task.cancel()
        if self._dials:
            await asyncio.wait(self._dials)
        for connection in list(self._live):
            connection.fail(self._closed_error())
        self._idle.clear()
        if self._live:
            await self._closed
        self._deadlines.close()

    # Called by connections.

    def release(self, connection: Connection) -> None:
        """An exchange is complete: the connection goes to the next in line, or becomes idle."""
        if self._closed is not None or connection.generation != self._generation:
            connection.abort()
        elif connection.counted:
            if self._count > self._limit:
                connection.abort()
            else:
                self._hand_out(connection)
        elif self._count < self._limit:
            connection.counted = True
            self._count += 1
            self._hand_out(connection)
        else:
            connection.abort()

    def lost(self, connection: Connection) -> None:
        """A connection is gone: another may be made for the next in line."""
        self._live.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if connection.counted:
            connection.counted = False
            self._count -= 1
            self._fill()
        if self._closed is not None and not self._live and not self._closed.done():
            self._closed.set_result(None)

    def expire(self) -> None:
        """Close what was idle for too long; called once per `IDLE_SECONDS` while anything is idle."""
        self._sweeping = False
        oldest_allowed = self._loop.time() - IDLE_SECONDS
        stale = [connection for connection in self._idle if connection.idle_since <= oldest_allowed]
        self._idle = [connection for connection in self._idle if connection.idle_since > oldest_allowed]
        for connection in stale:
            connection.abort()
        if self._idle:
            # They are in the order of their last use.
            self._sweep_at(self._idle[0].idle_since + IDLE_SECONDS)

    def _sweep_at(self, due: float) -> None:
        self._sweeping = True
        self._deadlines.add(self, due)

    def _hand_out(self, connection: Connection) -> None:
        waiter = self._next_waiter()
        if waiter is not None:
            waiter.set_result(connection)
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if not self._sweeping:
            self._sweep_at(connection.idle_since + IDLE_SECONDS)

    def _next_waiter(self) -> asyncio.Future[Connection] | None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

    def _line_up(self) -> asyncio.Future[Connection]:
        waiter: asyncio.Future[Connection] = self._loop.create_future()
        self._waiting.append(waiter)
        self._fill()
        return waiter

    def _dial_for_one(self, counted: bool) -> asyncio.Future[Connection]:
        waiter: asyncio.Future[Connection] = self._loop.create_future()
        self._start_dial(waiter, counted)
        return waiter

    def _fill(self) -> None:
        """Make connections for those in line, as far as the limit allows."""
        while self._count < self._limit and self._dialing < len(self._waiting):
            self._start_dial(None, counted=True)

    def _start_dial(self, waiter: asyncio.Future[Connection] | None, counted: bool) -> None:
        # A task per connection, not per request: a request that is cancelled meanwhile does not waste the handshake.
        self._dialing += waiter is None
        self._count += counted
        task = self._loop.create_task(self._open_for(waiter, counted))
        self._dials.add(task)

        def finished(task: asyncio.Task[None]) -> None:
            self._dials.discard(task)
            # Only closing cancels, maybe before the task has even begun.
            if task.cancelled() and waiter is not None:
                self._refuse(waiter)

        task.add_done_callback(finished)

    async def _open_for(self, waiter: asyncio.Future[Connection] | None, counted: bool) -> None:
        try:
            connection = await self._open()
        except Exception as error:
            self._dialing -= waiter is None
            self._count -= counted
            unlucky = waiter or self._next_waiter()
            if unlucky is not None and not unlucky.done():
                unlucky.set_exception(error)
            waiter = unlucky = None  # they hold the error, whose traceback holds this frame
        else:
            self._dialing -= waiter is None
            connection.counted = counted
            if waiter is not None and not waiter.done():
                waiter.set_result(connection)
            else:
                self.release(connection)
        self._fill()

    async def _open(self) -> Connection:
        while True:
            connection = Connection(self, self._loop, self._deadlines, self._peer, self._max_body)
            connection.generation = self._generation
            await self._dial(connection)
            self._live.add(connection)
            if connection.generation == self._generation:
                return connection
            connection.abort()

    async def _result(
        self, waiter: asyncio.Future[Connection], what: str, due: float | None, timeout: float
    ) -> Connection:
        patience = _Patience(waiter, f"{what}: no connection within {timeout:g} s")
        if due is not None:
            self._deadlines.add(patience, due)
        try:
            return await waiter
        except BaseException:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            if not waiter.cancelled() and waiter.exception() is None:
                # Cancelled after it was handed over.
                self.release(waiter.result())
            raise
        finally:
            self._deadlines.discard(patience)
            del waiter, patience  # they hold the error, whose traceback holds this frame

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed_error()

    def _closed_error(self) -> ConnectionLost:
        return ConnectionLost(f"{self._peer}: the client was closed")

    def _refuse(self, waiter: asyncio.Future[Connection]) -> None:
        if not waiter.done():
            waiter.set_exception(self._closed_error())


class _Patience:
    """The deadline of a request that waits for a connection."""

    __slots__ = ("_message", "_waiter")

    def __init__(self, waiter: asyncio.Future[Connection], message: str) -> None:
        self._waiter = waiter
        self._message = message

    def expire(self) -> None:
        if not self._waiter.done():
            self._waiter.set_exception(RequestTimeout(self._message))
