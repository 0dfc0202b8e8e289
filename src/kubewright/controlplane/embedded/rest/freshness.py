"""Waiting for a revision that somebody knows of and this server has not reached yet, as the real one does: a while."""

from __future__ import annotations

import asyncio

from kubewright.controlplane.embedded.document import JSONObject
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore
from kubewright.controlplane.embedded.status import StatusError

# The real server keeps events in no cache, and so waits for none of them.
_GROUPS_OF_EVENTS = frozenset(("", "events.k8s.io"))


class NotReached(StatusError):
    """504 for a revision that has not been reached; worth asking again once it has."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(504, "Timeout", _told(requested, current), details={**_cause(), "retryAfterSeconds": 1})
        self.requested = requested


def not_reached(call: Call, requested: int) -> StatusError:
    """What to raise for a revision that lies in the future."""
    current = call.services.store.revision
    if not awaited(call):
        return StatusError(504, "Timeout", _told(requested, current), details=_cause())
    return NotReached(requested, current)


def awaited(call: Call) -> bool:
    """Whether it is worth waiting for a future revision of this kind: of all but events it is."""
    return call.resource.plural != "events" or call.resource.gvk.group not in _GROUPS_OF_EVENTS


async def reached(store: ObjectStore, revision: int, within: float) -> bool:
    """Wait until the store is at a revision, at most `within` seconds; whether it is."""
    subscription = store.watch("", store.revision)
    try:
        async with asyncio.timeout(within):
            while store.revision < revision and await subscription.changes():
                pass
    except TimeoutError:
        pass
    finally:
        subscription.close()
    return store.revision >= revision


def _told(requested: int, current: int) -> str:
    return f"Timeout: Too large resource version: {requested}, current: {current}"


def _cause() -> JSONObject:
    return {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
