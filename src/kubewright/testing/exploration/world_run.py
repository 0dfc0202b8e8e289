"""One world from its beginning to its end: the processes of the operator, the faults that strike them, and the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pprint import pformat
from random import Random
from typing import Generic, TypeVar, cast

from kubewright.api.errors import KubernetesError
from kubewright.client import Client, Config
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.storage.store import StoreChange
from kubewright.manager import Manager
from kubewright.manager.setup import set_up
from kubewright.testing.exploration.end_state import NOT_COMPARED, EndState, Normalizer, label_of
from kubewright.testing.exploration.faults import ERRORS, SECONDS_LATE, APICall, Fault, FaultKind, WorldPlan
from kubewright.testing.exploration.findings import Problem, differences
from kubewright.testing.exploration.process import Others, Process
from kubewright.testing.exploration.scenario import Scenario
from kubewright.testing.exploration.wire import Wire
from kubewright.testing.exploration.world import World

W = TypeVar("W")

MAX_CALLS = 2000
"""An operator that makes more of them in one world does not come to rest."""

_QUIET = 5.0
_MAX_PAUSE = 30.0
_MAX_FAILURES = 5
_JITTER = 0.05

_log = logging.getLogger("kubewright.explore")


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of a world: its end, or what is wrong with it."""

    calls: list[APICall]
    struck: list[tuple[Fault, APICall]]
    end: EndState | None
    problem: Problem | None


class _Wrong(Exception):
    """The world is over: something is wrong with it."""

    def __init__(self, summary: str, details: str = "") -> None:
        super().__init__(summary)
        self.problem = Problem(summary, details)


