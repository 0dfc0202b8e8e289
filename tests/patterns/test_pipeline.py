from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from tests.patterns.parcels import Parcel, parcel

from kubewright import Client, Conflict, Forbidden, TerminalError
from kubewright.client.errors import Status
from kubewright.controller.context import ReconcileContext, current
from kubewright.controller.statistics import ControllerStatistics
from kubewright.patterns import Context, Done, NotYet, Pipeline, Step, StepOutcome, step
from kubewright.patterns.steps import AnyStep
from kubewright.testing import RecordedEvents, run_virtual


class ParcelContext(Context[Parcel]):
    """What the steps of these tests share."""

    address = ""
    ran: list[str]


def context(obj: Parcel | None = None) -> ParcelContext:
    created = ParcelContext(obj or parcel(), Client.__new__(Client), RecordedEvents())
    created.ran = []
    return created


def events(run: ParcelContext) -> RecordedEvents:
    assert isinstance(run.events, RecordedEvents)
    return run.events


def returning(name: str, *, needs: tuple[Step[ParcelContext], ...] = ()) -> Step[ParcelContext]:
    return raising(name, None, needs=needs)


def raising(name: str, error: Exception | None, *, needs: tuple[Step[ParcelContext], ...] = ()) -> Step[ParcelContext]:
    async def work(run: ParcelContext) -> None:
        run.ran.append(name)
        if error is not None:
            raise error

    work.__name__ = name.lower()
    return step(name, needs=needs)(work)


def is_large(run: ParcelContext) -> bool:
    return run.object.spec.size > 1


def verdicts(obj: Parcel) -> dict[str, tuple[str, str, str]]:
    return {each.type: (each.status, each.reason, each.message) for each in obj.status.conditions}


def run(pipeline: Pipeline[ParcelContext], run: ParcelContext) -> Exception | None:
    async def main() -> Exception | None:
        try:
            await pipeline.run(run)
        except Exception as error:
            return error
        return None

    return run_virtual(main)


REFUSED = Forbidden(Status(code=403, reason="Forbidden", message="no"), "create Role a/b")
DONE = ("True", "Done", "")


def test_item_42_what_one_step_puts_into_the_context_the_next_one_sees() -> None:
    @step("Addressed")
    async def address(run: ParcelContext) -> None:
        run.address = "10 Downing Street"

    @step("Labelled", needs=[address])
    async def label(run: ParcelContext) -> None:
        run.ran.append(run.address)

    one = context()
    assert run(Pipeline[ParcelContext](address, label), one) is None
    assert one.ran == ["10 Downing Street"]
    assert verdicts(one.object) == {"Addressed": DONE, "Labelled": DONE, "Ready": DONE}
    assert context().address == "", "a context is that of one run"


def test_what_a_step_returns_is_what_its_condition_says() -> None:
    @step("Weighed")
    async def weigh(run: ParcelContext) -> Done:
        return Done("it has 2 kg", reason="ScaleRead")

    one = context()
    assert run(Pipeline[ParcelContext](weigh), one) is None
    assert verdicts(one.object) == {"Weighed": ("True", "ScaleRead", "it has 2 kg"), "Ready": DONE}


def test_a_degraded_step_is_not_true_and_blocks_nothing() -> None:
    @step("Insured")
    async def insure(run: ParcelContext) -> Done:
        return Done("the insurer is closed: it goes without", reason="NotInsured", degraded=True)

    one = context()
    pipeline = Pipeline[ParcelContext](insure, returning("Sent", needs=(insure,)))
    assert run(pipeline, one) is None
    assert one.ran == ["Sent"]
    assert verdicts(one.object) == {
        "Insured": ("False", "NotInsured", "the insurer is closed: it goes without"),
        "Sent": DONE,
        "Ready": ("False", "NotInsured", "Insured: the insurer is closed: it goes without"),
    }
    assert not pipeline.is_ready(one.object)


