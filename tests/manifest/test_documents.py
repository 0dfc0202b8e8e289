from __future__ import annotations

import pytest

from kubewright.manifest.documents import documents
from kubewright.manifest.errors import ManifestError


def test_every_document_is_named_by_its_number_and_empty_ones_count() -> None:
    text = "a: 1\n---\n# nothing\n---\nb: 2\n"
    assert list(documents(text, "x.yaml")) == [("x.yaml, document 1", {"a": 1}), ("x.yaml, document 3", {"b": 2})]


def test_the_items_of_a_list_are_documents() -> None:
    text = '{"apiVersion": "v1", "kind": "List", "items": [{"a": 1}, {"b": 2}]}'
    assert list(documents(text, "x.json")) == [
        ("x.json, document 1, items[0]", {"a": 1}),
        ("x.json, document 1, items[1]", {"b": 2}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n---\nb: [2\n", "x.yaml, document 2, line 4, column 1: not YAML: did not find expected ',' or ']'"),
        ("a: \x00\n", "x.yaml: not YAML: it holds characters that YAML does not allow"),
    ],
)
def test_what_is_not_yaml_is_an_error_with_its_position(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as raised:
        list(documents(text, "x.yaml"))
    assert str(raised.value) == message
