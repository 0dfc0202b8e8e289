from __future__ import annotations

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.schema.embedded import EmbeddedResources

RESOURCE: JSONObject = {"type": "object", "x-kubernetes-embedded-resource": True}
SCHEMA: JSONObject = {
    "type": "object",
    "properties": {
        "e": RESOURCE,
        "all": {"type": "object", "additionalProperties": {"type": "array", "items": RESOURCE}},
        "other": {"type": "object", "properties": {"a": {"type": "string"}}},
    },
}


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        ({"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}}, "other": {"a": "x"}}, []),
        ({"e": {}}, ["e.apiVersion: Required value", "e.kind: Required value"]),
        (
            {"all": {"k": [{"apiVersion": "", "kind": ""}]}},
            [
                'all[k][0].apiVersion: Invalid value: "": must not be empty',
                'all[k][0].kind: Invalid value: "": must not be empty',
            ],
        ),
        (
            {"e": {"apiVersion": "a/b/c", "kind": "Pod"}},
            ['e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"e": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}},
            ["e.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        ),
        (
            {"e": {"apiVersion": "v1", "kind": "po_d"}},
            [
                'e.kind: Invalid value: "po_d": may have mixed case, but should otherwise match: a DNS-1035 label must '
                "consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end "
                "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                "'[a-z]([-a-z0-9]*[a-z0-9])?')"
            ],
        ),
    ],
)
def test_an_embedded_resource_needs_what_every_resource_has(obj: JSONValue, errors: list[str]) -> None:
    assert [str(error) for error in EmbeddedResources(SCHEMA).validate(obj)] == errors
