"""Options that all controllers of a manager share unless a controller is given its own.

    Manager(client, controllers=ControllerDefaults(workers=4, timeout=60.0))

The counterpart of controller-runtime's `config.Controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from kubewright.api.kinds import GroupVersionKind
from kubewright.controller.ratelimit import ExponentialBackoff, RateLimiter

SYNC_TIMEOUT = 120.0
"""Seconds a source may take to sync before a warning is logged, and again after each further period."""

RESYNC = 36_000.0
"""Seconds after which all objects are reconciled again: ten hours, as in controller-runtime."""


class ControllerDefaults(Struct, frozen=True, kw_only=True):
    """What `controller_for(manager, Kind)` uses for options that it is not given; see `Controller` for them."""

    workers: int = 1
    workers_by_kind: Mapping[str, int] = field(default_factory=dict)
    """Workers of the controllers of particular kinds, such as `{"Pod": 4, "Deployment.apps": 2}`."""
    timeout: float | None = None
    max_attempts: int | None = None
    limiter: Callable[[], RateLimiter] = ExponentialBackoff
    """Makes the rate limiter of one controller; keys of different controllers must not share one."""
    debounce: float = 0.0
    sync_timeout: float = SYNC_TIMEOUT
    needs_leader: bool = True
    resync: float | None = RESYNC
    slow_hot_loops: bool = True

    def __post_init__(self) -> None:
        if not callable(self.limiter):
            raise TypeError(
                f"limiter={self.limiter!r}: each controller needs a limiter of its own, so give a function that makes "
                "one, such as ExponentialBackoff or lambda: ExponentialBackoff(base=1.0)"
            )

    def workers_for(self, kind: GroupVersionKind) -> int:
        """The number of workers of a controller of that kind."""
        name = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
        return self.workers_by_kind.get(name, self.workers)
