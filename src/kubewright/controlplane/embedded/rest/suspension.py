"""A handler that cannot go on before something outside the server has answered.

Handlers do not wait: one that must raises `Suspended`. The server awaits the outcome and runs the handler again from
the beginning, with the outcome at hand. What a handler does before it is suspended must therefore have no effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError

Step: TypeAlias = tuple[str, ...]
"""Which outcome a handler waits for: the same again only when the handler is in the same situation."""


class Outcome(NamedTuple):
    """What a handler waited for: an object to go on with, or an error; what was noted until then."""

    obj: JSONObject | None
    error: StatusError | None
    warnings: Sequence[str]
    annotations: Mapping[str, str]


class Suspended(Exception):
    """The handler is to be run again with the outcomes of these steps."""

    def __init__(self, steps: Mapping[Step, Callable[[], Awaitable[Outcome]]]) -> None:
        super().__init__(*steps)
        self.steps = steps
