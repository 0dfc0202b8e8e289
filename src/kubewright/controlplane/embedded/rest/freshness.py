"""What depends on the real server's watch cache: waiting, a while, for a revision that it has not reached yet; and a
kind that it cannot cache.
"""

from __future__ import annotations

import asyncio

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore

# The real server keeps events in no cache, and so waits for none of them.
_GROUPS_OF_EVENTS = frozenset(("", "events.k8s.io"))


class NotReached(StatusError):
    """504 for a revision that has not been reached; to be retried once it has."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(504, "Timeout", _message(requested, current), details={**_cause(), "retryAfterSeconds": 1})
        self.requested = requested


def not_reached(call: Call, requested: int) -> StatusError:
    """The error for a revision in the future."""
    current = call.services.store.revision
    if not awaited(call):
        return StatusError(504, "Timeout", _message(requested, current), details=_cause())
    return NotReached(requested, current)


def awaited(call: Call) -> bool:
    """Whether it is worth waiting for a future revision of this kind: of all but events it is."""
    return call.resource.plural != "events" or call.resource.gvk.group not in _GROUPS_OF_EVENTS


def must_be_listable(call: Call) -> None:
    """Raise StatusError when one of all the objects of a kind cannot be read: the real server has no cache then."""
    if not call.resource.is_dropping:
        return
    try:
        call.services.store.range(call.resource.prefix)
    except StatusError as error:
        message = unlistable(call.resource.gvk, error.message)
        raise StatusError(429, "TooManyRequests", message, details={"retryAfterSeconds": 1}) from None


def unlistable(gvk: GroupVersionKind, why: str) -> str:
    """The error for a kind whose objects cannot all be read."""
    return f"storage is (re)initializing: failed to list {gvk.api_version}, Kind={gvk.kind}: {why}"


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


def _message(requested: int, current: int) -> str:
    return f"Timeout: Too large resource version: {requested}, current: {current}"


def _cause() -> JSONObject:
    return {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
