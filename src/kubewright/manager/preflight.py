"""Before a manager starts: wait for the API server, and check that everything it needs is permitted.

Instead of one watch failing after the other, the start fails with a list of all missing permissions. Those that it can
do without, such as recording events, are a warning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kubewright.api.errors import KubernetesError
from kubewright.client import Client
from kubewright.client.backoff import Backoff
from kubewright.manager.permissions import MissingPermission, Permission, explain, missing_permissions

_PAUSE = Backoff(0.5, 10.0, jitter=0.3)  # between attempts to reach a server

_log = logging.getLogger(__name__)


class PermissionsMissing(KubernetesError):
    """The program may not do what it needs to. The message lists what is missing, and what to do."""


Needs: TypeAlias = Callable[[], Iterable[tuple[Client, Iterable[Permission]]]]
"""The permissions to check, for each cluster by its client."""


class Preflight:
    """The check of one manager: `needs` have to be permitted, `dispensable` should be."""

    def __init__(self, needs: Needs, dispensable: Needs) -> None:
        self._needs = needs
        self._dispensable = dispensable
        self.unreachable: str | None = None
        """Why the server does not answer, while it is waited for."""

    async def run(self) -> None:
        """Return when everything is permitted, as soon as the server answers. Raises `PermissionsMissing`."""
        attempt = 0
        self.unreachable = "no response yet"
        while True:
            attempt += 1
            try:
                absent = await _absent(self._needs)
                desired = [] if absent else await _absent(self._dispensable)
            except KubernetesError as error:
                if not error.is_temporary:
                    raise
                self.unreachable = str(error)
                # At once, and then after twice as many attempts each time.
                level = logging.WARNING if attempt.bit_count() == 1 else logging.DEBUG
                _log.log(level, "waiting for the API server: %s", error)
            else:
                self.unreachable = None
                if attempt > 1:
                    _log.info("the API server answers")
                if absent:
                    raise PermissionsMissing(explain(absent))
                if desired:
                    _log.warning("%s", explain(desired))
                return
            await asyncio.sleep(_PAUSE.delay(attempt))


async def _absent(needs: Needs) -> list[MissingPermission]:
    absent: list[MissingPermission] = []
    for client, permissions in needs():
        absent += await missing_permissions(client, permissions)
    return absent
