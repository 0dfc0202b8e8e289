"""The expectations are what kube-apiserver v1.36.4 made of the same patches."""

from __future__ import annotations

import copy

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import ConfigMap, Pod, Service
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.patch.strategic import apply_strategic_patch

POD = structure_of(Pod)


def named(*names: str) -> list[JSONValue]:
    return [{"name": name} for name in names]


def container_names(original: list[JSONValue], patch: JSONObject) -> list[str]:
    """The names of the containers, in their order, after a patch of the pod's spec."""
    patched = apply_strategic_patch({"spec": {"containers": original}}, {"spec": patch}, POD)
    return [text(container, "name") for container in items(patched, "spec", "containers")]


def finalizers(original: list[JSONValue], patch: JSONObject) -> JSONValue:
    """The finalizers, a merged list of strings, after a patch of the metadata."""
    patched = apply_strategic_patch({"metadata": {"finalizers": original}}, {"metadata": patch}, POD)
    metadata = patched["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("finalizers")


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "3", "b": None, "c": "4"}}, {"data": {"a": "3", "c": "4"}}),
        ({"data": {"a": "1"}}, {"data": {"$patch": "replace", "b": "2"}}, {"data": {"b": "2"}}),
        ({"data": {"a": "1"}}, {"data": {"$patch": "delete", "b": "2"}}, {"data": {}}),
        ({}, {"data": {"$patch": "delete"}}, {}),
        ({}, {"data": {"$patch": "replace", "b": "2"}}, {}),
        ({"data": None}, {"data": {"a": "1"}}, {"data": {"a": "1"}}),
        ({"data": {"a": "1"}}, {"data": None}, {}),
        ({"data": {"a": "1"}}, None, {"data": {"a": "1"}}),
        ({"data": {"a": "1"}}, {"$patch": "replace", "immutable": True}, {"immutable": True}),
        ({"immutable": True}, {"immutable": False}, {"immutable": False}),
        ({}, {"data": {"a": None, "b": {"$patch": "delete"}}}, {"data": {}}),
        ({}, {"data": {"a": [{"$patch": "delete"}, {"x": None}]}}, {"data": {"a": [{}]}}),
        ({"data": {"a": "1", "b": "2"}}, {"data": {"$retainKeys": ["b", "c"], "c": ""}}, {"data": {"b": "2", "c": ""}}),
        ({"data": {"a": "1"}}, {"data": {"$retainKeys": ["a"], "z": None}}, {"data": {"a": "1"}}),
    ],
)
def test_objects_merge_and_follow_their_directives(
    document: JSONObject, patch: JSONValue, expected: JSONObject
) -> None:
    before = copy.deepcopy((document, patch))
    assert apply_strategic_patch(document, patch, structure_of(ConfigMap)) == expected
    assert (document, patch) == before


def test_items_are_merged_by_their_key() -> None:
    document: JSONObject = {
        "spec": {
            "containers": [
                {"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]},
                {"name": "b", "image": "x", "args": ["1", "2"]},
            ],
        }
    }
    patch: JSONValue = {
        "spec": {
            "containers": [
                {"name": "a", "env": [{"name": "F", "value": "3"}, {"name": "E", "$patch": "delete"}]},
                {"name": "b", "image": "y", "args": ["3"]},
            ]
        }
    }
    before = copy.deepcopy((document, patch))
    assert apply_strategic_patch(document, patch, POD) == {
        "spec": {
            "containers": [
                {"name": "a", "image": "x", "env": [{"name": "F", "value": "3"}]},
                {"name": "b", "image": "y", "args": ["3"]},
            ]
        }
    }
    assert (document, patch) == before


def test_parts_that_the_patch_does_not_name_are_shared() -> None:
    document: JSONObject = {"metadata": {"name": "p"}, "spec": {"containers": named("a", "b")}}
    patched = apply_strategic_patch(document, {"spec": {"containers": [{"name": "a", "image": "x"}]}}, POD)
    assert patched["metadata"] is document["metadata"]
    assert items(patched, "spec", "containers")[1] is items(document, "spec", "containers")[1]


def test_a_merge_key_may_be_a_number_and_has_to_be_of_the_same_type() -> None:
    document: JSONObject = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    patch: JSONValue = {"spec": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 80.0}]}}
    patched = apply_strategic_patch(document, patch, structure_of(Service))
    assert patched["spec"] == {"ports": [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 80.0}]}


