from __future__ import annotations

import copy

import msgspec

from kubewright.api.codec import decode, encode, to_json
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.origin import merge_patch
from kubewright.api.resources import Object
from kubewright.client.patch import Change, JSONPatch, MergePatch, PatchFrom, StrategicMergePatch, locked, patch_from


def read(**more: JSONValue) -> ConfigMap:
    metadata = {"name": "settings", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "labels": {"a": "1"}}
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1", "y": "2"}, **more}
    return decode(ConfigMap, msgspec.json.encode(content))


def difference(obj: Object, base: Object) -> JSONObject:
    return Change.of(obj, base).patch()


def test_only_what_differs_is_in_the_patch() -> None:
    base = read()
    changed = copy.deepcopy(base)
    changed.data["x"] = "9"
    del changed.data["y"]
    changed.metadata.labels["b"] = "2"

    assert difference(changed, base) == {"metadata": {"labels": {"b": "2"}}, "data": {"x": "9", "y": None}}


def test_equal_objects_have_no_difference() -> None:
    base = read()

    assert difference(copy.deepcopy(base), base) == {}


def test_fields_set_by_the_server_are_no_difference() -> None:
    base = read()
    newer = copy.deepcopy(base)
    newer.metadata.resource_version = "8"
    newer.metadata.generation = 4
    newer.metadata.uid = "u-2"
    newer.metadata.deletion_grace_period_seconds = 30

    assert difference(newer, base) == {}


def test_fields_that_the_type_does_not_know_are_no_difference() -> None:
    base = read(novelty={"a": 1})
    changed = copy.deepcopy(base)
    changed.data["x"] = "9"

    assert difference(changed, base) == {"data": {"x": "9"}}


def test_a_change_knows_the_revision_of_the_base() -> None:
    base = read()
    changed = copy.deepcopy(base)
    changed.metadata.resource_version = "8"

    assert Change.of(changed, base).header.resource_version == "7"
    assert Change.of(changed).header.resource_version == "7"


def test_a_lock_is_put_beside_what_else_changes_in_the_metadata() -> None:
    assert locked({"metadata": {"labels": None}, "data": {"x": "9"}}, "7") == {
        "metadata": {"labels": None, "resourceVersion": "7"},
        "data": {"x": "9"},
    }
    assert locked({"status": {}}, "7") == {"status": {}, "metadata": {"resourceVersion": "7"}}


def test_a_change_is_made_again_on_the_current_object() -> None:
    base = read()
    changed = copy.deepcopy(base)
    changed.metadata.finalizers.append("ours")
    changed.data["x"] = "9"
    live = read(novelty={"a": 1})
    live.metadata.resource_version = "8"
    live.metadata.finalizers.append("theirs")
    live.data["y"] = "8"

    again = Change.of(changed, base).on(encode(live), ConfigMap, ["metadata", "data"])
    assert again.patch() == {"metadata": {"finalizers": ["ours", "theirs"]}, "data": {"x": "9"}}
    assert again.header.resource_version == "8"
    only_data = Change.of(changed, base).on(encode(live), ConfigMap, ["data"])
    assert only_data.patch() == {"data": {"x": "9"}}


def test_patch_from_keeps_the_base() -> None:
    base = ConfigMap(metadata=ObjectMeta(name="settings"))

    assert patch_from(base) == PatchFrom(base)


def test_objects_made_in_python_can_be_compared_too() -> None:
    base = ConfigMap(metadata=ObjectMeta(name="settings"), data={"x": "1"})
    changed = ConfigMap(metadata=ObjectMeta(name="settings"), data={"x": "1", "y": "2"})

    assert difference(changed, base) == {"data": {"y": "2"}}
    assert merge_patch(to_json(base), to_json(changed)) == difference(changed, base)


def test_each_patch_has_the_content_type_of_its_standard() -> None:
    assert MergePatch({}).content_type == "application/merge-patch+json"
    assert JSONPatch([]).content_type == "application/json-patch+json"
    assert StrategicMergePatch({}).content_type == "application/strategic-merge-patch+json"
