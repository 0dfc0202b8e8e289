from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.schema.prune import Pruner

KNOWN: JSONObject = {"type": "object", "properties": {"a": {"type": "string"}}}
EMBEDDED: JSONObject = {"type": "object", "x-kubernetes-embedded-resource": True}
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "known": KNOWN,
                "map": {"type": "object", "additionalProperties": KNOWN},
                "anything": {"type": "object", "additionalProperties": True},
                "list": {"type": "array", "items": KNOWN},
                "lists": {"type": "array", "items": {"type": "array", "items": KNOWN}},
                "free": {
                    "x-kubernetes-preserve-unknown-fields": True,
                    "type": "object",
                    "properties": {"known": KNOWN},
                },
                "raw": {**EMBEDDED, "x-kubernetes-preserve-unknown-fields": True},
                "pod": {**EMBEDDED, "properties": {"spec": KNOWN}},
            },
        }
    },
}


def pruned(**spec: JSONValue) -> tuple[list[str], JSONValue]:
    obj: JSONObject = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}
    return Pruner(SCHEMA).prune(obj), obj["spec"]


def test_unknown_fields_are_dropped_and_reported_in_order() -> None:
    unknown, spec = pruned(
        x=1, map={"k": {"b": 1}}, list=[{"b": 1}, {"a": "x", "c": {"d": 1}}], lists=[[{"z": 1}]], known={"a": "x"}
    )

    assert unknown == ["spec.list[0].b", "spec.list[1].c", "spec.lists[0][0].z", "spec.map.k.b", "spec.x"]
    assert spec == {"map": {"k": {}}, "list": [{}, {"a": "x"}], "lists": [[{}]], "known": {"a": "x"}}


def test_unknown_fields_are_kept_where_the_schema_preserves_them_but_not_below_what_it_knows() -> None:
    unknown, spec = pruned(free={"x": {"y": 1}, "known": {"a": "x", "b": 1}})

    assert unknown == ["spec.free.known.b"]
    assert spec == {"free": {"x": {"y": 1}, "known": {"a": "x"}}}


def test_objects_below_additional_properties_true_lose_their_fields() -> None:
    assert pruned(anything={"a": 1, "b": {"c": 1}}) == (["spec.anything.b.c"], {"anything": {"a": 1, "b": {}}})


def test_an_embedded_resource_keeps_its_identity_and_the_metadata_that_object_meta_has() -> None:
    unknown, spec = pruned(
        raw={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "bar": 1, "labels": {}}, "zip": 1},
        pod={"apiVersion": "v1", "kind": "Pod", "foo": 1, "spec": {"a": "x", "b": 1}},
    )

    assert unknown == ["spec.pod.foo", "spec.pod.spec.b", "spec.raw.metadata.bar"]
    assert spec == {
        "raw": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "zip": 1},
        "pod": {"apiVersion": "v1", "kind": "Pod", "spec": {"a": "x"}},
    }


def test_metadata_at_the_root_is_never_the_schemas_business() -> None:
    obj: JSONObject = {"metadata": {"name": "x", "nope": 1, "labels": {"a": "b"}}, "top": 1}

    assert Pruner({"type": "object"}).prune(obj) == ["metadata.nope", "top"]
    assert obj == {"metadata": {"name": "x", "labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        ({"spec": {"raw": {"apiVersion": 1}}}, "spec.raw.apiVersion: Invalid value: 1: must be a string"),
        (
            {"spec": {"raw": {"metadata": {"name": 1}}}},
            'spec.raw.metadata: Invalid value: {"name":1}: '
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
        ),
    ],
)
def test_metadata_that_cannot_be_read_is_a_bad_request(obj: JSONObject, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        Pruner(SCHEMA).prune({"apiVersion": "example.com/v1", "kind": "Thing", **obj})

    assert caught.value.code == 400
    assert caught.value.message == f'Thing in version "v1" cannot be handled as a Thing: {message}'
