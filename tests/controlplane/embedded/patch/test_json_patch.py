from __future__ import annotations

import copy

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch, unknown_fields

DOCUMENT: JSONObject = {
    "metadata": {"name": "web", "labels": {"a": "1", "b/c": "2", "til~de": "3"}},
    "spec": {"list": ["x", "y", "z"], "items": [{"name": "one"}, {"name": "two"}], "size": 1, "gone": None},
}


def spec(*operations: JSONValue) -> JSONValue:
    """What the operations make of `spec`."""
    return apply_json_patch(DOCUMENT, list(operations))["spec"]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/spec/list/-", "value": "w"}, ["x", "y", "z", "w"]),
        ({"op": "add", "path": "/spec/list/0", "value": "w"}, ["w", "x", "y", "z"]),
        ({"op": "add", "path": "/spec/list/3", "value": "w"}, ["x", "y", "z", "w"]),
        ({"op": "add", "path": "/spec/list/-1", "value": "w"}, ["x", "y", "z", "w"]),
        ({"op": "add", "path": "/spec/list/-4", "value": "w"}, ["w", "x", "y", "z"]),
        ({"op": "add", "path": "/spec/list/+1", "value": "w"}, ["x", "w", "y", "z"]),
        ({"op": "add", "path": "/spec/list", "value": "w"}, "w"),
        ({"op": "remove", "path": "/spec/list/1"}, ["x", "z"]),
        ({"op": "remove", "path": "/spec/list/-1"}, ["x", "y"]),
        ({"op": "replace", "path": "/spec/list/01", "value": "w"}, ["x", "w", "z"]),
        ({"op": "replace", "path": "/spec/list/-3", "value": "w"}, ["w", "y", "z"]),
        ({"op": "move", "from": "/spec/list/0", "path": "/spec/list/-"}, ["y", "z", "x"]),
        ({"op": "copy", "from": "/spec/list/0", "path": "/spec/list/1"}, ["x", "x", "y", "z"]),
        ({"op": "copy", "from": "/spec/none", "path": "/spec/list/0"}, [None, "x", "y", "z"]),
        ({"op": "test", "path": "/spec/list", "value": ["x", "y", "z"]}, ["x", "y", "z"]),
    ],
)
def test_lists_are_changed_by_index(operation: JSONValue, expected: JSONValue) -> None:
    result = spec(operation)
    assert isinstance(result, dict)
    assert result["list"] == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/metadata/labels/c", "value": "4"}, {"a": "1", "b/c": "2", "til~de": "3", "c": "4"}),
        ({"op": "add", "path": "/metadata/labels/", "value": "4"}, {"a": "1", "b/c": "2", "til~de": "3", "": "4"}),
        ({"op": "add", "path": "/metadata/labels/a"}, {"a": None, "b/c": "2", "til~de": "3"}),
        ({"op": "remove", "path": "/metadata/labels/b~1c"}, {"a": "1", "til~de": "3"}),
        ({"op": "remove", "path": "/metadata/labels/til~0de"}, {"a": "1", "b/c": "2"}),
        ({"op": "replace", "path": "/metadata/labels", "value": {}}, {}),
    ],
)
def test_fields_are_changed_by_name(operation: JSONValue, expected: JSONValue) -> None:
    result = apply_json_patch(DOCUMENT, [operation])["metadata"]
    assert result == {"name": "web", "labels": expected}


def test_replacing_an_absent_field_adds_it() -> None:
    assert apply_json_patch({}, [{"op": "replace", "path": "/a", "value": 1}]) == {"a": 1}


def test_what_precedes_the_first_slash_is_ignored() -> None:
    assert apply_json_patch({}, [{"op": "add", "path": "junk/a", "value": 1}]) == {"a": 1}


