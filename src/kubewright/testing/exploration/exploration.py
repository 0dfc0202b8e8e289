"""`explore`: the same scenario over and over, with another fault each time; all of them must end the same.

    explore(setup, kinds=[Shelf],
            when=lambda world: world.create(shelf),
            until=lambda world: world.wait(shelf, Field("status.count").equals(2))).same_end()

It runs the scenario undisturbed on an embedded control plane, in virtual time, and learns the operator's API calls.
Then it runs it once for each call and each fault that can strike there (`FaultKind`), and in a few worlds with several
faults. Every world has to come to rest, and to end with the objects that the undisturbed one ends with.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

from kubewright.api.resources import Object
from kubewright.client import Config
from kubewright.controller.arguments import check_function
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.definitions import DefinitionSource
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane, PlaneSnapshot
from kubewright.manager import Manager
from kubewright.manager.setup import SetupResult
from kubewright.testing.exploration.end_state import EndState, Normalizer
from kubewright.testing.exploration.faults import FAULT_KINDS, UNDISTURBED, FaultKind, WorldPlan, plan_named, plans
from kubewright.testing.exploration.findings import WORLD_VARIABLE, Finding, finding
from kubewright.testing.exploration.progress import ExplorationProgress
from kubewright.testing.exploration.scenario import Scenario
from kubewright.testing.exploration.world import World
from kubewright.testing.exploration.world_run import Ended, WorldRun
from kubewright.testing.virtual_time import run_virtual

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    W = TypeVar("W", default=None)
else:
    from typing import TypeVar

    W = TypeVar("W")

SEEDS_VARIABLE = "KUBEWRIGHT_EXPLORE_SEEDS"
"""The environment variable with the number of worlds with several faults, instead of `seeds`."""

_SEEDS = 10
_PATIENCE = 600.0
# Until the control plane's own controllers have seen to what the last world left.
_PAUSE = 2.0


def explore(
    setup: Callable[[Manager], SetupResult] | Callable[[Manager, W], SetupResult],
    *,
    outside: Callable[[], W] | None = None,
    when: Callable[[World[W]], Awaitable[object]],
    until: Callable[[World[W]], Awaitable[object]],
    kinds: Sequence[DefinitionSource] = (),
    given: Sequence[Object] = (),
    others: Callable[[Manager], SetupResult] | None = None,
    always: Callable[[World[W]], object] | None = None,
    compare: Callable[[World[W]], object] | None = None,
    ignore: Mapping[type[Object], Collection[str]] | None = None,
    events: int | None = None,
    faults: Sequence[FaultKind] = FAULT_KINDS,
    seeds: int = _SEEDS,
    patience: float = _PATIENCE,
    manager: Callable[..., Manager] = Manager,
) -> Exploration[W]:
    """A scenario to explore: `explore(…).same_end()` does it.

    - `setup` is the operator's, as for `run`. With `outside`, a function that makes what lives outside the cluster
      (a fake of a cloud, a list of mails sent), it is called as `setup(manager, outside)`: what is outside survives the
      death of a process, and is made again for each world, as `world.outside`.
    - `kinds` are installed, `given` exists when the operator starts. Once it is at rest, `when` does what users do, and
      `until` returns when that should be done.
    - `others` sets up the controllers of others that the operator depends on, such as simulators of them. They run in
      each world from its beginning, with all rights, and faults do not strike them.
    - `always` must hold before each call of the operator and after each change of an object; it fails by returning
      False or by an AssertionError.
    - `ignore` are fields that may differ at the end, by kind: `{Grant: ["status.attempts"]}`. A star is any key or item
      (`status.conditions.*.message`), and `"*"` the whole object. `compare` returns what has to be the same besides the
      objects. `events` is how many more events of one object and reason there may be for each fault; None: any number.
    - `faults` are those that strike; `seeds` is the number of worlds with several of them at once, with another
      interleaving each. KUBEWRIGHT_EXPLORE_SEEDS overrides it.
    - `patience` is how many virtual seconds each of `when` and `until` may wait, and then the way to the same end.
    - `manager` makes the manager of each process, as for `run`: `manager=partial(Manager, cache={Pod: …})`.
    """
    unknown = [kind for kind in faults if kind not in FAULT_KINDS]
    if unknown:
        raise ValueError(f"explore(faults={unknown!r}): there is no such fault (there are: {', '.join(FAULT_KINDS)})")
    check_function(manager, "the manager of explore", "client")
    parameters = ("manager",) if outside is None else ("manager", "outside")
    check_function(setup, "the setup of explore", *parameters, may_be_async=True)
    if others is not None:
        check_function(others, "others of explore", "manager", may_be_async=True)
    scenario = Scenario[W](
        setup=setup,
        outside=outside,
        manager=manager,
        kinds=kinds,
        given=given,
        others=others,
        when=when,
        until=until,
        always=always,
        compare=compare,
        ignore=ignore or {},
        events=events,
        faults=tuple(faults),
        seeds=int(os.environ.get(SEEDS_VARIABLE, seeds)),
        patience=patience,
    )
    return Exploration(scenario)


class Exploration(Generic[W]):
    """Made by `explore`."""

    def __init__(self, scenario: Scenario[W]) -> None:
        self._scenario = scenario
        self.worlds = 0
        """How many worlds have been run so far."""

    def same_end(self, *, only: str | None = None) -> None:
        """Run all worlds, or only the one of that name; raises AssertionError with a report of the first that is wrong.

        The name of the only world is also taken from the environment variable KUBEWRIGHT_EXPLORE.
        """
        __tracebackhide__ = True
        found = self.findings(only=only, limit=1)
        if found:
            raise AssertionError(f"{found[0]}")

    def findings(self, *, only: str | None = None, limit: int | None = None) -> list[Finding]:
        """The worlds that do not end as they should, at most `limit`; when the undisturbed one does not, only that.

        Runs an event loop of its own, in virtual time. With a single world, the operator logs as anywhere; otherwise
        what kubewright logs is suppressed.
        """
        only = only or os.environ.get(WORLD_VARIABLE) or None
        with _own_random_numbers(), _quiet(only is None):
            return run_virtual(lambda: self._explore(only, limit))

    async def _explore(self, only: str | None, limit: int | None) -> list[Finding]:
        scenario = self._scenario
        server_random = random.Random()  # noqa: S311  # must be reproducible
        plane = ControlPlane.embedded(definitions=scenario.kinds, random=server_random)
        async with plane, plane.client() as admin:
            await asyncio.sleep(_PAUSE)
            snapshot = plane.snapshot()
            normalizer = Normalizer(snapshot.objects.entries, scenario.ignore)
            config = Config.from_kubeconfig_text(plane.admin.kubeconfig)

            async def run(plan: WorldPlan, expected: EndState | None) -> Ended:
                await _begin_again(plane, snapshot)
                for source in (server_random, random):
                    source.seed(f"world {plan.name}")
                self.worlds += 1
                return await WorldRun(plane, config, admin, scenario, normalizer, plan, expected).run()

            undisturbed = WorldPlan(UNDISTURBED)
            first = await run(undisturbed, None)
            if first.problem is not None:
                return [finding(undisturbed, first.struck, first.problem, first.calls)]
            if only is not None:
                todo = [plan_named(only, first.calls, scenario.faults)]
            else:
                todo = list(plans(first.calls, scenario.faults, scenario.seeds))
            found: list[Finding] = []
            with ExplorationProgress(len(todo)) as progress:
                for plan in todo:
                    ended = await run(plan, first.end)
                    progress.advance()
                    if ended.problem is not None:
                        found.append(finding(plan, ended.struck, ended.problem, ended.calls))
                        if limit is not None and len(found) >= limit:
                            break
            return found


async def _begin_again(plane: EmbeddedControlPlane, snapshot: PlaneSnapshot) -> None:
    """Restore what was there before the first world, and begin with a full second, as the first one did."""
    plane.reset(snapshot)
    loop = asyncio.get_running_loop()
    await asyncio.sleep(math.ceil(loop.time()) + _PAUSE - loop.time())


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Random numbers follow from the name of a world, and the program goes on with its own."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _quiet(is_quiet: bool) -> Iterator[None]:
    """The log of an operator that is killed a hundred times is of no use."""
    package = logging.getLogger("kubewright")
    level = package.level
    if is_quiet:
        package.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        package.setLevel(level)
