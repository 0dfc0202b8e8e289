from __future__ import annotations

import copy
from typing import cast

import msgspec
import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch

CANNOT = "error decoding patch: json: cannot unmarshal"


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b"}, {"b": None}, {"a": "b"}),
        ({"a": None}, {"b": 1}, {"a": None, "b": 1}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c", "d": 1}}, {"a": {"b": "d", "d": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": {"b": [{"c": None, "d": [None, 1]}]}}, {"a": {"b": [{"d": [None, 1]}]}}),
        ({"a": [1]}, {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        ({"a": {"x": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": {"x": 1}}, {}, {"a": {"x": 1}}),
    ],
)
def test_objects_merge_lists_are_replaced_and_nulls_delete(
    document: JSONObject, patch: JSONObject, expected: JSONObject
) -> None:
    before = copy.deepcopy((document, patch))
    assert apply_merge_patch(document, patch) == expected
    assert (document, patch) == before


def test_parts_that_the_patch_does_not_name_are_shared() -> None:
    document: JSONObject = {"a": {"b": {}, "c": {"d": 1}}, "e": []}
    patched = apply_merge_patch(document, {"a": {"b": {"x": 1}}})
    assert patched["e"] is document["e"]
    inner, original = patched["a"], document["a"]
    assert isinstance(inner, dict)
    assert isinstance(original, dict)
    assert inner["c"] is original["c"]


@pytest.mark.parametrize(
    ("patch", "message", "lenient_message"),
    [
        (None, "Invalid JSON Patch", "Invalid JSON Patch"),
        ("x", f"{CANNOT} string into Go value of type map[string]interface {{}}", "Invalid JSON Patch"),
        (5, f"{CANNOT} number into Go value of type map[string]interface {{}}", "Invalid JSON Patch"),
        (True, f"{CANNOT} bool into Go value of type map[string]interface {{}}", "Invalid JSON Patch"),
        (
            [{"a": None}],
            f"{CANNOT} array into Go value of type map[string]interface {{}}",
            ' "" is invalid: patch: Invalid value: "[{}]": couldn\'t get version/kind; json parse error: json: cannot '
            'unmarshal array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }',
        ),
    ],
)
def test_json_that_is_no_object_is_refused(patch: JSONValue, message: str, lenient_message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply_merge_patch({"a": 1}, patch)
    assert (caught.value.code, caught.value.message) == (400, message)
    with pytest.raises(StatusError) as caught:
        apply_merge_patch({"a": 1}, patch, lenient=True)
    assert (caught.value.code, caught.value.message) == (422 if isinstance(patch, list) else 400, lenient_message)


@pytest.mark.parametrize(
    ("current", "value", "merged"),
    [
        (b'{"x":1}', {"y": 2}, {"x": 1, "y": 2}),
        (b'{"x":1}', b'{"y":2}', {"x": 1, "y": 2}),
        ({"x": 1}, b'{"y":2}', {"x": 1, "y": 2}),
        (b'{"x":1,"y":2}', b'{"x":null}', {"y": 2}),
        ("scalar", b'{"y":{"z":null}}', {"y": {}}),
    ],
)
def test_what_is_kept_as_text_is_merged(current: object, value: object, merged: JSONValue) -> None:
    document, patch = [{"a": msgspec.Raw(each) if isinstance(each, bytes) else each} for each in (current, value)]
    assert apply_merge_patch(cast(JSONObject, document), cast(JSONObject, patch)) == {"a": merged}


def test_what_is_kept_as_text_can_be_replaced_and_removed() -> None:
    document = cast(JSONObject, {"a": msgspec.Raw(b'{"x":null}'), "b": 1})
    assert apply_merge_patch(document, {"a": [1]}) == {"a": [1], "b": 1}
    assert apply_merge_patch(document, {"a": None}) == {"b": 1}
