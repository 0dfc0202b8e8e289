from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.openapi.protobuf import document_bytes


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", b"plain\n"),
        ("", b'""\n'),
        ("true", b'"true"\n'),
        ("no", b'"no"\n'),
        ("y", b'"y"\n'),
        ("3", b'"3"\n'),
        ("1.5", b'"1.5"\n'),
        ("null", b'"null"\n'),
        ("2026-01-01", b'"2026-01-01"\n'),
        ("- dash", b"'- dash'\n"),
        ("*", b"'*'\n"),
    ],
)
def test_a_text_that_yaml_would_read_as_something_else_is_in_double_quotes(text: str, written: bytes) -> None:
    schema: JSONValue = {"type": "string", "default": text}
    assert written in document_bytes({"swagger": "2.0", "definitions": {"a": schema}})


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"additionalProperties": False}, b"\xaa\x01\x02\x10\x00"),
        ({"additionalProperties": True}, b"\xaa\x01\x02\x10\x01"),
        ({"externalDocs": {"url": "u", "description": "d"}}, b"\xea\x01\x06\n\x01d\x12\x01u"),
    ],
)
def test_closed_structures_and_documents_elsewhere_are_written(schema: JSONValue, written: bytes) -> None:
    assert document_bytes({"swagger": "2.0", "definitions": {"a": schema}}).endswith(written)
