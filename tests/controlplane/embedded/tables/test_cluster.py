from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.cluster import PRINTERS


def cells(group: str, plural: str, obj: JSONObject) -> list[JSONValue]:
    return PRINTERS[group, plural].cells({"metadata": {"name": "n"}, **obj}, 1000.0)


def test_a_node_is_ready_not_ready_or_unknown() -> None:
    def status(*conditions: JSONValue, unschedulable: bool = False) -> JSONValue:
        obj: JSONObject = {"spec": {"unschedulable": unschedulable}, "status": {"conditions": list(conditions)}}
        return cells("", "nodes", obj)[1]

    assert status() == "Unknown"
    assert status({"type": "Ready", "status": "True"}) == "Ready"
    assert status({"type": "Ready", "status": "Unknown"}) == "NotReady"
    assert status({"type": "Ready", "status": "True"}, unschedulable=True) == "Ready,SchedulingDisabled"


def test_roles_of_a_node_are_its_labels() -> None:
    labels: JSONObject = {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "boss", "other": "x"}
    assert cells("", "nodes", {"metadata": {"name": "n", "labels": labels}})[2] == "boss,worker"


OLD: JSONObject = {
    "involvedObject": {"kind": "Pod", "name": "p"},
    "type": "Normal",
    "reason": "Because",
    "message": " so \n",
    "firstTimestamp": "1970-01-01T00:00:00Z",
    "lastTimestamp": "1970-01-01T00:15:00Z",
    "count": 3,
    "source": {"component": "kubelet", "host": "somewhere"},
}


def test_events_look_the_same_in_both_groups() -> None:
    new: JSONObject = {
        "regarding": OLD["involvedObject"],
        "type": "Normal",
        "reason": "Because",
        "note": " so \n",
        "deprecatedFirstTimestamp": OLD["firstTimestamp"],
        "deprecatedLastTimestamp": OLD["lastTimestamp"],
        "deprecatedCount": 3,
        "deprecatedSource": OLD["source"],
    }
    expected = ["100s", "Normal", "Because", "pod/p", "", "kubelet, somewhere", "so", "16m", 3, "n"]
    assert cells("", "events", OLD) == expected
    assert cells("events.k8s.io", "events", new) == expected


def test_a_series_reports_when_an_event_was_last_seen() -> None:
    series: JSONObject = {"count": 9, "lastObservedTime": "1970-01-01T00:16:00.000000Z"}
    found = cells("", "events", {**OLD, "series": series})
    assert (found[0], found[8]) == ("40s", 9)


def test_an_event_that_happened_once_has_one_time() -> None:
    found = cells("", "events", {"eventTime": "1970-01-01T00:16:00.000000Z", "reportingComponent": "c"})
    assert (found[0], found[7], found[8], found[5]) == ("40s", "40s", 1, "c")


def test_a_service_that_is_not_available_says_why() -> None:
    condition: JSONObject = {"type": "Available", "status": "False", "reason": "Missing"}
    obj: JSONObject = {
        "spec": {"service": {"namespace": "ns", "name": "s"}},
        "status": {"conditions": [condition]},
    }
    assert cells("apiregistration.k8s.io", "apiservices", obj)[1:3] == ["ns/s", "False (Missing)"]
    assert cells("apiregistration.k8s.io", "apiservices", {})[1:3] == ["Local", "Unknown"]
