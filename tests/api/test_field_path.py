from __future__ import annotations

import pytest

from kubewright.api.field_path import FieldPath, FieldPathError, SomeItems, Step
from kubewright.api.markers import JSONValue

OBJECT: JSONValue = {
    "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
    "spec": {"ports": [{"name": "http", "port": 80}], "replicas": 0, "0": "zero"},
}


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("spec", ("spec",)),
        ("spec.replicas", ("spec", "replicas")),
        (".spec.replicas", ("spec", "replicas")),
        ("spec['replicas']", ("spec", "replicas")),
        ('spec["re.pli"].cas', ("spec", "re.pli", "cas")),
        (r"labels.app\.kubernetes\.io/name", ("labels", "app.kubernetes.io/name")),
        ("spec.ports[0].name", ("spec", "ports", 0, "name")),
        ('["spec"][0]', ("spec", 0)),
        ("spec.ports[*].name", ("spec", "ports", SomeItems("[*]"), "name")),
        ("spec.ports[-1]", ("spec", "ports", SomeItems("[-1]"))),
        ("spec.ports[1:3].name", ("spec", "ports", SomeItems("[1:3]"), "name")),
        ('conditions[?(@.type=="Ready")].status', ("conditions", SomeItems('[?(@.type=="Ready")]'), "status")),
    ],
)
def test_a_path_is_read_step_by_step(text: str, steps: tuple[Step, ...]) -> None:
    assert FieldPath(text).steps == steps


@pytest.mark.parametrize(
    "text", ["", ".", "a..b", "a.", "..a", "a[", "a[x]", "a]b", "a[0]b", '["x', 'a[""]', "a b", "a{b}", ".spec.ports[0"]
)
def test_an_invalid_path_is_refused_at_once(text: str) -> None:
    with pytest.raises(FieldPathError, match=r'is not the path of a field, from ".*" on: expected something like'):
        FieldPath(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("spec.replicas", 0),
        ("spec.ports[0].port", 80),
        ("spec.ports[1].port", None),
        ("spec.ports.port", None),
        ("spec[0]", None),
        ('spec["0"]', "zero"),
        ('metadata.labels["app.kubernetes.io/name"]', "web"),
        (r"metadata.labels.app\.kubernetes\.io/name", "web"),
        ("spec.ports[*].port", None),
        ("status.phase", None),
    ],
)
def test_the_value_at_a_path_is_found_or_none(text: str, value: JSONValue) -> None:
    assert FieldPath(text).read(OBJECT) == value
    assert FieldPath(text).read(None) is None


def test_a_plain_path_has_names_only() -> None:
    assert FieldPath(".spec.nodeName").names == ("spec", "nodeName")
    for text in ("spec.ports[0]", "spec['size']", "spec.ports[*].port"):
        with pytest.raises(FieldPathError, match=r"has more than names: expected a path such as \.spec\.replicas"):
            _ = FieldPath(text).names


def test_the_text_of_a_path_has_the_dot_that_definitions_need() -> None:
    assert str(FieldPath("spec.replicas")) == str(FieldPath(".spec.replicas")) == ".spec.replicas"
    assert str(FieldPath("['spec'].a")) == "['spec'].a"
