"""What pods and events say of a Deployment that is not ready, line by line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final

from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import ContainerStatus, Event, Pod
from kubewright.cli.printable import printable_line
from kubewright.client import Client

_MAX_EVENTS: Final = 5
_STARTING: Final = ("ContainerCreating", "PodInitializing")


async def pods_of(client: Client, deployment: Deployment) -> AsyncIterator[str]:
    """Why its pods are not ready: not scheduled, waiting for an image, ended with an error and a last line."""
    selector = deployment.spec.selector
    for pod in await client.list(Pod, namespace=deployment.metadata.namespace, labels=selector):
        if pod.metadata.deletion_timestamp is None:
            for line in _problems(pod):
                yield printable_line(f"pod {pod.metadata.name}: {line}")


def _problems(pod: Pod) -> Iterator[str]:
    status = pod.status
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            yield f"not scheduled: {condition.message or condition.reason}"
    for container in (*status.init_container_statuses, *status.container_statuses):
        yield from _container_problems(container)


def _container_problems(container: ContainerStatus) -> Iterator[str]:
    waiting = container.state.waiting
    ended = container.state.terminated or container.last_state.terminated
    if waiting is not None and waiting.reason not in _STARTING:
        yield f"{waiting.reason}{f': {waiting.message}' if waiting.message else ''}"
    if ended is not None and ended.exit_code:
        last = (ended.message or "").strip().rpartition("\n")[2]
        yield f"{container.name} ended with exit code {ended.exit_code}{f': {last}' if last else ''}"
    elif waiting is None and not container.ready:
        yield f"{container.name} runs, and is not ready"


async def events_of(client: Client, deployment: Deployment) -> AsyncIterator[str]:
    """The last warnings about it, its ReplicaSets and its pods."""
    name = deployment.metadata.name or ""
    namespace = deployment.metadata.namespace
    warnings = await client.list(Event, namespace=namespace, fields={"type": "Warning"})
    about = [each for each in warnings if f"{each.involved_object.name}-".startswith(f"{name}-")]
    about.sort(key=lambda each: str(each.last_timestamp or each.event_time or each.metadata.creation_timestamp))
    lines = (
        printable_line(f"event: {each.involved_object.kind} {each.involved_object.name}: {each.message}")
        for each in about
    )
    for line in [*dict.fromkeys(lines)][-_MAX_EVENTS:]:
        yield line