def test_item_43_a_failing_step_does_not_stop_the_others() -> None:
    a = raising("A", REFUSED)
    pipeline = Pipeline[ParcelContext](a, returning("B"), raising("C", ValueError("bad")), returning("D", needs=(a,)))
    one = context()
    assert run(pipeline, one) is REFUSED
    assert one.ran == ["A", "B", "C"]
    assert verdicts(one.object) == {
        "A": ("False", "Forbidden", "create Role a/b: no"),
        "B": DONE,
        "C": ("False", "ValueError", "bad"),
        "D": ("False", "Blocked", "blocked by A"),
        "Ready": ("False", "Forbidden", "A: create Role a/b: no; C: bad; D: blocked by A"),
    }


def test_item_44_with_fail_fast_the_first_error_ends_the_run() -> None:
    one = context()
    pipeline = Pipeline[ParcelContext](returning("A"), raising("B", REFUSED), returning("C"), fail_fast=True)
    assert run(pipeline, one) is REFUSED
    assert one.ran == ["A", "B"]
    assert verdicts(one.object) == {
        "A": DONE,
        "B": ("False", "Forbidden", "create Role a/b: no"),
        "Ready": ("False", "Forbidden", "B: create Role a/b: no; C is not known yet"),
    }


def test_with_fail_fast_a_step_that_waits_ends_the_run_too() -> None:
    one = context()
    waiting = NotYet("no node")
    pipeline = Pipeline[ParcelContext](raising("A", waiting), returning("B"), fail_fast=True)
    assert run(pipeline, one) is waiting
    assert one.ran == ["A"]


def test_item_45_a_step_is_called_alone_and_used_in_several_pipelines() -> None:
    a, b = returning("A"), returning("B")
    alone = context()
    asyncio.run(_awaited(a, alone))
    assert (alone.ran, verdicts(alone.object)) == (["A"], {})
    for order in ((a, b), (b, a)):
        one = context()
        run(Pipeline[ParcelContext](*order), one)
        assert one.ran == [each.condition for each in order]


async def _awaited(each: Step[ParcelContext], run: ParcelContext) -> None:
    await each(run)


def test_item_46_hooks_and_metrics_see_start_end_and_duration_of_each_step() -> None:
    seen: list[object] = []

    class Recorded:
        def started(self, step: AnyStep, context: object) -> None:
            seen.append(("started", step.name))

        def ended(self, step: AnyStep, context: object, outcome: StepOutcome, seconds: float) -> None:
            seen.append((outcome, step.name, seconds))

    @step("Slow")
    async def slow(run: ParcelContext) -> None:
        await asyncio.sleep(2)

    @step("Broken")
    async def broken(run: ParcelContext) -> None:
        await asyncio.sleep(1)
        raise REFUSED

    @step("Never", needs=[broken])
    async def never(run: ParcelContext) -> None: ...

    @step("Waits")
    async def waits(run: ParcelContext) -> None:
        raise NotYet("no node")

    @step("Skipped", when=is_large)
    async def skipped(run: ParcelContext) -> None: ...

    statistics = ControllerStatistics(1)
    token = current.set(ReconcileContext("c", "", "Parcel", "default", "web", "id", (), statistics))
    pipeline = Pipeline[ParcelContext](slow, broken, never, waits, skipped, hooks=[Recorded()])
    run(pipeline, context())
    current.reset(token)
    assert seen == [
        ("started", "slow"),
        ("done", "slow", 2.0),
        ("started", "broken"),
        ("failed", "broken", 1.0),
        ("blocked", "never", 0.0),
        ("started", "waits"),
        ("waiting", "waits", 0.0),
        ("skipped", "skipped", 0.0),
    ]
    assert {key: histogram.sum for key, histogram in statistics.steps.items()} == {
        ("slow", "done"): 2.0,
        ("broken", "failed"): 1.0,
        ("never", "blocked"): 0.0,
        ("waits", "waiting"): 0.0,
        ("skipped", "skipped"): 0.0,
    }


