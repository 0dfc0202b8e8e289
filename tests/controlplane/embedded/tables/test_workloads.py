from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.workloads import PRINTERS


def cells(group: str, plural: str, obj: JSONObject) -> list[JSONValue]:
    return PRINTERS[group, plural].cells({"metadata": {"name": "n"}, **obj}, 1000.0)


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], "Running"),
        ([{"type": "Complete", "status": "True"}], "Complete"),
        ([{"type": "Suspended", "status": "True"}, {"type": "Failed", "status": "True"}], "Failed"),
        ([{"type": "Suspended", "status": "True"}], "Suspended"),
        ([{"type": "Suspended", "status": "False"}], "Running"),
        ([{"type": "FailureTarget", "status": "True"}], "FailureTarget"),
    ],
)
def test_the_status_of_a_job_is_its_foremost_condition(conditions: list[JSONValue], expected: str) -> None:
    assert cells("batch", "jobs", {"status": {"conditions": conditions}})[1] == expected


def test_a_job_takes_as_long_as_it_took() -> None:
    started: JSONObject = {"startTime": "1970-01-01T00:00:00Z"}
    assert cells("batch", "jobs", {"status": started})[3] == "16m"
    ended: JSONObject = {**started, "completionTime": "1970-01-01T00:00:42Z"}
    assert cells("batch", "jobs", {"status": ended})[3] == "42s"


def test_completions_of_a_job_with_and_without_a_number() -> None:
    assert cells("batch", "jobs", {"spec": {"completions": 5}, "status": {"succeeded": 2}})[2] == "2/5"
    assert cells("batch", "jobs", {"spec": {"parallelism": 3}})[2] == "0/1 of 3"
    assert cells("batch", "jobs", {"spec": {"parallelism": 1}})[2] == "0/1"


def test_the_selector_of_a_deployment_is_sorted_by_key() -> None:
    selector: JSONObject = {
        "matchLabels": {"z": "1", "b": "2"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
        ],
    }
    assert cells("apps", "deployments", {"spec": {"selector": selector}})[-1] == "a in (x,y),b=2,!c,z=1"


def metric(current: JSONValue, **fields: JSONValue) -> JSONValue:
    statuses: list[JSONValue] = [] if current is None else [current]
    obj: JSONObject = {"spec": {"metrics": [fields]}, "status": {"currentMetrics": statuses}}
    return cells("autoscaling", "horizontalpodautoscalers", obj)[2]


def test_metrics_are_shown_as_current_and_desired() -> None:
    cpu: JSONObject = {"name": "cpu", "target": {"averageUtilization": 50}}
    assert metric(None, type="Resource", resource=cpu) == "cpu: <unknown>/50%"
    current: JSONObject = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}
    assert metric(current, type="Resource", resource=cpu) == "cpu: 7%/50%"
    assert metric(None, type="Pods", pods={"target": {"averageValue": "5"}}) == "<unknown>/5"
    assert metric(None, type="External", external={"target": {"averageValue": "5"}}) == "<unknown>/5 (avg)"
    assert metric(None, type="Object", object={"target": {"value": "5"}}) == "<unknown>/5"
    assert metric(None, type="Later") == "<unknown type>"


def test_only_two_metrics_are_shown() -> None:
    one: JSONValue = {"type": "Pods", "pods": {"target": {"averageValue": "5"}}}
    obj: JSONObject = {"spec": {"metrics": [one, one, one]}}
    found = cells("autoscaling", "horizontalpodautoscalers", obj)[2]
    assert found == "<unknown>/5, <unknown>/5 + 1 more..."


def test_the_first_version_of_autoscalers_knows_one_metric() -> None:
    obj: JSONObject = {
        "spec": {"targetCPUUtilizationPercentage": 80},
        "status": {"currentCPUUtilizationPercentage": 3},
    }
    assert cells("autoscaling", "horizontalpodautoscalers", obj)[2] == "cpu: 3%/80%"
