"""The lifecycle of a simulated pod: its next status, and how long until the one after.

Nothing here talks to a server or waits. All containers of a pod do the same at the same time, and its init containers
have done their work the moment the pod runs.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Literal, TypeAlias

import msgspec

from kubewright.api.core.v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    HostIP,
    Pod,
    PodCondition,
    PodIP,
    PodStatus,
)
from kubewright.controlplane.controllers.image_pulls import back_off, next_pull_change, pull_state, pulled_after
from kubewright.controlplane.controllers.pod_behaviour import Behaviour
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.patterns.conditions import get_condition

Stage: TypeAlias = Literal["new", "creating", "running", "backing off", "ended"]

KILLED, TERMINATED = 137, 143
"""The exit codes of containers that were killed, and of those that ended when they were asked to."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a pod: that of its node, and its own once it runs."""

    host: str
    pod: str


def stage_of(pod: Pod) -> Stage:
    """The stage of the pod, by its status."""
    if pod.status.phase in ENDED:
        return "ended"
    if pod.status.start_time is None or not pod.status.container_statuses:
        return "new"
    state = pod.status.container_statuses[0].state
    if state.running is not None:
        return "running"
    return "backing off" if pod.status.container_statuses[0].last_state.terminated is not None else "creating"


def entered_at(pod: Pod) -> datetime | None:
    """When the pod's present stage began, to the second, by its status."""
    if not pod.status.container_statuses:
        return None
    status = pod.status.container_statuses[0]
    if status.state.running is not None:
        return status.state.running.started_at
    if status.last_state.terminated is not None:
        return status.last_state.terminated.finished_at
    return pod.status.start_time


def due(pod: Pod, behaviour: Behaviour, entered: datetime) -> datetime | None:
    """When the pod's present stage is over; None when it lasts."""
    match stage_of(pod):
        case "new":
            return entered
        case "creating":
            pulled = pulled_after(behaviour)
            return None if behaviour.waiting or pulled is None else entered + timedelta(seconds=pulled)
        case "running":
            run = behaviour.run_of(pod.status.container_statuses[0].restart_count)
            return None if run is None else entered + timedelta(seconds=run)
        case "backing off":
            return entered + timedelta(seconds=_back_off(pod.status.container_statuses[0].restart_count))
        case "ended":
            return None


def step(
    pod: Pod, behaviour: Behaviour, addresses: Addresses, entered: datetime, now: datetime
) -> tuple[PodStatus, bool] | None:
    """The status that the pod should have by now, and whether a new stage begins with it; None when it has it.

    `entered` is when its present stage began. Each stage is a status of its own, so that watchers see it; only
    what takes no time at all is left out.
    """
    over, stage, whole = due(pod, behaviour, entered), stage_of(pod), now.replace(microsecond=0)
    if over is None or over > now:
        if stage == "creating":
            status = _created(pod, behaviour, addresses, entered, now)
        elif stage == "running":
            is_ready = behaviour.ready < inf and entered + timedelta(seconds=behaviour.ready) <= now
            status = _with_readiness(pod, whole, ready=is_ready)
        else:
            return None
        return None if status == pod.status else (status, False)
    if stage == "new":
        status = _created(pod, behaviour, addresses, now, now)
        if behaviour.start or behaviour.waiting or behaviour.failed_pulls:
            return status, True
        pod = _with_status(pod, status)
    elif stage == "running":
        status = ended(pod, behaviour.exit_code, now, reason=behaviour.reason)
        if status.phase in ENDED or any(one.restart_count for one in pod.status.container_statuses):
            return status, True
        # The first restart is not made to wait.
        pod = _with_status(pod, status)
    return _running(pod, addresses, whole, ready=not behaviour.ready), True


