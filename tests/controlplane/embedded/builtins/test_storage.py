from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.storage import persistent_volume_strategy

Create = Callable[[JSONObject], JSONObject]
Update = Callable[[JSONObject, JSONObject], JSONObject]


@pytest.fixture
def bound(create: Create) -> JSONObject:
    stored = create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
        }
    )
    stored["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    return stored


def resized(claim: JSONObject, storage: str) -> JSONObject:
    changed = copied_object(claim)
    inside(changed, "spec", "resources", "requests")["storage"] = storage
    return changed


def test_a_bound_claim_may_grow(bound: JSONObject, update: Update) -> None:
    assert mapping(update(bound, resized(bound, "3Gi")), "spec", "resources", "requests") == {"storage": "3Gi"}


def test_a_bound_claim_does_not_shrink(bound: JSONObject, update: Update) -> None:
    with pytest.raises(StatusError) as refused:
        update(bound, resized(bound, "1Gi"))

    assert refused.value.message == (
        'PersistentVolumeClaim "a" is invalid: spec.resources.requests.storage: Forbidden: '
        "field can not be less than status.capacity"
    )


def test_a_claim_that_could_not_grow_may_request_less_again(bound: JSONObject, update: Update) -> None:
    stuck = resized(bound, "5Gi")

    assert mapping(update(stuck, resized(stuck, "3Gi")), "spec", "resources", "requests") == {"storage": "3Gi"}


def test_a_volume_notes_when_its_phase_changes() -> None:
    rules = persistent_volume_strategy(lambda: datetime(2026, 1, 2, tzinfo=UTC))
    old: JSONObject = {"status": {"phase": "Available", "lastPhaseTransitionTime": "2025-01-01T00:00:00Z"}}
    same, changed = copied_object(old), copied_object(old)
    inside(changed, "status")["phase"] = "Bound"

    for new in (same, changed):
        rules.prepare_status(new, old)

    assert mapping(same, "status")["lastPhaseTransitionTime"] == "2025-01-01T00:00:00Z"
    assert mapping(changed, "status")["lastPhaseTransitionTime"] == "2026-01-02T00:00:00Z"
