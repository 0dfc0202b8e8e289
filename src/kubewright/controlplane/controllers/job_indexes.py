"""The completion indexes of Jobs: as a set here, as `0,2,4-7` in their status."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.api.core.v1 import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"


def parsed(text: str | None, completions: int) -> set[int]:
    """The indexes of a status, as far as there are that many completions."""
    found: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def formatted(indexes: Iterable[int]) -> str:
    """The indexes as a status has them: three or more in a row as a range."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def index_of(pod: Pod) -> int | None:
    """The index that the pod is for; None when it has none."""
    return _number(pod, INDEX)


def failures_of(pod: Pod) -> int:
    """How often the pod's index had failed before it, as far as that counts."""
    return _number(pod, FAILURES) or 0


def all_failures_of(pod: Pod) -> int:
    """How often the pod's index had failed before it, ignored failures included."""
    return failures_of(pod) + (_number(pod, IGNORED_FAILURES) or 0)


def _number(pod: Pod, annotation: str) -> int | None:
    text = pod.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else None
