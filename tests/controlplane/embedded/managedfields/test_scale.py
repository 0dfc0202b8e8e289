from __future__ import annotations

from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.managedfields import (
    empty_object,
    entries_after_scale,
    scale_entries,
    track_update,
)

REPLICAS = {"apps/v1": ("spec", "replicas")}


def entry(manager: str, operation: str, fields: JSONObject, **more: JSONValue) -> JSONObject:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


BOTH: JSONObject = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
PAUSED: JSONObject = {"f:spec": {"f:paused": {}}}
ONLY: JSONObject = {"f:spec": {"f:replicas": {}}}


def test_the_manager_of_the_replicas_manages_the_scale() -> None:
    entries: list[JSONValue] = [entry("a", "Apply", BOTH), entry("b", "Update", PAUSED)]

    assert scale_entries(entries, replicas=REPLICAS) == [{**entry("a", "Apply", ONLY), "apiVersion": "autoscaling/v1"}]


def test_the_writer_of_a_scale_takes_over_the_replicas() -> None:
    entries: list[JSONValue] = [entry("a", "Apply", BOTH), entry("b", "Update", ONLY)]
    live: JSONObject = {
        "metadata": {"name": "x", "uid": "u", "managedFields": scale_entries(entries, replicas=REPLICAS)},
        "spec": {"replicas": 1},
    }
    new: JSONObject = {"metadata": {"name": "x", "uid": "u"}, "spec": {"replicas": 2}}
    scaled = track_update(
        live,
        new,
        manager="scaler",
        api_version="autoscaling/v1",
        subresource="scale",
        time="2024-01-01T00:00:00Z",
        structure=structure_of(Scale),
        empty=empty_object(Scale),
    )

    assert entries_after_scale(entries, scaled, api_version="apps/v1", replicas=REPLICAS) == [
        entry("a", "Apply", PAUSED),
        entry("scaler", "Update", ONLY, subresource="scale"),
    ]


def test_entries_of_versions_without_scale_stay_those_of_versions_that_are_gone_do_not() -> None:
    entries: list[JSONValue] = [
        entry("a", "Apply", BOTH, apiVersion="apps/v0"),
        entry("b", "Apply", BOTH, apiVersion="apps/v2"),
    ]

    after = entries_after_scale(entries, [], api_version="apps/v1", replicas={**REPLICAS, "apps/v2": None})

    assert after == [entry("b", "Apply", BOTH, apiVersion="apps/v2")]
