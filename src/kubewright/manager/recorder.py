"""Kubernetes Events about what an operator does to an object: `kubectl events`, `kubectl describe`.

    broadcaster = EventBroadcaster(client, instance="operator-7d9f")
    recorder = broadcaster.recorder("podmanager")
    recorder.normal(manager, "Scaled", "2 pods became 3")

Recording is best effort and never blocks: it does not wait, does not raise and may be done from any thread.
`broadcaster.run()` writes what was recorded. An event that must not be lost when the process ends is written by
`await recorder.once(...)`. The role of the operator needs `create` and `patch` on `events` of
the group `events.k8s.io`, and nothing else for it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from kubewright.api.core.v1 import ObjectReference
from kubewright.api.resources import Object, resource_info
from kubewright.api.time import MicroTime, micro_now
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists, KubernetesError, NotFound
from kubewright.manager.event_correlator import (
    MAX_NAME,
    SUBDOMAIN,
    EventCorrelator,
    EventType,
    Identity,
    RecordedEvent,
    Subject,
    only_name,
)
from kubewright.manager.event_form import EventForm, EventsV1
from kubewright.manager.event_queue import EventQueue

# The server's limits, in bytes.
_MAX_NOTE, _MAX_WORD = 1024, 128
_PATIENCE = 2.0  # seconds until what waits for an event goes on without it
_COMPONENT = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"

_log = logging.getLogger(__name__)


class Recorder(Protocol):
    """Records Kubernetes Events. No method ever raises or fails, and only `once` waits."""

    def normal(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """Record a Normal event. `reason` is a CamelCase word for programs, `note` a sentence for users.

        `action` is what was done, by default the reason again; `related` is another object that was involved.
        """

    def warning(
        self, regarding: Object, reason: str, note: str, *, action: str = "", related: Object | None = None
    ) -> None:
        """Record a Warning event."""

    async def once(self, type_: EventType, regarding: Object, reason: str, note: str) -> None:
        """Write an event of which an object has at most one for each reason, and return when the server has it.

        For the end of something, before that is stored: a process that takes over from one that was killed in between
        does not write it again. What the server does not accept within two seconds is recorded as any other event.
        """


class EventBroadcaster:
    """Writes the events of its recorders, about one object in order; everything is owned by the task of `run`.

    `EventCorrelator` decides which occurrences are one event and how many are written, `EventQueue` which one is
    written when: while the server is unreachable, up to 10,000 events wait for it for a minute or two.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        now: Callable[[], datetime] = micro_now,
        form: EventForm | None = None,
    ) -> None:
        """`instance` names which of several replicas reports: the name of the pod, or of the host.

        `form` is how events are written, by default `EventsV1`.
        """
        self._client = client
        self._form = form or EventsV1()
        self._instance = instance
        self._now = now
        self._correlator = EventCorrelator(self._form.series_window)
        # Reconcilers may run in threads: its lock is for the correlator as well.
        self._queue = EventQueue(self._write, self._correlator.forget)
        self._check_instance(instance)

    def recorder(self, component: str, *, instance: str | None = None) -> EventRecorder:
        """A recorder for one part of the program, such as a controller; `component` becomes `reportingController`.

        `instance` is by default that of the broadcaster.
        """
        domain, slash, own = component.rpartition("/")
        is_valid = re.fullmatch(_COMPONENT, own) and (not slash or SUBDOMAIN.fullmatch(domain))
        if len(component) > MAX_NAME or not is_valid:
            raise ValueError(
                f'"{component}" cannot be the component of a recorder: expected a name of at most 63 letters, digits, '
                '"-", "_" and ".", such as "podmanager" or "example.com/podmanager"'
            )
        if instance is not None:
            self._check_instance(instance)
        return EventRecorder(self, component, self._instance if instance is None else instance)

    async def run(self) -> None:
        """Write events until cancelled. No error ends it."""
        await self._queue.run()

    async def flush(self, timeout: float) -> None:
        """Return when everything recorded has been written or given up, or after `timeout` seconds.

        For shutdown: before or after `run` is cancelled.
        """
        await self._queue.flush(timeout)

    def record(
        self,
        component: str,
        instance: str,
        type_: EventType,
        regarding: Object | ObjectReference,
        reason: str,
        note: str,
        action: str,
        related: Object | ObjectReference | None,
    ) -> None:
        """Record one occurrence of an event, from any thread; the recorders call it."""
        with _logged(reason):
            now = MicroTime.from_datetime(self._now())
            subject, revision, related_revision = _subject(
                component, instance, type_, regarding, reason, note, action, related
            )
            note = _cut(note, _MAX_NOTE)
            with self._queue.lock:
                event = self._correlator.correlate(
                    subject, note, now, revision, related_revision, self._queue.__contains__
                )
                if event is not None and not self._queue.put(event) and not event.written:
                    self._correlator.forget(event)

    async def write_once(
        self,
        component: str,
        instance: str,
        type_: EventType,
        regarding: Object | ObjectReference,
        reason: str,
        note: str,
    ) -> None:
        """See `Recorder.once`."""
        with _logged(reason):
            now = MicroTime.from_datetime(self._now())
            subject, revision, _ = _subject(component, instance, type_, regarding, reason, note, "", None)
            about = subject.regarding
            name, namespace = only_name(subject), about.namespace or "default"
            event = RecordedEvent(subject, False, _cut(note, _MAX_NOTE), name, namespace, revision, "", now, now)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._write(event)
            except (KubernetesError, TimeoutError):
                self._queue.put(event)

    async def _write(self, event: RecordedEvent) -> None:
        count = event.count
        if count == event.written:
            return
        is_stored = event.written > 0
        if is_stored:
            try:
                await self._form.raise_count(self._client, event, count)
            except NotFound:  # the server deletes events after an hour, and so may any user
                is_stored = False
        if not is_stored:
            try:
                await self._form.create(self._client, event, count)
            except AlreadyExists:
                # By an earlier attempt, whose response was lost.
                if count > 1:
                    await self._form.raise_count(self._client, event, count)
        event.written = count

    def _check_instance(self, instance: str) -> None:
        if self._form.needs_instance and not 0 < len(instance.encode()) <= _MAX_WORD:
            raise ValueError(f'"{instance}" cannot be the instance of events: expected 1 to {_MAX_WORD} bytes')


