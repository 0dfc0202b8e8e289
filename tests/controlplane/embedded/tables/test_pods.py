from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.pods import POD


def container(name: str, **fields: JSONValue) -> JSONObject:
    return {"name": name, "restartCount": 0, "ready": False, **fields}


def pod(*statuses: JSONValue, spec: JSONObject | None = None, **status: JSONValue) -> JSONObject:
    containers: list[JSONValue] = [{"name": "a"}, {"name": "b"}]
    return {
        "metadata": {"name": "p", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"containers": containers, **(spec or {})},
        "status": {"phase": "Running", "containerStatuses": list(statuses), **status},
    }


def row(obj: JSONObject) -> list[JSONValue]:
    """Ready, status and restarts."""
    return POD.cells(obj, 1000.0)[1:4]


def test_a_new_pod_is_pending() -> None:
    obj = pod(phase="Pending")
    assert POD.cells(obj, 30.0) == ["p", "0/2", "Pending", "0", "30s", "<none>", "<none>", "<none>", "<none>"]


def test_a_running_container_counts_when_it_is_ready() -> None:
    running = container("a", ready=True, state={"running": {}})
    assert row(pod(running, container("b", state={"running": {}}))) == ["1/2", "Running", "0"]


def test_the_first_waiting_container_gives_the_reason() -> None:
    waiting = [container(name, state={"waiting": {"reason": f"{name}-waits"}}) for name in ("a", "b")]
    assert row(pod(*waiting)) == ["0/2", "a-waits", "0"]


def test_the_latest_restart_is_reported() -> None:
    statuses = [
        container(
            name,
            restartCount=2,
            lastState={"terminated": {"exitCode": 1, "finishedAt": f"1970-01-01T00:0{minute}:00Z"}},
        )
        for name, minute in (("a", 5), ("b", 3))
    ]
    assert row(pod(*statuses)) == ["0/2", "Running", "4 (11m ago)"]


def test_how_a_container_ended_is_reported() -> None:
    assert row(pod(container("a", state={"terminated": {"exitCode": 3}})))[1] == "ExitCode:3"
    assert row(pod(container("a", state={"terminated": {"exitCode": 0, "signal": 9}})))[1] == "Signal:9"
    assert row(pod(container("a", state={"terminated": {"exitCode": 1, "reason": "Error"}})))[1] == "Error"


def test_a_completed_container_beside_a_running_one() -> None:
    completed = container("a", state={"terminated": {"exitCode": 0, "reason": "Completed"}})
    running = container("b", ready=True, state={"running": {}})
    assert row(pod(completed, running))[1] == "NotReady"
    assert row(pod(completed, running, conditions=[{"type": "Ready", "status": "True"}]))[1] == "Running"
    failed = container("b", state={"terminated": {"exitCode": 1, "reason": "Error"}})
    assert row(pod(completed, failed))[1] == "Error"


def test_the_first_unfinished_init_container_gives_the_reason() -> None:
    spec: JSONObject = {"initContainers": [{"name": "i"}, {"name": "j"}]}
    done = container("i", state={"terminated": {"exitCode": 0}})
    states: list[tuple[JSONObject, str]] = [
        ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
        ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
        ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
    ]
    for state, expected in states:
        assert row(pod(spec=spec, initContainerStatuses=[done, container("j", state=state)]))[1] == expected


def test_sidecars_count_as_containers() -> None:
    spec: JSONObject = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = container("s", ready=True, started=True, restartCount=3, state={"running": {}})
    assert row(pod(spec=spec, initContainerStatuses=[sidecar])) == ["1/3", "Running", "3"]


def test_a_deleted_pod_is_terminating_until_it_has_ended() -> None:
    for phase, reason, expected in (
        ("Running", "", "Terminating"),
        ("Succeeded", "", "Succeeded"),
        ("Running", "NodeLost", "Unknown"),
    ):
        obj = pod(phase=phase, reason=reason)
        obj["metadata"] = {"name": "p", "deletionTimestamp": "1970-01-01T00:00:00Z"}
        assert row(obj)[1] == expected


def test_a_gated_pod_is_shown_as_such() -> None:
    gated: JSONValue = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    assert row(pod(phase="Pending", conditions=gated))[1] == "SchedulingGated"


def test_readiness_gates_are_counted() -> None:
    spec: JSONObject = {"readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]}
    assert POD.cells(pod(spec=spec, conditions=[{"type": "x", "status": "True"}]), 0.0)[-1] == "1/2"


def test_rows_of_pods_that_have_ended_are_marked() -> None:
    assert POD.conditions is not None
    assert POD.conditions(pod()) == []
    assert POD.conditions(pod(phase="Failed")) == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
