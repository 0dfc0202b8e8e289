from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.webhook.json_patch import json_patch

SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b"])
VALUES: st.SearchStrategy[JSONValue] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b/c", "~d"]), inner),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["spec", "a/b", "x~y"]), VALUES)


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_turns_one_document_into_the_other(before: JSONObject, after: JSONObject) -> None:
    changed = apply_json_patch(before, list(json_patch(before, after)))
    assert json_patch(changed, after) == []
    assert json_patch(after, changed) == []


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [("replace", "/a")]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [("replace", "/a/c")]),
        ({"a": {}}, {"a": {"x/y~z": 1}}, [("add", "/a/x~1y~0z")]),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, [("remove", "/a/1")]),
        ({"a": [1, 3]}, {"a": [1, 2, 3]}, [("add", "/a/1")]),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 2}, 2]}, [("replace", "/a/0/b")]),
        ({"a": [1, 2, 3]}, {"a": [1]}, [("remove", "/a/2"), ("remove", "/a/1")]),
    ],
)
def test_only_what_differs_is_named(before: JSONObject, after: JSONObject, operations: list[tuple[str, str]]) -> None:
    assert [(each["op"], each["path"]) for each in json_patch(before, after)] == operations
