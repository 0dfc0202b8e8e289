"""The events that a kubelet emits for a pod: images pulled, containers created, started, stopped, backing off.

Pure functions, from a pod before and after a step to its events. A simulated node keeps images
for restarts only: the first start of every container pulls, unless its policy is Never.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from kubewright.api.core.v1 import Container, Pod
from kubewright.controlplane.controllers.image_pulls import pull_error
from kubewright.controlplane.controllers.pod_behaviour import Behaviour
from kubewright.controlplane.controllers.pod_life import stage_of


class PodEvent(NamedTuple):
    """One event about a container."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    field_path: str


def events_of_step(before: Pod, after: Pod, behaviour: Behaviour) -> Iterator[PodEvent]:
    """The events of a transition from one status to the next."""
    was, stage = stage_of(before), stage_of(after)
    restarts = _restarts(after)
    old, new = _waiting_for(before), _waiting_for(after)
    if stage == "creating":
        if was == "new":
            for container, path in _containers(after, behaviour):
                yield from _announced(container, path, behaviour)
        if new != old and new in ("ErrImagePull", "ImagePullBackOff") and not behaviour.waiting:
            for container, path in _main_containers(after):
                yield from _not_pulled(container, path, new, is_announced=was == "new" or old == "ContainerCreating")
    elif stage == "running" and (was != "running" or restarts > _restarts(before)):
        for container, path in _containers(after, behaviour):
            is_announced = old == "ContainerCreating" and behaviour.start > 0
            yield from _started(container, path, behaviour, announced=is_announced, restarts=restarts)
    elif stage == "backing off" and was == "running":
        pod = f"{after.metadata.name}_{after.metadata.namespace}({after.metadata.uid})"
        for container, path in _main_containers(after):
            message = f"Back-off restarting failed container {container.name} in pod {pod}"
            yield PodEvent("Warning", "BackOff", message, path)


def events_of_eviction(pod: Pod, message: str) -> Iterator[PodEvent]:
    """The events of a pod that a kubelet evicts."""
    yield PodEvent("Warning", "Evicted", message, "")
    yield from events_of_deletion(pod)


def events_of_deletion(pod: Pod) -> Iterator[PodEvent]:
    """The events of a pod whose containers are being stopped."""
    if stage_of(pod) == "running":
        for container, path in _main_containers(pod):
            yield PodEvent("Normal", "Killing", f"Stopping container {container.name}", path)


def _announced(container: Container, path: str, behaviour: Behaviour) -> Iterator[PodEvent]:
    if behaviour.waiting:
        if behaviour.waiting != "ContainerCreating":
            yield PodEvent("Warning", "Failed", f"Error: {behaviour.message or behaviour.waiting}", path)
    elif container.image_pull_policy != "Never":
        yield PodEvent("Normal", "Pulling", f'Pulling image "{container.image}"', path)


def _not_pulled(container: Container, path: str, reason: str, *, is_announced: bool) -> Iterator[PodEvent]:
    image = container.image or ""
    if reason == "ImagePullBackOff":
        yield PodEvent("Normal", "BackOff", f'Back-off pulling image "{image}"', path)
    else:
        if not is_announced:
            yield PodEvent("Normal", "Pulling", f'Pulling image "{image}"', path)
        yield PodEvent("Warning", "Failed", f'Failed to pull image "{image}": {pull_error(image)}', path)
    yield PodEvent("Warning", "Failed", f"Error: {reason}", path)


def _started(
    container: Container, path: str, behaviour: Behaviour, *, announced: bool, restarts: int
) -> Iterator[PodEvent]:
    policy, image = container.image_pull_policy, container.image
    if policy == "Always" or (policy != "Never" and not restarts):
        if not announced:
            yield PodEvent("Normal", "Pulling", f'Pulling image "{image}"', path)
        time = _duration(0 if restarts else behaviour.start)
        message = f'Successfully pulled image "{image}" in {time} ({time} including waiting). Image size: 0 bytes.'
    else:
        message = f'Container image "{image}" already present on machine and can be accessed by the pod'
    yield PodEvent("Normal", "Pulled", message, path)
    yield PodEvent("Normal", "Created", "Container created", path)
    yield PodEvent("Normal", "Started", "Container started", path)


def _containers(pod: Pod, behaviour: Behaviour) -> Iterator[tuple[Container, str]]:
    """Those that start, in their order: init containers only once, and none when the pod does not start."""
    if not _restarts(pod) and not behaviour.waiting and not behaviour.failed_pulls:
        for container in pod.spec.init_containers:
            yield container, f"spec.initContainers{{{container.name}}}"
    yield from _main_containers(pod)


def _main_containers(pod: Pod) -> Iterator[tuple[Container, str]]:
    for container in pod.spec.containers:
        yield container, f"spec.containers{{{container.name}}}"


def _waiting_for(pod: Pod) -> str:
    waiting = pod.status.container_statuses[0].state.waiting if pod.status.container_statuses else None
    return (waiting.reason or "") if waiting is not None else ""


def _restarts(pod: Pod) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def _duration(seconds: float) -> str:
    """As Go writes it: 0s, 500ms, 1.5s, 1m30s."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"
