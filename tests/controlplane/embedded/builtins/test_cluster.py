from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.builtins.cluster import NAMESPACE


@pytest.mark.parametrize(
    ("phase", "metadata", "expected"),
    [
        ("Active", {}, []),
        ("Terminating", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, []),
        ("Terminating", {}, ["\"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"]),
        (
            "Active",
            {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            ["\"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
        ),
    ],
)
def test_a_namespace_terminates_exactly_when_it_is_being_deleted(
    phase: str, metadata: JSONObject, expected: list[str]
) -> None:
    namespace: JSONObject = {"metadata": metadata, "status": {"phase": phase}}

    errors = NAMESPACE.validate_status(namespace, namespace)

    assert [str(error) for error in errors] == [f"status.Phase: Invalid value: {complaint}" for complaint in expected]
