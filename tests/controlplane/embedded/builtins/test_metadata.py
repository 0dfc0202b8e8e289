from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.builtins.metadata import (
    validate_change,
    validate_metadata,
    validate_metadata_change,
    validate_metadata_update,
)


def complaints(obj: JSONObject, *, namespaced: bool = True) -> list[str]:
    return [str(error) for error in validate_metadata(obj, namespaced=namespaced)]


def changes(new: JSONObject, old: JSONObject) -> list[str]:
    return [str(error) for error in validate_metadata_change({"metadata": new}, {"metadata": old})]


def test_a_name_and_a_namespace_are_needed() -> None:
    assert complaints({}) == [
        "metadata.name: Required value: name or generateName is required",
        "metadata.namespace: Required value",
    ]


def test_objects_of_the_cluster_have_no_namespace() -> None:
    assert complaints({"metadata": {"name": "a", "namespace": "b"}}, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_the_rule_for_names_may_be_another() -> None:
    wrong = validate_metadata(
        {"metadata": {"name": "a"}}, namespaced=False, validate_name=lambda name: f"{name} is too short"
    )

    assert [str(error) for error in wrong] == ['metadata.name: Invalid value: "a": a is too short']


def test_a_prefix_may_end_with_a_dash() -> None:
    assert complaints({"metadata": {"generateName": "web-", "name": "web-abcde", "namespace": "a"}}) == []


def test_annotations_are_limited_in_size() -> None:
    metadata: JSONObject = {"name": "a", "annotations": {"a": "x" * 256 * 1024}}

    assert complaints({"metadata": metadata}, namespaced=False) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


def test_annotations_may_be_named_in_capitals() -> None:
    assert complaints({"metadata": {"name": "a", "annotations": {"Example.COM/X": ""}}}, namespaced=False) == []


def test_an_update_keeps_what_identifies_the_object() -> None:
    old: JSONObject = {"name": "a", "uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}

    assert changes(old, old) == []
    assert changes({**old, "uid": "2"}, old) == ['metadata.uid: Invalid value: "2": field is immutable']
    assert changes({"name": "a", "uid": "1"}, old) == [
        "metadata.creationTimestamp: Invalid value: null: field is immutable"
    ]


def test_finalizers_are_only_removed_once_an_object_is_deleted() -> None:
    old: JSONObject = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/a", "x/b"]}

    assert changes({**old, "finalizers": ["x/b"]}, old) == []
    assert changes({**old, "finalizers": ["x/a", "x/d", "x/c"]}, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x/c", "x/d"}'
    ]


def test_an_update_is_judged_by_the_rules_of_a_creation_as_well() -> None:
    new: JSONObject = {"metadata": {"name": "a", "labels": {"tier": "not a value"}, "finalizers": ["not a name"]}}
    old: JSONObject = {"metadata": {"name": "a"}}

    assert [error.field for error in validate_metadata_update(new, old)] == [
        "metadata.labels",
        "metadata.finalizers",
        "metadata.labels",
    ]


def test_what_was_wrong_before_is_not_judged_again() -> None:
    wrong: JSONObject = {"metadata": {"name": "a", "labels": {"tier": "not a value"}, "finalizers": ["short"]}}

    assert validate_metadata_update(wrong, wrong) == []
    assert validate_change(wrong, wrong) == []


def test_finalizers_of_built_in_kinds_need_a_domain() -> None:
    old: JSONObject = {"metadata": {"name": "a"}}
    new: JSONObject = {"metadata": {"name": "a", "finalizers": ["example.com/one", "short", "orphan"]}}

    assert [str(error) for error in validate_change(new, old)] == [
        'metadata.finalizers[1]: Invalid value: "short": '
        "name is neither a standard finalizer name nor is it fully qualified"
    ]
