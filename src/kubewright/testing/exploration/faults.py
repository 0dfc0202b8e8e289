"""The faults that a world may have, and which worlds there are to explore.

A world is named by its fault and the API call of the operator at which it strikes: `crash-after@3`. `seed@17` is a
world with several faults at once, `jitter@2` one in which only the order of things differs; both follow from their
numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeAlias, get_args

FaultKind: TypeAlias = Literal[
    "crash-after",
    "crash-before",
    "down",
    "conflict",
    "throttle",
    "error",
    "errors",
    "timeout",
    "lost-answer",
    "late",
    "cut",
    "expired",
    "takeover",
    "stale",
]
"""What may happen at an API call of the operator: see `SENTENCES`."""

FAULT_KINDS: Final[tuple[FaultKind, ...]] = get_args(FaultKind)

UNDISTURBED: Final = "undisturbed"

SECONDS_DOWN: Final = 60.0
"""How long nothing runs after `down`."""
SECONDS_LATE: Final = 10.0
"""How long a watch brings nothing."""
ERRORS: Final = 5
"""How often the same request fails with `errors`."""

SENTENCES: Final[dict[FaultKind, str]] = {
    "crash-after": "the operator is killed after {call}, and started again",
    "crash-before": "the operator is killed before {call}, and started again",
    "down": f"the operator is killed after {{call}}, and started again {SECONDS_DOWN:g} s later",
    "conflict": "{call} is answered with 409 Conflict",
    "throttle": "{call} is answered with 429 Too Many Requests",
    "error": "{call} is answered with 500 Internal Server Error",
    "errors": f"{{call}} is answered with 500 Internal Server Error, {ERRORS} times running",
    "timeout": "{call} does not reach the server, and times out",
    "lost-answer": "{call} takes effect, and its answer is lost: it times out",
    "late": f"from {{call}} on, watches bring nothing for {SECONDS_LATE:g} s",
    "cut": "the connections of all watches break at {call}",
    "expired": "all watches expire at {call}, and the caches are listed again",
    "takeover": "the leader is cut off after {call}, and a second replica takes over",
    "stale": "the leader is cut off after {call}, and a second replica takes over whose cache has nothing of what the "
    f"leader wrote until {SECONDS_LATE:g} s later",
}

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Those of reads would be the same worlds as those of the writes around them.
_OF_ANY_CALL = frozenset({"throttle", "error", "errors", "timeout"})
_NEEDS_REPLICA = frozenset({"takeover", "stale"})
_JITTERED_WORLDS = 2
_MAX_FAULTS = 3
_NAME = re.compile(r"([a-z-]+)@(\d+)")


@dataclass(slots=True)
class APICall:
    """A request of the operator that can be struck by a fault; the first of a world has the number 1."""

    number: int
    method: str
    path: str
    process: str
    status: str = "no answer"

    def __str__(self) -> str:
        return f"call {self.number}, {self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes at the first call from number `call` on that it can strike at."""

    kind: FaultKind
    call: int

    def strikes(self, call: APICall) -> bool:
        """Whether it can strike at this call."""
        if call.number < self.call:
            return False
        if self.kind == "conflict":
            return call.method in ("PUT", "PATCH")
        return self.kind in _OF_ANY_CALL or call.method in _WRITES


@dataclass(frozen=True, slots=True)
class WorldPlan:
    """What happens in one world. All that is random in it follows from its name."""

    name: str
    faults: tuple[Fault, ...] = ()
    has_jitter: bool = False

    @property
    def needs_replica(self) -> bool:
        """Whether a second replica waits for the lease."""
        return any(fault.kind in _NEEDS_REPLICA for fault in self.faults)


def plans(calls: Sequence[APICall], kinds: Sequence[FaultKind], seeds: int) -> Iterator[WorldPlan]:
    """The worlds to explore, given the calls of the undisturbed one."""
    for number in range(1, _JITTERED_WORLDS + 1):
        yield WorldPlan(f"jitter@{number}", has_jitter=True)
    for kind in kinds:
        for call in calls:
            if (fault := Fault(kind, call.number)).strikes(call):
                yield WorldPlan(f"{kind}@{call.number}", (fault,))
    if kinds:
        for seed in range(1, seeds + 1):
            yield _seeded(seed, len(calls), kinds)


def plan_named(name: str, calls: Sequence[APICall], kinds: Sequence[FaultKind]) -> WorldPlan:
    """The world of that name. Raises ValueError when there can be none."""
    match = _NAME.fullmatch(name)
    what, number = (match[1], int(match[2])) if match else (name, 0)
    if what == UNDISTURBED:
        return WorldPlan(UNDISTURBED)
    if what == "jitter" and number:
        return WorldPlan(name, has_jitter=True)
    if what == "seed" and number:
        return _seeded(number, len(calls), kinds)
    for kind in FAULT_KINDS:
        if what == kind and number:
            return WorldPlan(name, (Fault(kind, number),))
    raise ValueError(
        f'there is no world "{name}": expected a fault and the number of a call, such as crash-after@3 (faults: '
        f"{', '.join(FAULT_KINDS)}), jitter@1 or seed@1"
    )


def _seeded(seed: int, calls: int, kinds: Sequence[FaultKind]) -> WorldPlan:
    random = Random(f"plan {seed}")  # noqa: S311  # must be reproducible
    faults: list[Fault] = []
    for _ in range(random.randint(1, _MAX_FAULTS)):
        kind = random.choice(kinds)
        # There is one second replica, which can take over once.
        if kind not in _NEEDS_REPLICA or not _NEEDS_REPLICA.intersection(fault.kind for fault in faults):
            faults.append(Fault(kind, random.randint(1, calls + 2)))
    return WorldPlan(f"seed@{seed}", tuple(sorted(faults, key=lambda fault: fault.call)), has_jitter=True)
