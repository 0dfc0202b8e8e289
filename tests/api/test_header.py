from __future__ import annotations

import msgspec
import pytest

from kubewright.api.header import Header
from kubewright.api.kinds import ObjectKey


def test_a_header_has_what_finds_indexes_and_orders_an_object() -> None:
    header = msgspec.json.decode(
        b"""{"name": "web-1", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 3,
             "deletionTimestamp": "2024-01-01T00:00:00Z", "labels": {"a": "1"}, "annotations": {"b": "2"},
             "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-0",
                                  "controller": true, "blockOwnerDeletion": true}],
             "creationTimestamp": null, "managedFields": [{"manager": "kubectl"}], "novelty": {}}""",
        type=Header,
    )

    assert header.key == ObjectKey("shop", "web-1")
    assert (header.uid, header.resource_version, header.generation) == ("u-1", "7", 3)
    assert header.deletion_timestamp == "2024-01-01T00:00:00Z"
    assert (header.labels, header.annotations) == ({"a": "1"}, {"b": "2"})
    assert header.owner_references is not None
    (owner,) = header.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "apps/v1",
        "ReplicaSet",
        "web",
        "u-0",
        True,
    )


@pytest.mark.parametrize("raw", [b"{}", b'{"labels": null, "annotations": null, "ownerReferences": null}'])
def test_absent_and_null_fields_are_empty(raw: bytes) -> None:
    header = msgspec.json.decode(raw, type=Header)

    assert header == Header()
    assert header.key == ObjectKey("", "")
