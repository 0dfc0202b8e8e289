"""The row of a pod: one word for what its containers, conditions and phase say together."""

from __future__ import annotations

from dataclasses import dataclass

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.tables.durations import human_duration, instant
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    age_of,
    name_of,
    number,
    wide,
)

_NONE = "<none>"


@dataclass(slots=True)
class _Summary:
    """What has been found out so far."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: float | None = None

    def restarted(self, container: JSONValue) -> None:
        self.restarts += number(container, "restartCount")
        finished = instant(at(container, "lastState", "terminated", "finishedAt"))
        if finished is not None and (self.last_restart is None or finished > self.last_restart):
            self.last_restart = finished


def pod_cells(pod: JSONObject, now: float) -> Cells:
    """Name, ready containers, status, restarts, age; and for `-o wide` where it is."""
    summary = _Summary(_reason(pod))
    sidecars = _Summary("")
    initializing = _initialize(pod, summary, sidecars)
    if not initializing or _condition(pod, "Initialized") == "True":
        summary.restarts, summary.last_restart = sidecars.restarts, sidecars.last_restart
        _run(pod, summary)
    if text(pod, "metadata", "deletionTimestamp"):
        if text(pod, "status", "reason") == "NodeLost":
            summary.reason = "Unknown"
        elif text(pod, "status", "phase") not in ("Failed", "Succeeded"):
            summary.reason = "Terminating"
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts += f" ({human_duration(now - summary.last_restart)} ago)"
    total = len(items(pod, "spec", "containers")) + len(_sidecar_names(pod))
    addresses = items(pod, "status", "podIPs")
    return [
        name_of(pod),
        f"{summary.ready}/{total}",
        summary.reason,
        restarts,
        age_of(pod, now),
        (text(addresses[0], "ip") if addresses else "") or _NONE,
        text(pod, "spec", "nodeName") or _NONE,
        text(pod, "status", "nominatedNodeName") or _NONE,
        _readiness_gates(pod),
    ]


def _reason(pod: JSONObject) -> str:
    for condition in items(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "reason") == "SchedulingGated":
            return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _condition(pod: JSONObject, name: str) -> str:
    found = (entry for entry in items(pod, "status", "conditions") if text(entry, "type") == name)
    return text(next(found, None), "status")


def _sidecar_names(pod: JSONObject) -> list[str]:
    """Init containers that keep running: they count as containers."""
    found = items(pod, "spec", "initContainers")
    return [text(container, "name") for container in found if text(container, "restartPolicy") == "Always"]


def _initialize(pod: JSONObject, summary: _Summary, sidecars: _Summary) -> bool:
    """Go through the init containers up to the first that is not done; True when there is one."""
    names = _sidecar_names(pod)
    for index, container in enumerate(items(pod, "status", "initContainerStatuses")):
        is_sidecar = text(container, "name") in names
        summary.restarted(container)
        if is_sidecar:
            sidecars.restarted(container)
        terminated = at(container, "state", "terminated")
        waiting = text(container, "state", "waiting", "reason")
        if terminated is not None and number(terminated, "exitCode") == 0:
            continue
        if is_sidecar and at(container, "started") is True:
            summary.ready += at(container, "ready") is True
            continue
        if terminated is not None:
            summary.reason = f"Init:{_exit(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.reason = f"Init:{waiting}"
        else:
            summary.reason = f"Init:{index}/{len(items(pod, 'spec', 'initContainers'))}"
        return True
    return False


def _run(pod: JSONObject, summary: _Summary) -> None:
    """Go through the containers, last first, so that the first has the last word."""
    has_running, failure = False, ""
    for container in reversed(items(pod, "status", "containerStatuses")):
        summary.restarted(container)
        waiting = text(container, "state", "waiting", "reason")
        terminated = at(container, "state", "terminated")
        if waiting:
            summary.reason = waiting
        elif terminated is not None:
            summary.reason = _exit(terminated)
            if number(terminated, "exitCode"):
                failure = summary.reason
        elif at(container, "ready") is True and at(container, "state", "running") is not None:
            has_running = True
            summary.ready += 1
    if summary.reason != "Completed":
        return
    if has_running and _condition(pod, "Ready") == "True":
        summary.reason = "Running"
    elif failure:
        summary.reason = failure
    elif has_running:
        summary.reason = "NotReady"


def _exit(terminated: JSONValue) -> str:
    reason, signal = text(terminated, "reason"), number(terminated, "signal")
    return reason or (f"Signal:{signal}" if signal else f"ExitCode:{number(terminated, 'exitCode')}")


def _readiness_gates(pod: JSONObject) -> str:
    gates = [text(gate, "conditionType") for gate in items(pod, "spec", "readinessGates")]
    met = sum(_condition(pod, gate) == "True" for gate in gates)
    return f"{met}/{len(gates)}" if gates else _NONE


def _completed(pod: JSONObject) -> list[JSONValue]:
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = text(mapping(pod, "status"), "phase")
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


POD = Printer(
    (
        NAME,
        PrinterColumn("Ready"),
        PrinterColumn("Status"),
        PrinterColumn("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ),
    pod_cells,
    _completed,
)