def test_the_whole_document_can_be_replaced() -> None:
    operations: JSONValue = [
        {"op": "replace", "path": "", "value": {"kind": "Pod", "a": [1]}},
        {"op": "add", "path": "/a/-", "value": 2},
        {"op": "test", "path": "", "value": {"a": [1, 2], "kind": "Pod"}},
    ]
    assert apply_json_patch(DOCUMENT, operations) == {"kind": "Pod", "a": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/absent", "value": None},
        {"op": "test", "path": "/spec/absent"},
        {"op": "test", "path": "/spec/gone", "value": None},
        {"op": "test", "path": "/spec/size", "value": 1},
        {"op": "test", "path": "/spec/items/0", "value": {"name": "one"}},
        {"op": "test", "path": "/spec/items/-1/name", "value": "two"},
    ],
)
def test_a_test_that_holds_changes_nothing(operation: JSONValue) -> None:
    """kube-rs' finalizers rely on a test of an absent field against null."""
    assert apply_json_patch(DOCUMENT, [operation]) is DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/size", "value": 2},
        {"op": "test", "path": "/spec/size", "value": 1.0},
        {"op": "test", "path": "/spec/size", "value": True},
        {"op": "test", "path": "/spec/size", "value": "1"},
        {"op": "test", "path": "/spec/size", "value": None},
        {"op": "test", "path": "/spec/size"},
        {"op": "test", "path": "/spec/absent", "value": ""},
        {"op": "test", "path": "/spec/absent/deeper", "value": None},
        {"op": "test", "path": "/spec/list/3", "value": None},
        {"op": "test", "path": "/spec/list", "value": ["x", "y"]},
        {"op": "test", "path": "/spec/list", "value": {}},
        {"op": "test", "path": "/spec/items/0", "value": {"name": "one", "more": None}},
        {"op": "test", "path": "", "value": {}},
        {"op": "test", "path": ""},
        {"op": "remove", "path": "/spec/absent"},
        {"op": "remove", "path": "/spec/absent/deeper"},
        {"op": "remove", "path": "/spec/size/deeper"},
        {"op": "remove", "path": "/spec/list/3"},
        {"op": "remove", "path": "/spec/list/-4"},
        {"op": "remove", "path": "/spec/list/-"},
        {"op": "remove", "path": "/spec/list/x"},
        {"op": "remove", "path": "/spec/list/1_0"},
        {"op": "remove", "path": f"/spec/list/{'9' * 5000}"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/spec/list/3", "value": "w"},
        {"op": "replace", "path": "", "value": "text"},
        {"op": "replace", "path": ""},
        {"op": "add", "path": "/spec/list/4", "value": "w"},
        {"op": "add", "path": "/spec/list/-5", "value": "w"},
        {"op": "add", "path": "/spec/gone/deeper", "value": "w"},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "name", "value": 1},
        {"op": "move", "from": "/spec/absent", "path": "/spec/b"},
        {"op": "move", "from": "/spec/items", "path": "/spec/items/0"},
        {"op": "copy", "from": "/spec/list/-", "path": "/spec/b"},
        {"op": "copy", "path": "/spec/b"},
        {"op": "add", "value": 1},
        {"op": "increment", "path": "/spec/size"},
        {"op": None, "path": None},
        {},
        None,
    ],
)
def test_an_operation_that_does_not_apply_is_refused(operation: JSONValue) -> None:
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, [operation])
    assert caught.value.body() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize(
    ("patch", "message", "found", "wanted"),
    [
        ({"op": "add"}, "object into Go value of type []handlers.jsonPatchOp", "object", "Patch"),
        ("x", "string into Go value of type []handlers.jsonPatchOp", "string", "Patch"),
        (5, "number into Go value of type []handlers.jsonPatchOp", "number", "Patch"),
        ([5, {"op": 1}], "number into Go value of type handlers.jsonPatchOp", "number", "Operation"),
        ([[]], "array into Go value of type handlers.jsonPatchOp", "array", "Operation"),
        ([{"from": False}, 5], "bool into Go struct field jsonPatchOp.from of type string", "number", "Operation"),
    ],
)
def test_a_malformed_patch_is_a_bad_request(patch: JSONValue, message: str, found: str, wanted: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, patch)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == f"error decoding patch: json: cannot unmarshal {message}"
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, patch, lenient=True)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == f"json: cannot unmarshal {found} into Go value of type jsonpatch.{wanted}"


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        ({"path": {}, "op": 5}, "object into Go struct field jsonPatchOp.path"),
        ({"op": 5}, "number into Go struct field jsonPatchOp.op"),
    ],
)
def test_a_malformed_operation_is_a_bad_request_or_when_lenient_does_not_apply(
    operation: JSONValue, field: str
) -> None:
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, [operation])
    assert caught.value.code == 400
    assert caught.value.message == f"error decoding patch: json: cannot unmarshal {field} of type string"
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, [operation], lenient=True)
    assert caught.value.code == 422


