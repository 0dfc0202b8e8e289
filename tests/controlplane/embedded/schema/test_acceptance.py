from __future__ import annotations

from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.schema.acceptance import SchemaNode
from kubewright.controlplane.embedded.schema.findings import UNCORRELATED, Findings, explain

_NAMES = st.sampled_from(["a", "b", "c"])
_SCALARS: st.SearchStrategy[JSONValue] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-4, 4),
    st.sampled_from([2**31, 2**63, -(2**63) - 1, 0.5, 2.0, 1e20]),
    st.sampled_from(["", "a", "bb", "ccc", "1.2.3.4"]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=8,
)
_KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]),
        "format": st.sampled_from(["int32", "int64", "float", "ipv4", "date"]),
        "nullable": st.booleans(),
        "x-kubernetes-int-or-string": st.booleans(),
        "enum": st.lists(_SCALARS, min_size=1, max_size=3),
        "minimum": st.sampled_from([0, 1, 0.5]),
        "maximum": st.sampled_from([2, 3, 1e30]),
        "exclusiveMinimum": st.booleans(),
        "exclusiveMaximum": st.booleans(),
        "multipleOf": st.sampled_from([2, 0.5, 0]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b$"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "required": st.lists(_NAMES, max_size=2),
    },
)


def _extended(inner: st.SearchStrategy[JSONObject]) -> st.SearchStrategy[JSONObject]:
    parts = st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "properties": st.dictionaries(_NAMES, inner, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
            "allOf": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=2),
            "oneOf": st.lists(inner, max_size=2),
            "not": inner,
        },
    )
    return st.builds(lambda keywords, rest: {**keywords, **rest}, _KEYWORDS, parts)


_SCHEMAS = st.recursive(cast("st.SearchStrategy[JSONObject]", _KEYWORDS), _extended, max_leaves=6)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(_SCHEMAS, _VALUES)
def test_exactly_the_refused_values_have_errors(schema: JSONObject, value: JSONValue) -> None:
    node = SchemaNode(schema)

    errors = explain(node, value, Findings(""), "x", UNCORRELATED).errors

    assert node.accepts(value) is not bool(errors)
