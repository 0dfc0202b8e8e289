from __future__ import annotations

import yaml

from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.controlplane.embedded.apimachinery.repetitions import (
    repeated_fields,
    repeated_keys,
    repeats_fields,
    unknown_and_repeated_fields,
)
from kubewright.controlplane.embedded.apimachinery.structure import structure_of


def test_fields_are_reported_in_the_order_of_the_document_and_once() -> None:
    body = b'{"a":[{"x":1,"x":2,"x":3}],"b":{"c":{"d":1},"c":{"d":1,"d":2}},"a":[]}'
    paths = ["a[0].x", "b.c", "b.c.d", "a"]

    assert repeats_fields(body)
    assert repeated_fields(body) == [f'duplicate field "{path}"' for path in paths]


def test_the_same_name_in_different_objects_is_no_repetition() -> None:
    assert not repeats_fields(b'{"a":{"a":[{"a":1},{"a":1}]}}')


def test_nothing_is_reported_of_what_is_inside_an_unknown_field() -> None:
    body = b'{"kind":"ConfigMap","kind":"","more":{"a":1,"a":2},"more":1,"data":{"x":"1","x":"2"},"metadata":{"no":1}}'

    assert unknown_and_repeated_fields(body, structure_of(ConfigMap)) == [
        'duplicate field "kind"',
        'unknown field "more"',
        'duplicate field "data.x"',
        'unknown field "metadata.no"',
    ]


def test_items_of_lists_are_reported_by_their_index() -> None:
    body = b'{"spec":{"containers":[{"name":"a"},{"name":"a","x":1,"name":"b"}]}}'

    assert unknown_and_repeated_fields(body, structure_of(Pod)) == [
        'unknown field "spec.containers[1].x"',
        'duplicate field "spec.containers[1].name"',
    ]


def test_keys_of_yaml_are_reported_by_the_line_of_their_values() -> None:
    node = yaml.compose("a: 1\nb:\n  - {c: 1, c: 2}\nb:\n  d: 1\na: 2\n", Loader=yaml.SafeLoader)

    assert node is not None
    assert repeated_keys(node) == [
        'line 3: key "c" already set in map',
        'line 5: key "b" already set in map',
        'line 6: key "a" already set in map',
    ]


def test_a_node_that_is_inside_itself_is_read_once() -> None:
    node = yaml.compose("a: &x\n  b: *x\n  b: *x\n", Loader=yaml.SafeLoader)

    assert node is not None
    assert len(repeated_keys(node)) == 1
