"""A handler that cannot go on before something outside the server has answered.

Handlers do not wait: one that must raises `Suspended`. The server awaits the outcomes and runs the handler again from
the beginning, with the outcomes at hand. What a handler does before it is suspended must therefore have no effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError

T = TypeVar("T")

Step: TypeAlias = tuple[str, ...]
"""Which outcome a handler waits for: the same again only when the handler is in the same situation."""


class Outcome(NamedTuple):
    """What a handler waited for: an object to go on with, or an error; what was noted until then."""

    obj: JSONObject | None
    error: StatusError | None
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = {}


Settled: TypeAlias = dict[Step, Outcome]
"""The outcomes for which one request was suspended so far."""
Settling: TypeAlias = Callable[[], Awaitable[Mapping[Step, Outcome]]]


class Suspended(Exception):
    """The handler is to be run again with the outcomes of what is settled by these."""

    def __init__(self, *settling: Settling) -> None:
        super().__init__()
        self.settling = settling

    async def outcomes(self) -> Settled:
        """Settle everything, all at once."""
        found: Settled = {}
        for outcomes in await asyncio.gather(*(settle() for settle in self.settling)):
            found.update(outcomes)
        return found


async def completed(act: Callable[[], T], settled: Settled) -> T:
    """The result of `act`, which is run again with more outcomes in `settled` for as long as it is suspended."""
    while True:
        try:
            return act()
        except Suspended as stop:
            settled.update(await stop.outcomes())
