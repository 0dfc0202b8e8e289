"""What the controllers of kube-controller-manager that report events have in common."""

from __future__ import annotations

from typing import ClassVar

from kubewright.api.errors import KubernetesError
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import APIError, Forbidden
from kubewright.controller import Request
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.namespaces import is_about_terminating
from kubewright.controlplane.controllers.runtime import Alarms, Runtime
from kubewright.manager.core_event_form import CoreV1
from kubewright.manager.recorder import EventBroadcaster


class ReportingController:
    """A client on a cache, a clock with alarms, and a recorder whose events come from `component`."""

    component: ClassVar[str]

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._alarms = Alarms[Request](self._clock)
        self._events = EventBroadcaster(
            client, instance="", now=self._clock.now, form=CoreV1(field_manager="kube-controller-manager")
        )
        self._recorder = self._events.recorder(self.component)


def message_of(error: KubernetesError) -> str:
    """The server's message, if the error is a response of the server."""
    return error.status.message if isinstance(error, APIError) else str(error)


def is_refused_by_deletion(error: BaseException) -> bool:
    """True when something could not be created because its namespace is being deleted, and is no news."""
    return isinstance(error, Forbidden) and is_about_terminating(error)