def test_the_first_of_several_items_with_the_key_is_merged() -> None:
    document: JSONObject = {
        "spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 80}, {"port": 53, "protocol": "TCP"}]}
    }
    patch: JSONValue = {"spec": {"ports": [{"port": 53, "name": "dns"}]}}
    patched = apply_strategic_patch(document, patch, structure_of(Service))
    assert patched["spec"] == {
        "ports": [{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 53, "protocol": "TCP"}, {"port": 80}]
    }


def test_a_list_without_strategy_is_replaced() -> None:
    document: JSONObject = {"spec": {"tolerations": [{"key": "a"}], "x": 1}}
    patched = apply_strategic_patch(document, {"spec": {"tolerations": [{"key": "b"}]}}, POD)
    assert patched == {"spec": {"tolerations": [{"key": "b"}], "x": 1}}


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ("abc", {"containers": named("c")}, "abc"),
        ("abc", {"containers": named("c", "a")}, "bca"),
        ("abc", {"containers": named("x")}, "xabc"),
        ("abc", {"containers": named("x", "b")}, "xabc"),
        ("abc", {"containers": named("b", "x")}, "abxc"),
        ("abc", {"containers": [{"name": "b", "$patch": "delete"}, {"name": "x"}]}, "xac"),
        ("abc", {"containers": [{"$patch": "replace"}, {"name": "x"}, {"name": "b"}]}, "xb"),
        ("abc", {"containers": [{"$patch": "replace"}]}, ""),
        ("abc", {"containers": []}, "abc"),
        ("", {"containers": [{"name": "x"}]}, "x"),
        ("abc", {"$setElementOrder/containers": named("c", "b", "a")}, "cba"),
        ("abc", {"$setElementOrder/containers": named("c", "a")}, "bca"),
        ("abc", {"$setElementOrder/containers": []}, "abc"),
        ("abc", {"$setElementOrder/containers": named("b", "x", "a"), "containers": named("x")}, "bxac"),
        (
            "abc",
            {
                "$setElementOrder/containers": named("c", "x"),
                "containers": [{"name": "x"}, {"name": "a", "$patch": "delete"}],
            },
            "bcx",
        ),
        (
            "ab",
            {
                "$setElementOrder/containers": named("x"),
                "containers": [{"name": "a", "$patch": "delete"}, {"name": "x"}],
            },
            "bx",
        ),
        ("", {"$setElementOrder/containers": named("y", "x"), "containers": named("y", "x")}, "yx"),
        ("abc", {"$setElementOrder/containers": [], "containers": named("x", "y")}, "abcyx"),
    ],
)
def test_merged_items_are_in_the_order_of_the_real_server(original: str, patch: JSONObject, expected: str) -> None:
    assert "".join(container_names(named(*original), patch)) == expected


def test_an_ordered_list_may_be_new() -> None:
    patch: JSONValue = {
        "spec": {
            "$setElementOrder/containers": named("b", "a", "z"),
            "$setElementOrder/volumes": named("v"),
            "containers": [{"name": "b"}, {"name": "a", "image": None}, {"$patch": "delete"}, {"$patch": "x"}],
        }
    }
    patched = apply_strategic_patch({"spec": {}}, patch, POD)
    assert patched == {"spec": {"containers": [{"name": "b"}, {"name": "a", "image": None}]}}


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        (["a", "b"], {"finalizers": ["c", "b"]}, ["c", "a", "b"]),
        (["a", "b"], {"finalizers": ["c", "c"]}, ["c", "a", "b"]),
        (["a", "b"], {"finalizers": []}, ["a", "b"]),
        ([], {"finalizers": []}, []),
        (["a", "b"], {"finalizers": None}, None),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}, ["b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a", "b"]}, []),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": "a"}, ["a", "b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": None}, None),
        (["a", "b"], {"$deleteFromPrimitiveList/absent": ["a"], "$deleteFromPrimitiveList/": ["a"]}, ["a", "b"]),
        (["a", "b", "c"], {"$setElementOrder/finalizers": ["c", "a"]}, ["b", "c", "a"]),
        (
            ["a", "b"],
            {
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["c", "b"],
                "finalizers": ["c"],
            },
            ["c", "b"],
        ),
    ],
)
def test_lists_of_strings_are_merged_as_sets(original: list[JSONValue], patch: JSONObject, expected: JSONValue) -> None:
    assert finalizers(original, patch) == expected


def test_retained_keys_switch_between_alternatives() -> None:
    """What `kubectl apply` sends when a deployment's strategy changes from RollingUpdate to Recreate."""
    document: JSONObject = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch: JSONValue = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert apply_strategic_patch(document, patch, structure_of(Deployment)) == {
        "spec": {"strategy": {"type": "Recreate"}}
    }


