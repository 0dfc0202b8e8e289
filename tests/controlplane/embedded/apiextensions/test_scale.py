from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apiextensions.scale import ScalePaths

PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")


@pytest.mark.parametrize(
    ("replicas", "errors"),
    [
        (3, []),
        (-1, ["Invalid value: -1: should be a non-negative integer"]),
        (2**31, ["Invalid value: 2147483648: should be less than or equal to 2147483647"]),
        ("x", ["Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64"]),
        (True, ["Invalid value: 0: .spec.replicas accessor error: true is of the type bool, expected int64"]),
        (
            {"a": [1, None]},
            [
                "Invalid value: 0: .spec.replicas accessor error: map[a:[1 <nil>]] is of the type "
                "map[string]interface {}, expected int64"
            ],
        ),
    ],
)
def test_replicas_are_a_number_that_can_be_scaled_to(replicas: JSONValue, errors: list[str]) -> None:
    found = list(PATHS.check_spec({"spec": {"replicas": replicas}}))

    assert [error.body for error in found] == errors
    assert all(error.field == ".spec.replicas" for error in found)


def test_an_absent_field_is_valid() -> None:
    assert list(PATHS.check_spec({"spec": {}})) == []
    assert list(PATHS.check_status({})) == []


def test_a_status_that_is_no_object_is_reported_for_each_path_in_it() -> None:
    complaint = "accessor error: x is of the type string, expected map[string]interface{}"

    assert [str(error) for error in PATHS.check_status({"status": "x"})] == [
        f".status.replicas: Invalid value: 0: .status.replicas {complaint}",
        f'.status.selector: Invalid value: "": .status.selector {complaint}',
    ]


def test_a_version_without_scale_has_no_paths() -> None:
    assert ScalePaths.of({"status": {}}) is None