def seconds_to_next(pod: Pod, behaviour: Behaviour, entered: datetime, now: datetime) -> float | None:
    """When to reconcile the pod again; None when no time-driven change is due."""
    times, stage = [due(pod, behaviour, entered)], stage_of(pod)
    if stage == "running" and behaviour.ready < inf and not pod.status.container_statuses[0].ready:
        times.append(entered + timedelta(seconds=behaviour.ready))
    elif stage == "creating" and not behaviour.waiting and behaviour.failed_pulls and behaviour.start < inf:
        times.append(entered + timedelta(seconds=next_pull_change(behaviour, (now - entered).total_seconds())))
    return min((max(0.0, (time - now).total_seconds()) for time in times if time is not None), default=None)


def _with_status(pod: Pod, status: PodStatus) -> Pod:
    changed = copy.copy(pod)
    changed.status = status
    return changed


def _created(pod: Pod, behaviour: Behaviour, addresses: Addresses, entered: datetime, exact_now: datetime) -> PodStatus:
    """The status of a pod that its node has accepted, and whose containers do not run yet."""
    now, elapsed = exact_now.replace(microsecond=0), (exact_now - entered).total_seconds()

    def state(container: Container) -> ContainerState:
        reason, message = behaviour.waiting, behaviour.message
        if not reason:
            reason, message = pull_state(behaviour, container.image or "", elapsed)
        return ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message or None))

    status = msgspec.structs.replace(
        pod.status,
        phase="Pending",
        start_time=pod.status.start_time or now,
        host_ip=addresses.host,
        host_ips=[HostIP(ip=addresses.host)],
        container_statuses=[_container(one, state(one)) for one in pod.spec.containers],
        init_container_statuses=[
            _container(one, ContainerState(waiting=ContainerStateWaiting(reason="PodInitializing")))
            for one in pod.spec.init_containers
        ],
    )
    return _with_conditions(pod, status, now, started=False, ready=False)


def _running(pod: Pod, addresses: Addresses, now: datetime, *, ready: bool) -> PodStatus:
    """The status of a pod whose containers have just been started, for the first time or again."""
    before = {one.name: one for one in pod.status.container_statuses}
    containers = []
    for one in pod.spec.containers:
        started = _container(one, ContainerState(running=ContainerStateRunning(started_at=now)), ready=ready)
        if (was := before.get(one.name)) is not None:
            again = was.last_state.terminated is not None
            started.restart_count, started.last_state = was.restart_count + again, was.last_state
        containers.append(started)
    status = msgspec.structs.replace(
        pod.status,
        phase="Running",
        pod_ip=addresses.pod,
        pod_ips=[PodIP(ip=addresses.pod)],
        container_statuses=containers,
        init_container_statuses=[_initialized(one, now) for one in pod.spec.init_containers],
    )
    return _with_conditions(pod, status, now, started=True, ready=ready)


def _with_readiness(pod: Pod, now: datetime, *, ready: bool) -> PodStatus:
    """The status of a running pod whose containers are ready, or not yet."""
    containers = [msgspec.structs.replace(one, ready=ready) for one in pod.status.container_statuses]
    status = msgspec.structs.replace(pod.status, container_statuses=containers)
    return _with_conditions(pod, status, now, started=True, ready=ready)


def evicted(pod: Pod, message: str, now: datetime) -> PodStatus:
    """The status of a pod that a kubelet has ended because its node is short of something."""
    status = ended(pod, KILLED, now, for_good=True)
    status.phase, status.reason, status.message = "Failed", "Evicted", message
    target = _condition(pod, "DisruptionTarget", True, now.replace(microsecond=0), "TerminationByKubelet", message)
    status.conditions = [*(one for one in status.conditions if one.type != target.type), target]
    return status


def ended(pod: Pod, exit_code: int, now: datetime, *, for_good: bool = False, reason: str = "") -> PodStatus:
    """The status of a pod whose containers have just ended: restarted, backing off or, for good, with its result."""
    policy, now = pod.spec.restart_policy or "Always", now.replace(microsecond=0)
    for_good = for_good or policy == "Never" or (policy == "OnFailure" and exit_code == 0)
    containers = []
    for one in pod.status.container_statuses:
        result = ContainerState(terminated=_terminated(one, exit_code, reason, now))
        state = result if for_good else ContainerState(waiting=_crash_loop(pod, one))
        last = one.last_state if for_good else result
        containers.append(msgspec.structs.replace(one, ready=False, started=False, state=state, last_state=last))
    status = msgspec.structs.replace(pod.status, container_statuses=containers)
    if for_good:
        status.phase = "Failed" if exit_code else "Succeeded"
    why = ("PodFailed" if exit_code else "PodCompleted") if for_good else ""
    return _with_conditions(pod, status, now, started=True, ready=False, reason=why)


