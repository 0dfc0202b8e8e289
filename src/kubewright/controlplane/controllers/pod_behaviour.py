"""What a simulated pod does: how long it takes to start, whether it ends, and how.

    metadata:
      annotations:
        simulate.kubewright.dev/start: "2"          seconds until its containers run
        simulate.kubewright.dev/ready: "0.5"        seconds from running until it is ready, or never
        simulate.kubewright.dev/run: "10"           seconds from running until they end; without it they do not, except
                                                    that the pods of a Job end after a second
        simulate.kubewright.dev/exit-code: "1"      with what they end; 0 otherwise
        simulate.kubewright.dev/reason: OOMKilled   the reason of that; Completed or Error otherwise
        simulate.kubewright.dev/crashes: "3"        how often they end so before they run on; always otherwise
        simulate.kubewright.dev/stop: "3"           seconds from its deletion to its removal; 1 otherwise
        simulate.kubewright.dev/failed-pulls: "2"   how often its images cannot be pulled before they can, or always
        simulate.kubewright.dev/waiting: CreateContainerError    it never starts, for this reason

They are read each time: annotating a running pod with `run: "0"` ends it now. A crash loop is a pod with `run`,
an exit code and the restartPolicy Always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TypeAlias, TypeVar, cast

from kubewright.api.core.v1 import Pod

Default = TypeVar("Default")

PREFIX = "simulate.kubewright.dev/"

MAX_SECONDS = 1e9
"""More than 30 years. With much more than that, a time is one that no calendar has."""
_MAX_NUMBER, _MAX_EXIT_CODE = 9999, 255
_DURATIONS = ("start", "ready", "stop")

_NAMES = ("start", "ready", "run", "exit-code", "reason", "crashes", "stop", "failed-pulls", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How long the stages of a pod's life take, in seconds, and how it ends.

    From bound to running `start`, from running to ready `ready`, from running to ended `run`, and from deletion
    to removal `stop`, but no longer than its grace period.

    A pod takes about a second to end, as real ones do at the least: `kubectl delete` reads it once more after deleting
    it, to know what to wait for, and would wait for the next one of that name if that were back by then.
    """

    start: float = 0.0
    """`math.inf`: its containers never run."""
    ready: float = 0.0
    """`math.inf`: it never is."""
    run: float | None = None
    """None: its containers do not end by themselves."""
    exit_code: int = 0
    reason: str = ""
    """Why they end, such as OOMKilled; by default by the exit code."""
    crashes: float = inf
    """After so many restarts they run on."""
    stop: float = 1.0
    failed_pulls: float = 0
    """How often the images cannot be pulled, with the back-off of a kubelet in between; `math.inf`: they never can."""
    waiting: str = ""
    """Why it never starts: the reason that its containers show, such as CreateContainerError."""
    message: str = ""
    """The message to that reason."""

    def __post_init__(self) -> None:
        for name in _DURATIONS:
            _check(name, getattr(self, name), "seconds, such as 2.5, or math.inf", most=MAX_SECONDS)
        if self.run is not None:
            _check("run", self.run, "seconds, such as 2.5, or None", most=MAX_SECONDS)
        for name in ("crashes", "failed_pulls"):
            _check(name, getattr(self, name), "a number, such as 3, or math.inf", most=_MAX_NUMBER, whole=True)
        if not _is_exit_code(self.exit_code):
            raise ValueError(f"exit_code is {self.exit_code!r}: expected a number from 0 to {_MAX_EXIT_CODE}")
        for name in ("reason", "waiting", "message"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ValueError(f"{name} is {value!r}: expected a text")  # noqa: TRY004 (one kind for all values)

    def run_of(self, restarts: int) -> float | None:
        """How long its containers run after so many restarts; None when they do not end."""
        return None if restarts >= self.crashes or self.run == inf else self.run


def _is_exit_code(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _MAX_EXIT_CODE


def _check(name: str, value: object, expected: str, *, most: float, whole: bool = False) -> None:
    """Raise ValueError unless it is such a number, or infinite."""
    is_number = isinstance(value, int) or (isinstance(value, float) and (not whole or value.is_integer()))
    # NaN is refused, too: it is neither less than anything nor more.
    if value != inf and not (is_number and 0 <= cast(float, value) <= most):
        raise ValueError(f"{name} is {value!r}: expected {expected}")


_MAX_DIGITS = 4
_DEFAULT = Behaviour()
_OF_JOB = Behaviour(run=1.0)

BehaviourRule: TypeAlias = Callable[[Pod], Behaviour]
"""Returns the behaviour of a pod. It is called often and must be fast."""


def annotated(pod: Pod) -> Behaviour:
    """The behaviour from the pod's annotations. An invalid one keeps the pod from starting, with a reason."""
    texts = {
        name.removeprefix(PREFIX): value for name, value in pod.metadata.annotations.items() if name.startswith(PREFIX)
    }
    default = _OF_JOB if _is_of_job(pod) else _DEFAULT
    if not texts:
        return default
    try:
        return Behaviour(
            start=_seconds(texts, "start", default.start),
            ready=inf if texts.get("ready") == "never" else _seconds(texts, "ready", default.ready),
            run=_seconds(texts, "run", default.run),
            exit_code=_exit_code(texts),
            reason=texts.get("reason", ""),
            crashes=_number(texts, "crashes", default.crashes),
            stop=_seconds(texts, "stop", default.stop),
            failed_pulls=inf if texts.get("failed-pulls") == "always" else _number(texts, "failed-pulls", 0),
            waiting=_known(texts).get("waiting", ""),
        )
    except ValueError as problem:
        return Behaviour(waiting="CreateContainerConfigError", message=str(problem))


def _is_of_job(pod: Pod) -> bool:
    return any(owner.controller and owner.kind == "Job" for owner in pod.metadata.owner_references)


def _known(texts: dict[str, str]) -> dict[str, str]:
    for name in texts:
        if name not in _NAMES:
            raise ValueError(f"the annotation {PREFIX}{name} is not known (known: {', '.join(_NAMES)})")
    return texts


def _seconds(texts: dict[str, str], name: str, default: Default) -> float | Default:
    if name not in texts:
        return default
    try:
        seconds = float(texts[name])
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f'the annotation {PREFIX}{name} is "{texts[name]}": expected seconds, such as "2.5"')
    return seconds


def _exit_code(texts: dict[str, str]) -> int:
    text = texts.get("exit-code", "0")
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) > _MAX_EXIT_CODE:
        raise ValueError(f'the annotation {PREFIX}exit-code is "{text}": expected a number from 0 to {_MAX_EXIT_CODE}')
    return int(text)


def _number(texts: dict[str, str], name: str, default: float) -> float:
    text = texts.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise ValueError(f'the annotation {PREFIX}{name} is "{text}": expected a number, such as "3"')
    return int(text)
