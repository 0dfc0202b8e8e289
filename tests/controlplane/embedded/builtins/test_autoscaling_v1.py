from __future__ import annotations

import json

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping
from kubewright.controlplane.embedded.builtins.autoscaling_v1 import from_storage, to_storage

TARGET: JSONObject = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
SECOND: JSONObject = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "a", "annotations": {"own": "x"}},
    "spec": {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            },
            {
                "type": "Pods",
                "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "5"}},
            },
            {
                "type": "Object",
                "object": {
                    "describedObject": {"kind": "Service", "name": "web"},
                    "metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}},
                    "target": {"type": "Value", "value": "100"},
                },
            },
            {"type": "External", "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "7"}}},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
    },
    "status": {"desiredReplicas": 2, "currentMetrics": None, "currentReplicas": 2},
}


def test_the_cpu_target_has_a_field_of_its_own_in_the_first_version() -> None:
    first = from_storage(SECOND)

    assert first["spec"] == {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 60,
    }


def test_other_metrics_are_kept_in_annotations() -> None:
    annotations = mapping(from_storage(SECOND), "metadata", "annotations")

    assert annotations["own"] == "x"
    metrics = json.loads(str(annotations["autoscaling.alpha.kubernetes.io/metrics"]))
    assert [metric["type"] for metric in metrics] == ["Pods", "Object", "External"]
    assert metrics[0] == {"type": "Pods", "pods": {"metricName": "hits", "targetAverageValue": "5"}}


def test_nothing_is_lost_between_the_versions() -> None:
    assert to_storage(from_storage(SECOND)) == SECOND


def test_without_any_target_cpu_is_kept_at_eighty_percent() -> None:
    stored = to_storage({"metadata": {"name": "a"}, "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}})

    assert items(stored, "spec", "metrics") == [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]


def test_an_annotation_that_is_no_json_is_ignored() -> None:
    annotations: JSONObject = {"autoscaling.alpha.kubernetes.io/metrics": "{"}
    stored = to_storage({"metadata": {"name": "a", "annotations": annotations}, "spec": {"maxReplicas": 3}})

    assert len(items(stored, "spec", "metrics")) == 1