def _container(container: Container, state: ContainerState, *, ready: bool = False) -> ContainerStatus:
    is_running = state.running is not None
    return ContainerStatus(
        name=container.name,
        image=container.image or "",
        image_id=f"simulated://{container.image}" if is_running else "",
        container_id=f"simulated://{container.name}" if is_running else None,
        ready=ready,
        started=is_running,
        restart_count=0,
        state=state,
    )


def _initialized(container: Container, now: datetime) -> ContainerStatus:
    if container.restart_policy == "Always":
        return _container(container, ContainerState(running=ContainerStateRunning(started_at=now)), ready=True)
    result = ContainerStateTerminated(exit_code=0, reason="Completed", started_at=now, finished_at=now)
    return _container(container, ContainerState(terminated=result), ready=True)


def _terminated(status: ContainerStatus, exit_code: int, reason: str, now: datetime) -> ContainerStateTerminated:
    started = status.state.running.started_at if status.state.running is not None else None
    return ContainerStateTerminated(
        exit_code=exit_code,
        reason=reason or ("Error" if exit_code else "Completed"),
        started_at=started,
        finished_at=now,
        container_id=status.container_id,
    )


def _back_off(restarts: int) -> int:
    return back_off(restarts - 1) if restarts else 0


def _crash_loop(pod: Pod, status: ContainerStatus) -> ContainerStateWaiting:
    pause = _back_off(status.restart_count)
    shown = f"{pause // 60}m{pause % 60}s" if pause >= 60 else f"{pause}s"
    who = f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"
    return ContainerStateWaiting(
        reason="CrashLoopBackOff", message=f"back-off {shown} restarting failed container={status.name} pod={who}"
    )


def _with_conditions(
    pod: Pod, status: PodStatus, now: datetime, *, started: bool, ready: bool, reason: str = ""
) -> PodStatus:
    names = [one.name for one in pod.spec.containers]
    reason = "" if ready else reason or "ContainersNotReady"
    message = f"containers with unready status: [{' '.join(names)}]" if reason == "ContainersNotReady" else ""
    closed = [
        gate.condition_type
        for gate in pod.spec.readiness_gates
        if (found := get_condition(pod, gate.condition_type)) is None or found.status != "True"
    ]
    conditions = [
        _condition(pod, "PodReadyToStartContainers", started and status.phase not in ENDED, now),
        _condition(pod, "Initialized", started or not pod.spec.init_containers, now),
        _condition(pod, "Ready", ready and not closed, now, *_not_ready(ready, closed, reason, message)),
        _condition(pod, "ContainersReady", ready, now, reason, message),
        _condition(pod, "PodScheduled", True, now),
    ]
    ours = {one.type for one in conditions}
    status.conditions = [*(one for one in pod.status.conditions if one.type not in ours), *conditions]
    status.observed_generation = pod.metadata.generation or None
    return status


def _not_ready(ready: bool, closed: list[str], reason: str, message: str) -> tuple[str, str]:
    if not ready or not closed:
        return reason, message
    words = ", ".join(f'corresponding condition of pod readiness gate "{gate}" does not exist.' for gate in closed)
    return "ReadinessGatesNotReady", words


def _condition(pod: Pod, type_: str, holds: bool, now: datetime, reason: str = "", message: str = "") -> PodCondition:
    present, status = get_condition(pod, type_), "True" if holds else "False"
    since = present.last_transition_time if present is not None and present.status == status else now
    return PodCondition(
        type=type_,
        status=status,
        reason=reason or None,
        message=message or None,
        last_transition_time=since,
        observed_generation=pod.metadata.generation or None,
    )