def test_a_hook_that_fails_changes_nothing_for_the_steps(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def started(self, step: AnyStep, context: object) -> None:
            raise KeyError("start")

        def ended(self, step: AnyStep, context: object, outcome: StepOutcome, seconds: float) -> None:
            raise KeyError("end")

    obj = parcel()
    assert run(Pipeline(returning("A"), returning("B"), hooks=[Broken()]), context(obj)) is None
    assert verdicts(obj) == {"A": DONE, "B": DONE, "Ready": DONE}
    assert "a hook failed at the start of the step a" in caplog.text
    assert "a hook failed at the end of the step b" in caplog.text


def test_a_step_whose_when_fails_has_failed() -> None:
    error = KeyError("size")

    def broken(run: ParcelContext) -> bool:
        raise error

    @step("Sized", when=broken)
    async def sized(run: ParcelContext) -> None: ...

    obj = parcel()
    pipeline = Pipeline(sized, returning("B"))
    assert run(Pipeline(returning("Sized"), returning("B")), context(obj)) is None
    assert run(pipeline, context(obj)) is error
    failed = ("False", "KeyError", "'size'")
    assert verdicts(obj) == {"Sized": failed, "B": DONE, "Ready": ("False", "KeyError", "Sized: 'size'")}


def test_an_error_that_is_not_retried_does_not_keep_other_steps_from_being_retried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    terminal, temporary = TerminalError("never"), OSError("reset")
    assert run(Pipeline(raising("A", terminal), raising("B", temporary)), context()) is temporary
    assert "the step a failed, too: never" in caplog.text
    waiting = NotYet("busy")
    assert run(Pipeline(raising("A", terminal), raising("B", waiting)), context()) is waiting
    assert run(Pipeline(raising("A", terminal), returning("B")), context()) is terminal


def test_steps_that_wait_are_named_and_the_shortest_wait_counts() -> None:
    one = context()
    pipeline = Pipeline[ParcelContext](
        raising("A", NotYet("no node", after=30)), raising("B", NotYet("no disk", after=5, reason="Unbound"))
    )
    error = run(pipeline, one)
    assert isinstance(error, NotYet)
    assert (error.message, error.after) == ("no node; no disk", 5)
    assert verdicts(one.object)["B"] == ("False", "Unbound", "no disk")


def test_an_error_counts_more_than_a_wait() -> None:
    pipeline = Pipeline[ParcelContext](raising("A", NotYet("no node")), raising("B", REFUSED))
    assert run(pipeline, context()) is REFUSED


def test_a_lost_race_ends_the_pipeline_at_once_and_sets_no_condition() -> None:
    race = Conflict(Status(code=409, reason="Conflict", message="the object has been modified"))
    assert race.is_optimistic_lock
    one = context()
    assert run(Pipeline[ParcelContext](returning("A"), raising("B", race), returning("C")), one) is race
    assert one.ran == ["A", "B"]
    assert verdicts(one.object) == {"A": DONE}


def test_item_59_a_failure_is_one_warning_event_per_change_and_names_the_step() -> None:
    one = context()
    pipeline = Pipeline[ParcelContext](raising("A", REFUSED))
    for _ in range(3):
        run(pipeline, one)
    assert [(call.reason, call.note) for call in events(one).warnings] == [
        ("Forbidden", "a failed: create Role a/b: no")
    ]


def test_a_wait_that_warns_is_one_event_per_change() -> None:
    one = context()
    for name in ("a", "a", "b"):
        run(Pipeline[ParcelContext](raising("A", NotYet(f"{name} is taken", reason="NameTaken", warn=True))), one)
    assert [(call.reason, call.note) for call in events(one).warnings] == [
        ("NameTaken", "a failed: a is taken"),
        ("NameTaken", "a failed: b is taken"),
    ]


def test_a_wait_is_no_event() -> None:
    one = context()
    run(Pipeline[ParcelContext](raising("A", NotYet("no node"))), one)
    assert events(one).calls == []


def test_a_step_that_does_not_apply_has_no_condition_and_neither_have_those_that_need_it() -> None:
    @step("Large", when=is_large)
    async def large(run: ParcelContext) -> None:
        run.ran.append("Large")

    pipeline = Pipeline[ParcelContext](returning("A"), large, returning("C", needs=(large,)))
    obj = parcel()
    obj.spec.size = 2
    one = context(obj)
    assert run(pipeline, one) is None
    assert one.ran == ["A", "Large", "C"]
    assert verdicts(obj).keys() == {"A", "Large", "C", "Ready"}
    obj.spec.size = 1
    one = context(obj)
    assert run(pipeline, one) is None
    assert one.ran == ["A"]
    assert verdicts(obj) == {"A": DONE, "Ready": DONE}
    assert pipeline.is_ready(obj)


def test_item_50_it_is_ready_only_when_every_step_succeeded_for_this_generation() -> None:
    pipeline = Pipeline[ParcelContext](returning("A"), returning("B"))
    obj = parcel()
    assert not pipeline.is_ready(obj)
    run(Pipeline[ParcelContext](returning("A")), context(obj))
    assert not pipeline.is_ready(obj)
    run(pipeline, context(obj))
    assert pipeline.is_ready(obj)
    obj.metadata.generation = 2
    assert not pipeline.is_ready(obj)


def test_a_pipeline_is_nested_by_running_it_in_a_step() -> None:
    inner = Pipeline[ParcelContext](raising("A", REFUSED), returning("B"), ready=None)

    @step("NetworkReady")
    async def network(run: ParcelContext) -> None:
        await inner.run(run)

    one = context()
    assert run(Pipeline[ParcelContext](network, returning("C")), one) is REFUSED
    assert one.ran == ["A", "B", "C"]
    assert verdicts(one.object)["NetworkReady"] == ("False", "Forbidden", "create Role a/b: no")
    assert verdicts(one.object)["B"] == DONE


def test_the_summary_has_the_name_that_it_is_given() -> None:
    one = context()
    run(Pipeline[ParcelContext](returning("A"), ready="Available"), one)
    assert verdicts(one.object) == {"A": DONE, "Available": DONE}


def test_a_cancellation_is_no_outcome() -> None:
    @step("A")
    async def cancelled(run: ParcelContext) -> None:
        raise asyncio.CancelledError

    one = context()

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await Pipeline[ParcelContext](cancelled).run(one)

    run_virtual(main)
    assert verdicts(one.object) == {}


def test_the_diagram_shows_steps_and_needs() -> None:
    a = returning("A")
    assert Pipeline[ParcelContext](a, returning("B", needs=(a,))).diagram() == (
        'flowchart TD\n    a["a<br/>A"]\n    b["b<br/>B"]\n    a --> b\n'
    )


def test_the_diagram_of_a_pipeline_that_fails_fast_shows_the_order() -> None:
    a = returning("A")
    steps = (a, returning("B"), returning("C", needs=(a,)))
    assert Pipeline[ParcelContext](*steps, fail_fast=True).diagram() == (
        'flowchart TD\n    a["a<br/>A"]\n    b["b<br/>B"]\n    c["c<br/>C"]\n    a --> b\n    b --> c\n'
    )


def _unordered() -> None:
    a = returning("A")
    Pipeline[ParcelContext](returning("B", needs=(a,)), a)


def _same_condition() -> None:
    Pipeline[ParcelContext](returning("A"), returning("A"))


def _called_ready() -> None:
    Pipeline[ParcelContext](returning("Ready"))


def _empty() -> None:
    Pipeline[ParcelContext]()


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (_unordered, "the step b needs a, which must come before it"),
        (_same_condition, "the step a: another condition of this pipeline is called A"),
        (_called_ready, "another condition of this pipeline is called Ready"),
        (_empty, "a pipeline without steps would never be ready"),
    ],
)
def test_a_pipeline_that_cannot_work_is_refused_when_it_is_made(mistake: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mistake()


def _plain_function() -> None:
    async def work(run: ParcelContext) -> None: ...

    Pipeline[ParcelContext](work)  # type: ignore[arg-type]


def _without_parentheses() -> None:
    @step  # type: ignore[call-overload]
    async def work(run: ParcelContext) -> None: ...


def _needs_a_name() -> None:
    step("A", needs=["b"])  # type: ignore[list-item]


def _not_async() -> None:
    def work(run: ParcelContext) -> Coroutine[None, None, None]:
        raise AssertionError

    step("A")(work)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (_plain_function, "is not a step: decorate the function with @step"),
        (_without_parentheses, "write @step"),
        (_needs_a_name, "expected steps, the functions themselves"),
        (_not_async, "is not an async function of the context"),
    ],
)
def test_a_mistake_in_a_step_is_refused_when_it_is_made(mistake: Callable[[], None], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mistake()
