"""`Pipeline`: an object that is ready when a number of steps succeeded.

    user_pipeline = Pipeline[UserContext](namespace, service_account, role, kubeconfig)

    class UserReconciler(ObjectReconciler[User]):
        async def converge(self, user: User) -> None:
            await user_pipeline.run(UserContext(user, self.client, self.events))
            user.status.phase = "Active"

Each step reports by a condition: True with the reason "Done", or with what it returns (`Done`); False with the reason
of `NotYet` or of the error, or "Blocked" when a step that it needs did not succeed. The condition "Ready" summarizes
them. The pipeline itself writes nothing: `ObjectReconciler` writes the status afterwards, once. A step that a later
version of the program no longer has leaves its condition behind: `remove_condition` in `converge` takes it away.

There are two modes. By default every step runs that can run, and the first error is raised after the last. With
`fail_fast` the first error or `NotYet` ends the run. A pipeline is nested by running it in a step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar, cast

from kubewright.api import Object
from kubewright.controller import TerminalError
from kubewright.controller.context import current
from kubewright.manager import Recorder
from kubewright.patterns.conditions import (
    Conditioned,
    is_lost_race,
    is_true,
    message_of,
    reason_of,
    remove_condition,
    set_condition,
    summarize,
)
from kubewright.patterns.not_yet import NotYet
from kubewright.patterns.steps import AnyStep, Done, Step

StepOutcome: TypeAlias = Literal["done", "waiting", "failed", "blocked", "skipped"]

_log = logging.getLogger(__name__)


class PipelineContext(Protocol):
    """What a pipeline needs of a context: see `kubewright.patterns.Context`."""

    @property
    def object(self) -> Conditioned:
        """The object whose conditions the steps report."""

    @property
    def events(self) -> Recorder:
        """The recorder of failures."""


ContextT = TypeVar("ContextT", bound=PipelineContext)


class Hook(Protocol):
    """Sees the steps of a pipeline start and end. One that fails is logged, and changes nothing for the steps."""

    def started(self, step: AnyStep, context: object) -> None:
        """A step is about to run."""

    def ended(self, step: AnyStep, context: object, outcome: StepOutcome, seconds: float) -> None:
        """A step has run, or could not: then it took no time."""


class Pipeline(Generic[ContextT]):
    """Steps in the order in which they run. Checked when it is made: what a step needs comes before it."""

    def __init__(
        self,
        *steps: Step[ContextT],
        fail_fast: bool = False,
        ready: str | None = "Ready",
        hooks: Sequence[Hook] = (),
    ) -> None:
        """`ready` is the condition that summarizes all; None for none, as in a pipeline inside another one."""
        _check(steps, ready)
        self.steps = steps
        self.fail_fast = fail_fast
        self.ready = ready
        self.hooks = tuple(hooks)

    async def run(self, context: ContextT) -> None:
        """Run the steps. Raises the first error; or else, when steps wait, a `NotYet` that names them.

        A `TerminalError` of one step is raised only if no other one is to be retried.
        A lost race (`Conflict`) and a cancellation end the run at once and say nothing about the object.
        """
        run = _Run(context, self.hooks)
        for step in self.steps:
            if not await run.advance(step) and self.fail_fast:
                break
        if self.ready is not None:
            applicable = [step.condition for step in self.steps if step not in run.skipped]
            if applicable:
                summarize(context.object, *applicable, into=self.ready)
            else:
                set_condition(context.object, self.ready, True, "Done")
        run.conclude()

    def is_ready(self, obj: Conditioned) -> bool:
        """Whether every step succeeded for the present generation. Steps with `when` may have none."""
        there = [each.type for each in obj.status.conditions]
        expected = [step.condition for step in self.steps if not step.is_optional or step.condition in there]
        return bool(expected) and all(is_true(obj, condition) for condition in expected)

    def diagram(self) -> str:
        """The steps and what they need, as a Mermaid flowchart; with `fail_fast`, the order in which they run."""
        lines = ["flowchart TD"]
        lines += [f'    {step.name}["{step.name}<br/>{step.condition}"]' for step in self.steps]
        if self.fail_fast:
            lines += [f"    {earlier.name} --> {later.name}" for earlier, later in pairwise(self.steps)]
        else:
            lines += [f"    {need.name} --> {step.name}" for step in self.steps for need in step.needs]
        return "\n".join(lines) + "\n"


class _Run(Generic[ContextT]):
    """One run over one object."""

    def __init__(self, context: ContextT, hooks: Sequence[Hook]) -> None:
        self.skipped: set[AnyStep] = set()
        self._context = context
        self._hooks = hooks
        self._done: set[AnyStep] = set()
        self._errors: dict[AnyStep, Exception] = {}
        self._waiting: list[NotYet] = []

    async def advance(self, step: Step[ContextT]) -> bool:
        """Run a step if it can run, and report its outcome. False when it did not succeed. Raises lost races."""
        obj, context = self._context.object, self._context
        time = asyncio.get_running_loop().time
        began = time()
        try:
            if not self.skipped.isdisjoint(step.needs) or not (step.when is None or step.when(context)):
                self.skipped.add(step)
                remove_condition(obj, step.condition)
                self._ended(step, "skipped", 0.0)
                return True
            unmet = next((need for need in step.needs if need not in self._done), None)
            if unmet is not None:
                set_condition(obj, step.condition, False, "Blocked", f"blocked by {unmet.condition}")
                self._ended(step, "blocked", 0.0)
                return True
            self._started(step)
            done = await step(context) or Done()
        except NotYet as waiting:
            self._waiting.append(waiting)
            self._report(step, waiting, warn=waiting.warn)
            self._ended(step, "waiting", time() - began)
            return False
        except Exception as error:
            self._ended(step, "failed", time() - began)
            if is_lost_race(error):
                raise
            self._fail(step, error)
            return False
        self._done.add(step)
        set_condition(obj, step.condition, not done.degraded, done.reason, done.message)
        self._ended(step, "done", time() - began)
        return True

    def conclude(self) -> None:
        """Raise what the run has to report."""
        errors = list(self._errors.values())
        # What is not retried must not keep other steps from being retried.
        retried = next((error for error in errors if not isinstance(error, TerminalError)), None)
        raised = retried or (errors[0] if errors and not self._waiting else None)
        for step, error in self._errors.items():
            if error is not raised:
                _log.error("the step %s failed, too: %s", step.name, message_of(error))
        if raised is not None:
            raise raised
        if len(self._waiting) == 1:
            raise self._waiting[0]
        if self._waiting:
            first = min(self._waiting, key=lambda waiting: waiting.after)
            message = "; ".join(waiting.message for waiting in self._waiting)
            raise NotYet(message, after=first.after, reason=first.reason)

    def _fail(self, step: Step[ContextT], error: Exception) -> None:
        self._report(step, error, warn=True)
        self._errors[step] = error

    def _report(self, step: Step[ContextT], error: Exception, *, warn: bool) -> None:
        obj, reason, message = self._context.object, reason_of(error), message_of(error)
        if set_condition(obj, step.condition, False, reason, message) and warn:
            self._context.events.warning(cast(Object, obj), reason, f"{step.name} failed: {message}")

    def _started(self, step: Step[ContextT]) -> None:
        for hook in self._hooks:
            try:
                hook.started(step, self._context)
            except Exception:
                _log.exception("a hook failed at the start of the step %s", step.name)

    def _ended(self, step: Step[ContextT], outcome: StepOutcome, seconds: float) -> None:
        if outcome != "skipped":
            _log.debug("step %s: %s in %.0f ms", step.name, outcome, seconds * 1000)
        reconcile = current.get()
        if reconcile is not None:
            reconcile.statistics.observe_step(step.name, outcome, seconds)
        for hook in self._hooks:
            try:
                hook.ended(step, self._context, outcome, seconds)
            except Exception:
                _log.exception("a hook failed at the end of the step %s", step.name)


def _check(steps: Sequence[object], ready: str | None) -> None:
    before: set[object] = set()
    conditions: set[str] = set()
    if not steps:
        raise ValueError("a pipeline without steps would never be ready: give it steps")
    for step in steps:
        if not isinstance(step, Step):
            raise TypeError(f'Pipeline(…): {step!r} is not a step: decorate the function with @step("ConditionType")')
        late = [need.name for need in step.needs if need not in before]
        if late:
            raise ValueError(f"the step {step.name} needs {', '.join(late)}, which must come before it in the pipeline")
        if step.condition in conditions or step.condition == ready:
            raise ValueError(f"the step {step.name}: another condition of this pipeline is called {step.condition}")
        before.add(step)
        conditions.add(step.condition)