class EventRecorder:
    """The `Recorder` of one component. It also takes references, whose `field_path` may name a part of the object."""

    __slots__ = ("_broadcaster", "_component", "_instance")

    def __init__(self, broadcaster: EventBroadcaster, component: str, instance: str) -> None:
        self._broadcaster = broadcaster
        self._component = component
        self._instance = instance

    def normal(
        self,
        regarding: Object | ObjectReference,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """See `Recorder.normal`."""
        self._broadcaster.record(self._component, self._instance, "Normal", regarding, reason, note, action, related)

    def warning(
        self,
        regarding: Object | ObjectReference,
        reason: str,
        note: str,
        *,
        action: str = "",
        related: Object | ObjectReference | None = None,
    ) -> None:
        """See `Recorder.warning`."""
        self._broadcaster.record(self._component, self._instance, "Warning", regarding, reason, note, action, related)

    async def once(self, type_: EventType, regarding: Object | ObjectReference, reason: str, note: str) -> None:
        """See `Recorder.once`."""
        await self._broadcaster.write_once(self._component, self._instance, type_, regarding, reason, note)


class _MistakenEvent(TypeError):
    """A recorder was called with something that cannot be an event. Its message is complete."""


@contextmanager
def _logged(reason: str) -> Iterator[None]:
    """Whatever is wrong with an event, the reconcile that records it must not fail."""
    try:
        yield
    except _MistakenEvent as error:
        _log.error("an event was not recorded: reason %r: %s", reason, error)
    except Exception:
        _log.exception("an event was not recorded: reason %r", reason)


def _subject(
    component: str,
    instance: str,
    type_: EventType,
    regarding: Object | ObjectReference,
    reason: str,
    note: str,
    action: str,
    related: Object | ObjectReference | None,
) -> tuple[Subject, str, str]:
    """What the event is about, and the revisions of the objects that are involved."""
    _check_text(regarding, reason, note)
    reason = _cut(reason, _MAX_WORD)
    about, revision, field_path = _identified(regarding)
    related_to, related_revision, _ = _identified(related) if related is not None else (None, "", "")
    action = _cut(action, _MAX_WORD) or reason
    subject = Subject(component, instance, about, field_path, related_to, type_, reason, action)
    return subject, revision, related_revision


def _check_text(regarding: object, reason: object, note: object) -> None:
    if isinstance(reason, str) and isinstance(note, str):
        return
    name, text = ("note", note) if isinstance(reason, str) else ("reason", reason)
    about = f" of {regarding.kind} {regarding.key}" if isinstance(regarding, Object) else ""
    raise _MistakenEvent(f"the {name}{about} is a text, not {text!r}: write normal(obj, reason, note)")


def _identified(obj: Object | ObjectReference) -> tuple[Identity, str, str]:
    """The object, its revision, and the part of it."""
    if isinstance(obj, ObjectReference):
        identity = Identity(obj.api_version or "", obj.kind or "", obj.namespace or "", obj.name or "", obj.uid or "")
        return identity, obj.resource_version or "", obj.field_path or ""
    if not isinstance(obj, Object):
        raise _MistakenEvent(
            f"expected the object that it is about, not a {type(obj).__name__}: write normal(obj, reason, note)"
        )
    # The class knows the kind better than the object: one seen without its body calls itself PartialObjectMetadata.
    gvk, metadata = resource_info(type(obj)).gvk, obj.metadata
    identity = Identity(gvk.api_version, gvk.kind, metadata.namespace, metadata.name, metadata.uid)
    return identity, metadata.resource_version, ""


def _cut(text: str, size: int) -> str:
    """At most that many bytes of valid UTF-8, with an ellipsis where something was cut off."""
    if len(text) <= size and text.isascii():
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= size:
        return encoded.decode()
    return encoded[: size - 3].decode(errors="ignore") + "..."
