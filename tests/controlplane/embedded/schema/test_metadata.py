from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.schema.metadata import MalformedMetadata, coerced


def test_what_object_meta_has_is_kept_and_the_rest_is_reported() -> None:
    unknown: list[str] = []

    found = coerced(
        {
            "name": "a",
            "foo": 1,
            "labels": {"x": None, "y": "z"},
            "annotations": {},
            "creationTimestamp": None,
            "deletionGracePeriodSeconds": 0,
            "finalizers": ["a/b"],
            "ownerReferences": [{"name": "b", "uid": "u", "controller": False, "zzz": 1}],
            "managedFields": [{"manager": "m", "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:x": {}}}],
        },
        "metadata",
        unknown,
    )

    assert unknown == ["metadata.foo", "metadata.ownerReferences[0].zzz"]
    assert found == {
        "name": "a",
        "labels": {"x": "", "y": "z"},
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["a/b"],
        "ownerReferences": [{"apiVersion": "", "kind": "", "name": "b", "uid": "u", "controller": False}],
        "managedFields": [{"manager": "m", "time": "2020-01-01T00:00:00Z", "fieldsV1": {"f:x": {}}}],
    }


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("x", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ({"name": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        (
            {"labels": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            {"finalizers": "x"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
        ),
        ({"generation": "1"}, "json: cannot unmarshal string into Go struct field ObjectMeta.generation of type int64"),
        (
            {"ownerReferences": [{"name": 1}]},
            "json: cannot unmarshal number into Go struct field OwnerReference.ownerReferences.name of type string",
        ),
        (
            {"creationTimestamp": "yesterday"},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        (
            {"creationTimestamp": "2020-01-01"},
            'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
    ],
)
def test_values_of_a_wrong_type_are_reported_as_in_go(metadata: JSONValue, message: str) -> None:
    with pytest.raises(MalformedMetadata) as caught:
        coerced(metadata, "metadata", [])

    assert str(caught.value) == message
