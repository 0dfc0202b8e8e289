"""Events as Kubernetes' older parts write them: core/v1, counted in the event itself.

kube-controller-manager and the kubelet use this form; kube-scheduler, and operators written with kubewright, the newer
one of `kubewright.manager.recorder`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, Literal, NamedTuple, TypeVar

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Event, EventSource, ObjectReference
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.client import Client, StrategicMergePatch
from kubewright.client.errors import NotFound
from kubewright.controlplane.controllers.clock import Clock

_BURST, _REFILL = 25, timedelta(minutes=5)
_MOST_MESSAGES, _SIMILAR_WITHIN = 10, timedelta(minutes=10)
_MOST_REMEMBERED = 4096
_LONGEST_QUEUE = 1000
_LONGEST_STEM = 253 - len(".") - 16

V = TypeVar("V")


class _Place(NamedTuple):
    """Which object."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(eq=False, slots=True)
class _Entry:
    """An event as it should be on the server, and whether it is there at all."""

    event: Event
    is_written: bool = False


@dataclass(slots=True)
class _Similar:
    """The different words that were found for one subject lately."""

    last: datetime
    messages: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Bucket:
    """What may still be told of one object."""

    filled_at: datetime
    tokens: float = _BURST

    def take(self, now: datetime) -> bool:
        self.tokens = min(_BURST, self.tokens + max(0.0, (now - self.filled_at) / _REFILL))
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Recent(Generic[V]):
    """What was used last, up to a number of them."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        value = self._values.get(key)
        if value is None:
            value = self._values[key] = make()
        self._values.move_to_end(key)
        if len(self._values) > _MOST_REMEMBERED:
            self._values.popitem(last=False)
        return value


class EventLog:
    """Writes the events of one component, from the one task that `run` is; recording never waits and never fails.

    As client-go's: an event that repeats is counted, ten that differ in their words only become one, and of one object
    no more than 25 are told at once and one every five minutes after that.
    """

    def __init__(self, client: Client, component: str, *, program: str, clock: Clock) -> None:
        self._client = client
        self._component = component
        self._program = program
        self._clock = clock
        self._entries = _Recent[_Entry]()
        self._similar = _Recent[_Similar]()
        self._buckets = _Recent[_Bucket]()
        self._queue: dict[_Entry, None] = {}
        self._last_name = 0
        self._filled = asyncio.Event()

    def normal(self, about: Object, reason: str, message: str, *, host: str = "", field_path: str = "") -> None:
        """What went as it should; `host` is the node it happened on, `field_path` the part of the object."""
        self._record("Normal", about, reason, message, host, field_path)

    def warning(self, about: Object, reason: str, message: str, *, host: str = "", field_path: str = "") -> None:
        """What did not."""
        self._record("Warning", about, reason, message, host, field_path)

    async def run(self) -> None:
        """Write what is recorded until cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._queue:
                entry = next(iter(self._queue))
                del self._queue[entry]
                # A namespace on its way out takes no events, and nobody waits for them.
                with suppress(KubernetesError):
                    await self._write(entry)

    def _record(
        self, kind: Literal["Normal", "Warning"], about: Object, reason: str, message: str, host: str, field_path: str
    ) -> None:
        now, gvk = self._clock.now(), resource_info(type(about)).gvk
        place = _Place(gvk.api_version, gvk.kind, about.metadata.namespace, about.metadata.name, about.metadata.uid)
        subject = (host, place, field_path, kind, reason)
        similar = self._similar.get(subject, lambda: _Similar(now))
        if now - similar.last > _SIMILAR_WITHIN:
            similar.messages.clear()
        similar.last = now
        similar.messages.add(message)
        key: Hashable = (subject, message)
        if len(similar.messages) >= _MOST_MESSAGES:
            similar.messages.pop()
            key, message = subject, f"(combined from similar events): {message}"
        entry = self._entries.get(key, lambda: _Entry(self._event(kind, about, reason, host, field_path, now)))
        entry.event.count = (entry.event.count or 0) + 1
        entry.event.last_timestamp = now.replace(microsecond=0)
        entry.event.message = message
        may_write = self._buckets.get((host, place, kind), lambda: _Bucket(now)).take(now)
        if may_write and len(self._queue) < _LONGEST_QUEUE:
            self._queue[entry] = None
            self._filled.set()

    def _event(self, kind: str, about: Object, reason: str, host: str, field_path: str, now: datetime) -> Event:
        gvk, meta = resource_info(type(about)).gvk, about.metadata
        return Event(
            metadata=ObjectMeta(name=self._name(meta.name, now), namespace=meta.namespace or "default"),
            involved_object=ObjectReference(
                api_version=gvk.api_version,
                kind=gvk.kind,
                namespace=meta.namespace or None,
                name=meta.name,
                uid=meta.uid,
                resource_version=meta.resource_version,
                field_path=field_path or None,
            ),
            type=kind,
            reason=reason,
            source=EventSource(component=self._component, host=host or None),
            reporting_component=self._component,
            reporting_instance=host or None,
            first_timestamp=now.replace(microsecond=0),
        )

    def _name(self, about: str, now: datetime) -> str:
        """The object's name and the time in nanoseconds; unique also while the clock stands still."""
        self._last_name = max(self._last_name + 1, int(now.timestamp() * 1_000_000) * 1000)
        return f"{about[:_LONGEST_STEM].rstrip('.-')}.{self._last_name:x}"

    async def _write(self, entry: _Entry) -> None:
        event = entry.event
        if entry.is_written:
            changes: dict[str, JSONValue] = {
                "count": event.count,
                "lastTimestamp": to_json(event.last_timestamp),
                "message": event.message,
            }
            # Events are forgotten after an hour.
            with suppress(NotFound):
                await self._client.patch(event, StrategicMergePatch(changes), field_manager=self._program)
                return
        await self._client.create(event, field_manager=self._program)
        entry.is_written = True
