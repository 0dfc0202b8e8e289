"""The reconcile that the running code belongs to, for log lines and traces.

It is not for reconcilers: what they do must not depend on why they run.
"""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kubewright.controller.queue import Reason
    from kubewright.controller.statistics import ControllerStatistics


class ReconcileContext(Struct, frozen=True):
    """One run of a reconciler: which controller, for which object, and why."""

    controller: str
    group: str
    kind: str
    namespace: str
    name: str
    reconcile_id: str
    reasons: tuple[Reason, ...]
    statistics: ControllerStatistics

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.controller} {where}{self.name}"


current: ContextVar[ReconcileContext | None] = ContextVar("kubewright.reconcile", default=None)
"""The reconcile that the running code is part of; None outside of any."""

_process = os.urandom(4).hex()
_numbers = itertools.count(1)


def new_reconcile_id() -> str:
    """An id that is unique in this process and almost certainly between processes: a counter, as it is made often."""
    return f"{_process}-{next(_numbers):06x}"
