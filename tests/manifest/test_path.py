"""Following paths through a schema."""

import pytest

from kubewright.manifest.path import PathError, schema_at
from kubewright.manifest.schema import Schema

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
            },
        }
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", NUMBER),
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
    assert schema_at(SCHEMA, path) == expected


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        (".spec.sise", '".spec.sise" leads nowhere: .spec has no field "sise" (it has size, ports, labels, anything'),
        (".status.size", '".status.size" leads nowhere: the object has no field "status" (it has spec)'),
        (".spec.size.more", '".spec.size has no field "more" (it has no fields)'),
        (".spec.empty.more", '".spec.empty has no field "more" (it has no fields)'),
        (".spec.size[0]", ".spec.size is no list"),
        (".spec.ports.port", '.spec.ports has no field "port" (it has no fields)'),
        ("spec.size", '"spec.size" does not start with a dot: expected a path such as .spec.replicas'),
        ("", '"" does not start with a dot'),
        (".spec..size", '".spec..size" cannot be read at "..size": expected a path such as'),
        (".spec.ports[0", 'cannot be read at "[0"'),
        (".spec.", '".spec." cannot be read at "."'),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(path: str, complaint: str) -> None:
    with pytest.raises(PathError) as caught:
        schema_at(SCHEMA, path)
    assert complaint.removeprefix('"') in str(caught.value)


@pytest.mark.parametrize("path", [".spec.ports[0].port", ".spec['size']"])
def test_a_plain_path_has_names_only(path: str) -> None:
    with pytest.raises(PathError, match=r"expected names after dots, such as \.spec\.replicas"):
        schema_at(SCHEMA, path, plain=True)
    assert schema_at(SCHEMA, ".spec.size", plain=True) == NUMBER
