"""Following paths through a schema."""

import pytest

from kubewright.api.field_path import FieldPath
from kubewright.manifest.keywords import Schema
from kubewright.manifest.path import PathError, schema_at

NUMBER: Schema = {"type": "integer"}
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": NUMBER,
                "ports": {"type": "array", "items": {"type": "object", "properties": {"port": NUMBER}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "empty": {"type": "object"},
                "podPort": NUMBER,
            },
        }
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", NUMBER),
        ("spec.size", NUMBER),
        (".spec['size']", NUMBER),
        ('.spec["size"]', NUMBER),
        (".spec.ports[0].port", NUMBER),
        (".spec.ports[-1:].port", NUMBER),
        (".spec.ports[*].port", NUMBER),
        ('.spec.ports[?(@.port=="80")].port', NUMBER),
        (".spec.labels.app", {"type": "string"}),
        (r".spec.labels.app\.kubernetes\.io/name", {"type": "string"}),
        (".spec.labels['app.kubernetes.io/name']", {"type": "string"}),
        (".spec.anything.at[0].all", {}),
    ],
)
def test_a_path_leads_to_the_schema_of_its_value(path: str, expected: Schema) -> None:
    assert schema_at(SCHEMA, FieldPath(path)) == expected


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        (".spec.sise", '".spec.sise" leads nowhere: .spec has no field "sise" (it has size, ports, labels, anything'),
        (".status.size", '".status.size" leads nowhere: the object has no field "status" (it has spec)'),
        (
            ".spec.pod_port",
            'leads nowhere: .spec has no field "pod_port": write "podPort", as in JSON',
        ),
        (".spec.size.more", '".spec.size has no field "more" (it has no fields)'),
        (".spec.empty.more", '".spec.empty has no field "more" (it has no fields)'),
        (".spec.size[0]", ".spec.size is no list"),
        (".spec.ports.port", '.spec.ports has no field "port" (it has no fields)'),
    ],
)
def test_the_error_for_an_unknown_path_lists_the_existing_fields(path: str, complaint: str) -> None:
    with pytest.raises(PathError) as caught:
        schema_at(SCHEMA, FieldPath(path))
    assert complaint.removeprefix('"') in str(caught.value)
