"""How far a command has come: said when it ends before it is through, whatever ends it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum

from kubewright.api.errors import KubernetesError
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.target import TargetCluster
from kubewright.cli.cluster.waiting import Deadline
from kubewright.client import Client
from kubewright.client.errors import Unauthorized


class _State(StrEnum):
    LEFT = "left"
    UNKNOWN = "unknown"
    GOING = "going"
    DONE = "done"


class ChangeProgress:
    """Changes that are made one after the other, each described by a line of its own."""

    def __init__(self, changes: Iterable[str], timeout: float) -> None:
        self.deadline = Deadline(timeout)
        self.line = StatusLine()
        self._states = dict.fromkeys(changes, _State.LEFT)

    @asynccontextmanager
    async def change(self, change: str, *, is_deletion: bool = False) -> AsyncIterator[None]:
        """The block makes a change, before the deadline. What is deleted may take longer to be `gone`."""
        self.line.doing(change)
        # Whoever is interrupted in it does not know whether the server has done it.
        self._states[change] = _State.UNKNOWN
        try:
            async with self.deadline.limit(self.line):
                yield
        except KubernetesError as error:
            if not error.is_temporary:
                self._states[change] = _State.LEFT
            raise
        self._states[change] = _State.GOING if is_deletion else _State.DONE

    def gone(self, change: str) -> None:
        """What was deleted is no longer there."""
        self._states[change] = _State.DONE

    @contextmanager
    def reported(self) -> Iterator[None]:
        """After an error in the block, what is left is a note of it; at an interrupt, that is printed."""
        try:
            yield
        except KubernetesError as error:
            if self._is_begun and not self._is_done:
                error.add_note(str(self))
            raise
        except KeyboardInterrupt:
            waiting = f" while waiting: {self.line.reason}" if self.line.reason else ""
            print(f"kubewright: interrupted{waiting}\n{self}", file=sys.stderr)
            raise

    @property
    def _is_begun(self) -> bool:
        return any(state is not _State.LEFT for state in self._states.values())

    @property
    def _is_done(self) -> bool:
        return all(state is _State.DONE for state in self._states.values())

    def __str__(self) -> str:
        if not self._is_begun:
            return "nothing was changed"
        if self._is_done:
            return "all changes were made; the same command goes on waiting"
        done = list(self._states.values()).count(_State.DONE)
        lines = [f"  {state:<9}  {change}" for change, state in self._states.items()]
        return "\n".join([f"{done} of {len(self._states)} changes were made; the same command goes on:", *lines])


@asynccontextmanager
async def planned_on(cluster: TargetCluster, planning: ChangeProgress) -> AsyncIterator[Client]:
    """A client of a cluster that answers, for a block that is over before the deadline."""
    with planning.line as line:
        line.doing(f"get the credentials for {cluster}")
        async with planning.deadline.limit(line):
            await cluster.config.credentials.current()  # of a plugin that may wait for a user who does not know
        line.doing(f"connect to {cluster}")
        async with cluster.reached(planning.deadline.remaining) as client, planning.deadline.limit(line):
            try:
                yield client
            except Unauthorized as error:
                error.add_note(f"the credentials for {cluster} are not accepted: renew them, or name another --context")
                raise
