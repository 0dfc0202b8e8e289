"""The lifecycle of a program: what starts in which order, and how it ends.

Start: caches, what needs no leader, sources (so that a standby is warm), then, as leader, all the rest. Stop, in
reverse: no further reconciles begin and those under way may finish within the grace time; then the lease is released;
then sources and caches end. Nothing that was started outlives `run`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any, TypeVar

from kubewright.controller.controllers import Controller
from kubewright.manager.cluster import Cluster
from kubewright.manager.fence import clock_of, fenced, system_clock
from kubewright.manager.group import Group, cause, to_its_end
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.log import summary
from kubewright.manager.recorder import EventBroadcaster
from kubewright.manager.runnable import Function

T = TypeVar("T")

_FLUSH = 2.0  # seconds for the last events to be written

_log = logging.getLogger(__name__)


class Lifecycle:
    """Runs what was added, once. What is added while it runs starts at once."""

    def __init__(
        self, cluster: Cluster, events: EventBroadcaster, *, warm_standby: bool = True, grace: float | None = None
    ) -> None:
        """Without `warm_standby`, sources wait until this program leads."""
        self.clusters = [cluster]
        self.controllers: list[Controller[Any]] = []
        self.elected = asyncio.Event()
        self.failure: BaseException | None = None
        """What went wrong first: the reason of the stop."""
        self._warm_standby = warm_standby
        self._grace = grace
        self._events = events
        self._others: list[tuple[Function, str]] = []
        self._leaders: list[tuple[Function, str]] = []
        self._election: LeaderElection | None = None
        self._stop = asyncio.Event()
        self._is_running = False
        self._caches_group = Group("caches", self._fail)
        self._sources_group = Group("sources", self._fail)
        self._others_group = Group("runnables", self._fail)
        self._leader_group = Group("leader-only runnables", self._fail_leading)

    # What it runs

    @property
    def has_work(self) -> bool:
        """Whether anything was added that runs."""
        return bool(self.controllers or self._others or self._leaders)

    def add(self, run: Function, name: str, *, needs_leader: bool) -> None:
        """Run a function."""
        (self._leaders if needs_leader else self._others).append((run, name))
        if self._is_running and not needs_leader:
            self._others_group.start(run(), name)
        elif self._is_running and self.elected.is_set():
            self._leader_group.start(run(), name)

    def add_cluster(self, cluster: Cluster) -> None:
        """Keep the cache of one more cluster."""
        self.clusters.append(cluster)
        if self._is_running:
            self._caches_group.start(cluster.cache.run(), "cache")

    def add_controller(self, controller: Controller[Any]) -> None:
        """Run a controller."""
        self.controllers.append(controller)
        if not self._is_running:
            return
        if not self.is_cold_standby(self._election):
            self._sources_group.start(controller.run_sources(), f"sources of {controller.name}")
        if not controller.needs_leader:
            self._others_group.start(controller.run_workers(), _workers_of(controller))
        elif self.elected.is_set():
            self._leader_group.start(self._workers(controller), _workers_of(controller))

    def is_cold_standby(self, election: LeaderElection | None) -> bool:
        """Whether nothing is watched, because another leads."""
        return election is not None and not self._warm_standby and not self.elected.is_set()

    # Start and stop

    def stop(self) -> None:
        """Stop everything: `run` returns when it has ended."""
        self._stop.set()

    @property
    def is_stopping(self) -> bool:
        """True once `stop` was called, or something has failed."""
        return self._stop.is_set()

    async def until_stopped(self, task: asyncio.Task[T]) -> None:
        """Wait for the end of a task, or for `stop`."""
        stopped = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()

    async def run(self, election: LeaderElection | None) -> None:
        """Run everything until `stop` is called, this is cancelled, or something fails (`failure`); then end it."""
        self._election = election
        self._is_running = True
        recording = asyncio.create_task(self._events.run(), name="events")
        leading: asyncio.Task[None] | None = None
        try:
            for cluster in self.clusters:
                self._caches_group.start(cluster.cache.run(), "cache")
            for function, name in self._others:
                self._others_group.start(function(), name)
            if not self.is_cold_standby(election):
                self._start_sources()
            for controller in self.controllers:
                if not controller.needs_leader:
                    self._others_group.start(controller.run_workers(), _workers_of(controller))
            leading = asyncio.create_task(self._campaign(), name="leader")
            await self.until_stopped(leading)
        finally:
            self._is_running = False
            await to_its_end(self._end(leading, recording))

    def _start_sources(self) -> None:
        for controller in self.controllers:
            self._sources_group.start(controller.run_sources(), f"sources of {controller.name}")

    # Leading

    async def _campaign(self) -> None:
        if self._election is None:
            await self._lead()
            return
        election = self._election
        # In virtual time nothing is ever late, and a thread does not see that time.
        is_virtual = clock_of(asyncio.get_running_loop()) is not system_clock
        with nullcontext() if is_virtual else fenced(lambda: election.hard_deadline):
            await election.run(self._lead)

    async def _lead(self) -> None:
        """Everything that only the leader does, until it is cancelled; then what is under way has the grace time."""
        sources_waited = self.is_cold_standby(self._election)
        self.elected.set()
        # What is added later may write for as long as this may.
        self._leader_group.context = copy_context()
        try:
            if sources_waited:
                self._start_sources()
            for function, name in self._leaders:
                self._leader_group.start(function(), name)
            for controller in self.controllers:
                if controller.needs_leader:
                    self._leader_group.start(self._workers(controller), _workers_of(controller))
            await asyncio.Event().wait()
        finally:
            self.elected.clear()
            self._leader_group.context = None
            self._drop_writes_if_lost()
            led = [each for each in self.controllers if each.needs_leader]
            await to_its_end(self._end_work(self._leader_group, led), self._hurry)

    def _workers(self, controller: Controller[Any]) -> Coroutine[object, object, None]:
        """The work of a leader, on what is at least as new as the lease."""
        return controller.run_workers(since=self._election.since if self._election is not None else 0)

    def _hurry(self) -> None:
        # The lease is lost while what was under way had its grace time: that is over now.
        if self._has_lost_lease:
            self._drop_writes_if_lost()
            self._leader_group.cancel()

    def _drop_writes_if_lost(self) -> None:
        """Drop the writes under way if another leads. No further write is sent."""
        if self._has_lost_lease:
            for cluster in self.clusters:
                cluster.live.drop_writes()

    @property
    def _has_lost_lease(self) -> bool:
        return self._election is not None and not self._election.is_leader

    # The end

    async def _end_work(self, group: Group, controllers: list[Controller[Any]]) -> None:
        for controller in controllers:
            controller.stop()
        may_finish = group is not self._leader_group or not self._has_lost_lease
        if may_finish and not await self._drained(group, controllers):
            _log.warning("reconciles are still under way after %g s; cancelling them", self._grace)
        await group.stop(None)

    async def _drained(self, group: Group, controllers: list[Controller[Any]]) -> bool:
        """Runnables are stopped by being cancelled, controllers by `stop`: their reconciles may finish."""
        names = {_workers_of(controller) for controller in controllers}
        for task in group.tasks:
            if task.get_name() not in names:
                task.cancel()
        return await group.drain(self._grace)

    async def _end(self, leading: asyncio.Task[None] | None, recording: asyncio.Task[None]) -> None:
        others = [controller for controller in self.controllers if not controller.needs_leader]
        ending = [asyncio.create_task(self._end_work(self._others_group, others), name="ending")]
        if leading is not None:
            leading.cancel()
            ending.append(leading)
        await asyncio.wait(ending)
        if leading is not None and not leading.cancelled() and (error := leading.exception()) is not None:
            if isinstance(error, LeadershipLost) and not error.is_work_over:
                self.failure = None  # whatever it was: work that goes on without the lease is worse
            self._fail(error)
        await self._sources_group.stop(None)
        await self._caches_group.stop(None)
        await self._events.flush(_FLUSH)
        recording.cancel()
        await asyncio.wait((recording,))

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = cause(error)
            if not isinstance(self.failure, LeadershipLost):
                _log.error("stopping, because something failed: %s", summary(self.failure))
        self._stop.set()

    def _fail_leading(self, error: BaseException) -> None:
        # A write that was refused follows from the loss of the lease; the election reports the cause of that.
        if not (isinstance(cause(error), LeadershipLost) and self._has_lost_lease):
            self._fail(error)


def _workers_of(controller: Controller[Any]) -> str:
    return f"workers of {controller.name}"