class WorldRun(Generic[W]):
    """Runs a scenario once, as a plan says; a `Script`."""

    def __init__(
        self,
        plane: EmbeddedControlPlane,
        config: Config,
        admin: Client,
        scenario: Scenario[W],
        normalizer: Normalizer,
        plan: WorldPlan,
        expected: EndState | None,
    ) -> None:
        self._plane = plane
        self._config = config
        self._scenario = scenario
        self._normalizer = normalizer
        self._plan = plan
        self._expected = expected
        self._random = Random(f"jitter of {plan.name}")  # noqa: S311  # must be reproducible
        self._faults = list(plan.faults)
        self._repeated: list[tuple[str, str]] = []  # the requests that fail again
        self._calls: list[APICall] = []
        self._struck: list[tuple[Fault, APICall]] = []
        self._objects = dict(plane.snapshot().objects.entries)
        self._uids: dict[str, str] = {}
        self._changed_at = 0.0
        self._processes: list[Process] = []
        self._others: Others | None = None
        self._starting = 0  # processes that are down
        self._failures = 0
        self._wrong: _Wrong | None = None
        self._playing: asyncio.Task[EndState] | None = None
        self._has_started = asyncio.Event()
        self._helpers: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._outside = () if scenario.outside is None else (scenario.outside(),)
        outside = cast("W", self._outside[0] if self._outside else None)
        self._world = World(admin, outside, self._objects, scenario.patience, self._settled)

    async def run(self) -> Ended:
        """Play the scenario to its end. Errors of the test itself are raised."""
        unsubscribe = self._plane.observe(self._changed)
        self._playing = asyncio.create_task(self._play(), name=f"world {self._plan.name}")
        end: EndState | None = None
        try:
            await asyncio.wait((self._playing,))
            if self._wrong is None:
                end = self._playing.result()
        except _Wrong as wrong:
            self._wrong = wrong
        finally:
            unsubscribe()
            if not self._playing.done():
                self._playing.cancel()
            for helper in self._helpers:
                helper.cancel()
            for process in self._processes:
                process.kill()
            for process in self._processes:
                await process.buried()
            if self._others is not None:
                await self._others.buried()
        return Ended(self._calls, self._struck, end, self._wrong.problem if self._wrong is not None else None)

    # What happens

    async def _play(self) -> EndState:
        scenario, world = self._scenario, self._world
        for obj in scenario.given:
            await world.create(obj)
        if scenario.others is not None:
            self._others = Others(self._config, self._plane.transport(), partial(set_up, scenario.others))
            await self._others.begun()
        await self._start_first()
        await self._settled()
        await self._step("when", scenario.when(world))
        await self._step("until", scenario.until(world))
        return await self._conclude()

    async def _step(self, name: str, step: Awaitable[object]) -> None:
        patience = self._scenario.patience
        try:
            async with asyncio.timeout(2 * patience):
                await step
        except (KubernetesError, AssertionError, TimeoutError) as error:
            details = str(error) or f"it took longer than {2 * patience:g} s"
            if self._expected is not None:
                details += f"\n\n{differences(self._expected, self._end_state(), None)}".rstrip()
            raise _Wrong(f"the scenario fails in `{name}`", details) from None

    async def _start_first(self) -> None:
        first = self._start()
        if self._plan.needs_replica:
            await first.manager.elected.wait()
            await self._start().begun()
        self._has_started.set()
        await first.begun()

    def _start(self) -> Process:
        number = len(self._processes) + 1
        wire = Wire(self._plane.transport(), self)

        async def setup(manager: Manager) -> None:
            await set_up(self._scenario.setup, manager, *self._outside)

        name = f"operator-{number}"
        maker = self._scenario.manager
        process = Process(name, self._config, wire, maker, setup, is_elected=self._plan.needs_replica)
        self._processes.append(process)
        process.task.add_done_callback(partial(self._ended, process))
        return process

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        """A process that fails by itself is started again, as a kubelet would."""
        if process.wire.is_dead or task.cancelled() or self._wrong is not None:
            return
        error = task.exception()
        self._failures += 1
        if self._expected is None or self._failures > _MAX_FAILURES:
            self._fail(
                f"the operator ends by itself: {type(error).__name__}: {error}" if error else "the operator ends"
            )
            return
        process.wire.die()
        self._start_later(1.0)

    def _start_later(self, seconds: float) -> None:
        self._starting += 1

        def start() -> None:
            self._starting -= 1
            if self._wrong is None and self._playing is not None and not self._playing.done():
                self._start()

        # Not in the context of the process that has died, in which nothing may be written any more.
        self._loop.call_later(seconds, start, context=self._context.copy())

    # The script

    async def ready(self, wire: Wire) -> None:
        """See `Script`. The second replica has to be complete before the first has done anything."""
        if self._process(wire).manager.elected.is_set():
            await self._has_started.wait()

    def begin(self, wire: Wire, method: str, path: str) -> tuple[APICall, FaultKind | None]:
        """See `Script`."""
        process = self._process(wire)
        call = APICall(len(self._calls) + 1, method, path, process.name)
        self._calls.append(call)
        if call.number > MAX_CALLS:
            self._fail(f"the operator does not come to rest: it has made {MAX_CALLS} calls")
        self._check(f"before {call}")
        if call.number == 1 and any(fault.kind == "stale" for fault in self._faults):
            for other in self._processes:
                if other is not process:
                    other.wire.hold()
                    self._helpers.add(asyncio.create_task(_release_later(other)))
        if (method, path) in self._repeated:
            self._repeated.remove((method, path))
            return call, "error"
        fault = next((fault for fault in self._faults if fault.strikes(call)), None)
        if fault is None:
            return call, None
        self._faults.remove(fault)
        self._struck.append((fault, call))
        _log.info("%s strikes at %s", fault.kind, call)
        if fault.kind == "errors":
            self._repeated += [(method, path)] * (ERRORS - 1)
        return call, fault.kind

    def pause(self) -> float:
        """See `Script`."""
        return self._random.uniform(0.0, _JITTER) if self._plan.has_jitter else 0.0

    def kill(self, wire: Wire, seconds: float) -> None:
        """See `Script`."""
        self._process(wire).kill()
        self._start_later(seconds)

    def depose(self, wire: Wire) -> None:
        """See `Script`."""
        wire.die()

    def _process(self, wire: Wire) -> Process:
        return next(process for process in self._processes if process.wire is wire)

    # What is there

    def _changed(self, change: StoreChange) -> None:
        if change.kind == "delete":
            self._objects.pop(change.key, None)
        else:
            self._objects[change.key] = change.entry
            metadata = change.entry.value["metadata"]
            if isinstance(metadata, dict):
                self._uids[str(metadata.get("uid"))] = change.key
        if not change.key.startswith(NOT_COMPARED):
            self._changed_at = self._loop.time()
            what = "deletion" if change.kind == "delete" else "write"
            self._check(f"after the {what} of {label_of(change.key)}")

    def _check(self, when: str) -> None:
        """See whether `always` holds."""
        always = self._scenario.always
        if always is None or self._wrong is not None:
            return
        try:
            holds = always(self._world)
        except AssertionError as error:
            self._fail(f"`always` does not hold {when}", str(error))
        else:
            if holds is False:
                code = getattr(always, "__code__", None)
                where = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(always)
                self._fail(f"`always` does not hold {when}", f"the check at {where} returned False")

    def _fail(self, summary: str, details: str = "") -> None:
        """End the world. May be called from anywhere, also from within the server."""
        if self._wrong is None:
            if not details and self._expected is not None:
                details = differences(self._expected, self._end_state(), None)
            self._wrong = _Wrong(summary, details)
            if self._playing is not None:
                self._playing.cancel()

    def _end_state(self) -> EndState:
        end = self._normalizer.end_state(self._objects, self._uids)
        if self._scenario.compare is not None:
            end.objects["compare"] = pformat(self._scenario.compare(self._world))
        return end

    # Coming to rest

    def _unrest(self) -> str | None:
        """Why the world is not at rest: there is something to do, or something was just done."""
        if self._starting:
            return "the operator is down"
        leading = [process for process in self._processes if process.is_leading]
        if not leading:
            return "no replica leads"
        for process in leading:
            if process.wire.is_held:
                return "watches are late"
            for activity in process.activity():
                return activity
        if self._others is not None:
            if self._others.task.done():
                self._others.task.result()
            for activity in self._others.activity():
                return f"of others, {activity}"
        since = self._loop.time() - self._changed_at
        return f"the last write was {since:.1f} s ago" if since < _QUIET else None

    async def _settled(self) -> None:
        deadline = self._loop.time() + self._scenario.patience
        while reason := self._unrest():
            for process in self._processes:
                if process.hot_loop is not None:
                    raise _Wrong(
                        f"the operator does not come to rest: {process.hot_loop} reconciles an object over and over"
                    )
            if self._loop.time() >= deadline:
                raise _Wrong(f"the operator does not come to rest within {self._scenario.patience:g} s: {reason}")
            await asyncio.sleep(1.0)

    async def _conclude(self) -> EndState:
        """Wait until the world is at rest and as the undisturbed one, which may take a few retries."""
        deadline = self._loop.time() + self._scenario.patience
        pause = 1.0
        while True:
            await self._settled()
            end = self._end_state()
            difference = self._difference(end)
            if not difference:
                return end
            if self._loop.time() >= deadline:
                raise _Wrong("it ends differently from the undisturbed world", difference)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)

    def _difference(self, end: EndState) -> str:
        if self._expected is None:
            return ""
        events = self._scenario.events
        tolerance = None if events is None else events * max(1, len(self._struck))
        return differences(self._expected, end, tolerance)


async def _release_later(process: Process) -> None:
    await process.manager.elected.wait()
    await asyncio.sleep(SECONDS_LATE)
    process.wire.release()