def test_an_item_new_to_a_list_keeps_nulls_and_directives() -> None:
    new: JSONObject = {"name": "b", "image": None, "$retainKeys": ["name"]}
    patched = apply_strategic_patch({"spec": {"containers": named("a")}}, {"spec": {"containers": [new]}}, POD)
    assert items(patched, "spec", "containers") == [new, {"name": "a"}]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"containers": [{"image": "x"}]}, "map: map[image:x] does not contain declared merge key: name"),
        ({"containers": [{"$patch": "delete"}]}, "map: map[$patch:delete] does not contain declared merge key: name"),
        ({"containers": ["x"]}, "list element types are not identical: [[map[name:a] map[name:b]] [x]]"),
        ({"containers": [None]}, "list element types are not identical: [[map[name:a] map[name:b]] [<nil>]]"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"containers": [{"name": "a", "$patch": "x"}]}, "unknown patch type: x in map: map[$patch:x name:a]"),
        ({"containers": [{"$patch": None}]}, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"),
        ({"$patch": "merge", "a": 1}, "unknown patch type: merge in map: map[$patch:merge a:1]"),
        ({"$patch": 5}, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        ({"$setElementOrder/containers": None}, "expected a []interface {}, but received a %!s(<nil>)"),
        (
            {"$setElementOrder/containers": [], "containers": {}},
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            {"$setElementOrder/containers": ["a"], "containers": named("a")},
            "expected a map[string]interface {}, but received a string",
        ),
        (
            {"$setElementOrder/containers": named("a"), "containers": ["a"]},
            "expected a map[string]interface {}, but received a string",
        ),
        ({"$setElementOrder/containers": [{}]}, "map: map[] does not contain declared merge key: name"),
        ({"$setElementOrder/nodeName": []}, "expected slice or array type, but got: struct"),
        ({"$setElementOrder/volumes": [], "volumes": []}, "no elements in any of the given slices"),
        (
            {"$setElementOrder/containers": named("b", "a"), "containers": named("a", "b")},
            "The order in patch list:\n[map[name:a] map[name:b]]\n "
            "doesn't match $setElementOrder list:\n[map[name:b] map[name:a]]\n",
        ),
        (
            {"$setElementOrder/containers": named("a"), "containers": [{"name": "a"}, {"$patch": "replace"}]},
            "The order in patch list:\n[map[name:a] map[$patch:replace]]\n "
            "doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
    ],
)
def test_most_malformed_patches_are_errors_of_the_server(spec: JSONObject, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        container_names(named("a", "b"), spec)
    assert caught.value.body() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "code": 500,
    }


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        ({"spec": {"$retainKeys": "a"}}, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "containers": []}}, "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrder": []}}, "invalid patch format of setElementOrder list"),
        ({"spec": {"$setElementOrders/containers": []}}, "invalid patch format of setElementOrder list"),
        ({"spec": {"$deleteFromPrimitiveList": []}}, "invalid patch format of primitive list"),
    ],
)
def test_the_other_malformed_patches_are_bad_requests(patch: JSONValue, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        apply_strategic_patch({"spec": {"containers": named("a")}}, patch, POD)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (400, "BadRequest", message)


def test_a_null_instead_of_the_first_item_is_a_bad_request() -> None:
    """kube-apiserver panics and drops the connection."""
    with pytest.raises(StatusError) as caught:
        finalizers([], {"finalizers": [None]})
    assert (caught.value.code, caught.value.message) == (400, "invalid JSON document")


def test_lists_of_lists_are_not_merged() -> None:
    with pytest.raises(StatusError) as caught:
        finalizers([], {"finalizers": [["a"]]})
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_objects_are_not_merged_into_a_list_of_strings() -> None:
    with pytest.raises(StatusError, match=r"^cannot merge lists without merge key for string$"):
        finalizers([], {"finalizers": [{"a": "b"}]})


def test_below_a_map_nothing_but_scalars_is_merged() -> None:
    document: JSONObject = {"metadata": {"labels": {"a": {"b": "1"}}}}
    with pytest.raises(StatusError, match=r"^merging an object in json but data type is not struct, instead is: map$"):
        apply_strategic_patch(document, {"metadata": {"labels": {"a": {"b": "2"}}}}, POD)


def test_a_field_that_the_kind_does_not_have_cannot_be_merged() -> None:
    with pytest.raises(StatusError, match=r'for the json field "bogus"$'):
        apply_strategic_patch({"spec": {}}, {"spec": {"$setElementOrder/bogus": []}}, POD)
