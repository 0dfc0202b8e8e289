"""Tasks that start and end together: a phase of a program's lifecycle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextvars import Context

from kubewright.manager.log import summary

_log = logging.getLogger(__name__)


class Group:
    """A set of tasks. The first failure is reported; nothing outlives `stop`."""

    def __init__(self, name: str, failed: Callable[[BaseException], None]) -> None:
        self.name = name
        self.context: Context | None = None
        """The context that tasks start with; None for that of the caller."""
        self._failed = failed
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Run something in this group."""
        if not asyncio.iscoroutine(coroutine):
            raise TypeError(f'cannot run {name}: expected "async def", found a function that returns at once')
        context = self.context.copy() if self.context is not None else None
        task = asyncio.create_task(coroutine, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that have not ended."""
        return list(self._tasks)

    async def drain(self, timeout: float | None) -> bool:
        """Wait until all have ended by themselves. False when they have not within the time."""
        try:
            async with asyncio.timeout(timeout):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            return False
        return True

    def cancel(self) -> None:
        """Cancel all, without waiting for their end."""
        for task in self._tasks:
            task.cancel()

    async def stop(self, timeout: float | None) -> bool:
        """Cancel all and wait for their end. False when some have not ended within the time."""
        self.cancel()
        ended = await self.drain(timeout)
        if not ended:
            names = ", ".join(sorted(task.get_name() for task in self._tasks))
            _log.warning("%s did not end within %g s: %s", self.name, timeout, names)
        return ended

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)


def cause(error: BaseException) -> BaseException:
    """The cause of an error: the one error in a group of errors, or a group whose message names them all."""
    causes = list(_causes(error))
    if len(causes) == 1:
        return causes[0]
    return BaseExceptionGroup("; ".join(dict.fromkeys(map(summary, causes))), causes)


def _causes(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _causes(each)
    else:
        yield error


async def to_its_end(work: Coroutine[object, object, None], cancelled: Callable[[], None] = lambda: None) -> None:
    """Run something to its end, even if this is cancelled meanwhile."""
    task = asyncio.create_task(work, name="ending")
    is_cancelled = False
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            is_cancelled = True
            cancelled()
    task.result()
    if is_cancelled:
        raise asyncio.CancelledError
