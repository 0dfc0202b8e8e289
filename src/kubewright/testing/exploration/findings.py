"""What was found, written as a test failure: the fault, the difference, and how to run just that world again."""

from __future__ import annotations

import difflib
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from kubewright.testing.exploration.end_state import EndState, EventKey
from kubewright.testing.exploration.faults import SENTENCES, UNDISTURBED, APICall, Fault, WorldPlan

WORLD_VARIABLE = "KUBEWRIGHT_EXPLORE"
"""The environment variable with the name of the only world to run."""

_CALLS_BEFORE, _CALLS_AFTER = 4, 10
_MAX_LINES = 120
_SHORT, _CONTEXT = 40, 4  # lines of an object that is shown as a whole, and around a change of a longer one


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a world, in one sentence, and what shows it."""

    summary: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A world that does not end as it should. `str` is the whole report."""

    world: str
    """Its name, for `same_end(only=…)`."""
    faults: tuple[tuple[Fault, APICall], ...]
    """The faults that struck, and at which calls."""
    problem: Problem
    calls: tuple[APICall, ...]

    def __str__(self) -> str:
        lines = [f"{self.world}: {self.problem.summary}", "", *_happened(self.world, self.faults), ""]
        if self.problem.details:
            lines += [self.problem.details, ""]
        lines += ["the calls of the operator:", *_calls(self.calls, self.faults), ""]
        lines += ["to run only this world:", f"  {again(self.world)}"]
        return "\n".join(lines)


def finding(
    plan: WorldPlan, struck: Sequence[tuple[Fault, APICall]], problem: Problem, calls: Sequence[APICall]
) -> Finding:
    """The finding about a world."""
    return Finding(plan.name, tuple(struck), problem, tuple(calls))


def again(world: str) -> str:
    """A line that runs only this world: for the shell where pytest runs, otherwise Python."""
    # "tests/test_shelf.py::test_crashes (call)"
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    return f"{WORLD_VARIABLE}={world} pytest {shlex.quote(test)}" if test else f'explore(…).same_end(only="{world}")'


def differences(expected: EndState, found: EndState, tolerance: int | None) -> str:
    """How two ends differ, as a diff; empty when they do not. `tolerance` is how many more events there may be."""
    lines: list[str] = []
    if expected.objects != found.objects:
        for name in sorted({**expected.objects, **found.objects}):
            before, after = expected.objects.get(name), found.objects.get(name)
            if before != after:
                lines += _changes(_text(name, before), _text(name, after))
    if tolerance is not None:
        lines += _events(expected.events, found.events, tolerance)
    if not lines:
        return ""
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], f"… {len(lines) - _MAX_LINES} more lines"]
    return "\n".join(["--- the end of the undisturbed world", "+++ the end of this world", *lines])


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """The changed lines of an object with those around them. The first one names the object."""
    is_short = max(len(before), len(after)) <= _SHORT
    hunks = difflib.unified_diff(before, after, lineterm="", n=_SHORT if is_short else _CONTEXT)
    for number, line in enumerate(list(hunks)[2:]):
        if not line.startswith("@@"):
            yield line
        elif number:
            yield "   …"
        elif not line.startswith(("@@ -1,", "@@ -0,", "@@ -1 ")):
            yield f" {before[0]}"
            yield "   …"


def _text(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [f"{name}:", *(f"  {line}" for line in value.splitlines())]
    text: str = yaml.safe_dump({name: value}, sort_keys=True, allow_unicode=True, width=1000)
    return text.splitlines()


def _events(expected: Counter[EventKey], found: Counter[EventKey], tolerance: int) -> Iterator[str]:
    for key in sorted(found, key=str):
        if found[key] > expected[key] + tolerance:
            yield f"-event {key}: {expected[key]} x"
            yield f"+event {key}: {found[key]} x"


def _happened(world: str, faults: Sequence[tuple[Fault, APICall]]) -> Iterator[str]:
    if world == UNDISTURBED:
        yield "nothing was done to the operator in this world"
    elif not faults:
        yield "no fault struck in this world: only the order of things, uids and random numbers differ"
    for fault, call in faults:
        yield SENTENCES[fault.kind].format(call=call)


def _calls(calls: Sequence[APICall], faults: Sequence[tuple[Fault, APICall]]) -> Iterator[str]:
    struck = {call.number: fault.kind for fault, call in faults}
    first = min(struck, default=1)
    start = max(0, first - 1 - _CALLS_BEFORE)
    shown = calls[start : start + _CALLS_BEFORE + 1 + _CALLS_AFTER]
    if start:
        yield f"       … {start} before"
    for call in shown:
        mark = f"  ← {struck[call.number]}" if call.number in struck else ""
        arrow = "→" if mark else " "
        yield f"  {arrow}{call.number:>4} {call.process}: {call.method} {call.path}: {call.status}{mark}"
    left = len(calls) - start - len(shown)
    if left > 0:
        yield f"       … {left} more"