@pytest.mark.parametrize("patch", [None, []])
def test_no_operations_change_nothing(patch: JSONValue) -> None:
    assert apply_json_patch(DOCUMENT, patch) is DOCUMENT


def test_a_list_instead_of_the_object_is_invalid() -> None:
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, [{"op": "replace", "path": "", "value": [1, "<"]}])
    detail = (
        r"""couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type """
        r"""struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"""
    )
    value = r'"[1,\"\\u003c\"]"'
    assert caught.value.message == f' "" is invalid: patch: Invalid value: {value}: {detail}'
    assert caught.value.details == {
        "causes": [{"reason": "FieldValueInvalid", "message": f"Invalid value: {value}: {detail}", "field": "patch"}]
    }


def test_ten_thousand_operations_are_the_limit() -> None:
    test: JSONValue = {"op": "test", "path": "/spec/size", "value": 1}
    assert apply_json_patch(DOCUMENT, [test] * 10_000) is DOCUMENT
    with pytest.raises(StatusError) as caught:
        apply_json_patch(DOCUMENT, [test] * 10_001)
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")
    assert caught.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


@pytest.mark.parametrize(("character", "size"), [("x", 1), ("<", 6)])
def test_three_mebibytes_of_copies_are_the_limit(character: str, size: int) -> None:
    copies: list[JSONValue] = [{"op": "copy", "from": "/a", "path": "/b"}] * 3
    length = 1024 * 1024 // size
    text = character * length + "x" * (1024 * 1024 - length * size)
    assert apply_json_patch({"a": text[:-2]}, copies) == {"a": text[:-2], "b": text[:-2]}
    with pytest.raises(StatusError, match=r"^the server rejected our request"):
        apply_json_patch({"a": text}, copies)


def test_neither_document_nor_patch_is_changed_and_the_rest_is_shared() -> None:
    document = copy.deepcopy(DOCUMENT)
    patch: JSONValue = [
        {"op": "add", "path": "/spec/new", "value": {"inner": [1]}},
        {"op": "copy", "from": "/spec/new", "path": "/spec/second"},
        {"op": "add", "path": "/spec/new/inner/-", "value": 2},
        {"op": "add", "path": "/spec/second/inner/-", "value": 3},
        {"op": "move", "from": "/spec/list/0", "path": "/spec/items/0/name"},
        {"op": "add", "path": "/spec/items/0/more", "value": True},
    ]
    before = copy.deepcopy(patch)
    patched = apply_json_patch(document, patch)
    assert patched["spec"] == {
        "list": ["y", "z"],
        "items": [{"name": "x", "more": True}, {"name": "two"}],
        "size": 1,
        "gone": None,
        "new": {"inner": [1, 2]},
        "second": {"inner": [1, 3]},
    }
    assert (document, patch) == (DOCUMENT, before)
    assert patched["metadata"] is document["metadata"]


def test_unknown_fields_of_operations_are_named_in_their_order() -> None:
    patch: JSONValue = [{"op": "add", "foo": 1, "bar": 2}, None, {"Op": "add", "from": "", "value": {"x": 1}}]
    assert unknown_fields(patch) == [
        'json patch unknown field "[0].foo"',
        'json patch unknown field "[0].bar"',
        'json patch unknown field "[2].Op"',
    ]
    assert unknown_fields({"foo": 1}) == []
