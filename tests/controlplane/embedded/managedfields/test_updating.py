from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure, Structure, structure_of
from kubewright.controlplane.embedded.managedfields import empty_object, same_but_for_times, track_update

CONFIG_MAP = structure_of(ConfigMap)
EARLY, LATE = "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"


def config_map(data: JSONObject, **metadata: JSONValue) -> JSONObject:
    return {"metadata": {"name": "x", **metadata}, "data": data}


def track(
    old: JSONObject | None,
    new: JSONObject,
    manager: str = "m",
    *,
    time: str = EARLY,
    subresource: str = "",
    structure: Structure = CONFIG_MAP,
    reset: Sequence[Sequence[str]] = (),
) -> JSONObject:
    """The object after the write, with a uid as a stored one has."""
    version = "example.com/v1" if isinstance(structure, SchemaStructure) else "v1"
    track_update(
        old,
        new,
        manager=manager,
        api_version=version,
        subresource=subresource,
        time=time,
        structure=structure,
        reset=reset,
    )
    stored = copied_object(new)
    metadata = stored["metadata"]
    assert isinstance(metadata, dict)
    metadata["uid"] = "u"
    return stored


def managed(obj: JSONObject) -> dict[str, JSONValue]:
    """The fields by manager."""
    entries = at(obj, "metadata", "managedFields") or []
    assert isinstance(entries, list)
    return {str(at(entry, "manager")): at(entry, "fieldsV1") for entry in entries}


def test_the_creator_manages_everything_but_what_the_server_sets() -> None:
    created = track(None, config_map({"a": "1"}, labels={"l": "1"}, namespace="n", generation=1))

    assert managed(created) == {"m": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}}}


def test_structs_that_always_exist_are_not_managed_by_the_creator() -> None:
    new: JSONObject = {
        "metadata": {"name": "x"},
        "spec": {"replicas": 1, "strategy": {"type": "Recreate"}},
        "status": {},
    }
    track_update(
        None,
        new,
        manager="m",
        api_version="apps/v1",
        subresource="",
        time=EARLY,
        structure=structure_of(Deployment),
        empty=empty_object(Deployment),
    )

    assert managed(new) == {"m": {"f:spec": {"f:replicas": {}, "f:strategy": {"f:type": {}}}}}


def test_a_new_value_takes_the_field_from_others() -> None:
    created = track(None, config_map({"a": "1", "b": "1"}), "one")
    changed = track(created, config_map({"a": "2", "b": "1"}), "two", time=LATE)

    assert managed(changed) == {"one": {"f:data": {".": {}, "f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_a_second_update_of_a_manager_joins_its_entry() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    second = track(created, config_map({"a": "1", "b": "1"}), "two")
    third = track(second, config_map({"a": "1", "b": "1", "c": "1"}), "two", time=LATE)

    assert managed(third)["two"] == {"f:data": {"f:b": {}, "f:c": {}}}
    assert [at(entry, "time") for entry in _entries(third)] == [EARLY, LATE]


def _entries(obj: JSONObject) -> list[JSONValue]:
    entries = at(obj, "metadata", "managedFields")
    assert isinstance(entries, list)
    return entries


def test_removed_fields_leave_every_set_and_managers_without_fields_go() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    second = track(created, config_map({"a": "1", "b": "1"}), "two")
    third = track(second, config_map({"a": "1"}), "three")

    assert managed(third) == {"one": {"f:data": {".": {}, "f:a": {}}}}


def test_a_write_of_nothing_changes_no_entry() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    again = track(created, config_map({"a": "1"}), "two", time=LATE)

    assert again == created


def test_managers_are_distinguished_by_subresource(things: SchemaStructure) -> None:
    created = track(None, {"metadata": {"name": "x"}, "spec": {"text": "1"}}, structure=things, reset=[["status"]])
    status: JSONObject = {"metadata": {"name": "y"}, "spec": {"text": "2"}, "status": {"phase": "on"}}
    changed = track(created, status, subresource="status", structure=things, reset=[["metadata"], ["spec"]])

    first, second = _entries(changed)
    assert at(first, "fieldsV1") == {"f:spec": {".": {}, "f:text": {}}}
    assert at(second, "fieldsV1") == {"f:status": {".": {}, "f:phase": {}}}
    assert at(second, "subresource") == "status"


def test_fields_that_the_endpoint_resets_are_not_tracked(things: SchemaStructure) -> None:
    new: JSONObject = {"metadata": {"name": "x"}, "spec": {"text": "1"}, "status": {"phase": "on"}}

    assert managed(track(None, new, structure=things, reset=[["status"]])) == {"m": {"f:spec": {".": {}, "f:text": {}}}}


def test_a_client_that_omits_managed_fields_does_not_remove_them() -> None:
    created = track(None, config_map({"a": "1"}), "one")

    assert managed(track(created, config_map({"a": "1", "b": "1"}), "two"))["one"] == {"f:data": {".": {}, "f:a": {}}}


def test_an_empty_list_forgets_all_managers_for_good() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    forgotten = track(created, config_map({"a": "2"}, managedFields=[]), "two")
    later = track(forgotten, config_map({"a": "3"}), "two")

    assert managed(forgotten) == {}
    assert later["metadata"] == {"name": "x", "uid": "u"}


def test_managers_may_be_edited_but_not_through_a_subresource() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    entry: JSONValue = {
        "manager": "edited",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }

    assert set(managed(track(created, config_map({"a": "1"}, managedFields=[entry])))) == {"edited"}
    assert set(managed(track(created, config_map({"a": "1"}, managedFields=[entry]), subresource="status"))) == {"one"}


def test_managers_that_make_no_sense_are_ignored() -> None:
    created = track(None, config_map({"a": "1"}), "one")

    assert set(managed(track(created, config_map({"a": "1"}, managedFields=[{"manager": "x"}])))) == {"one"}


def test_a_manager_without_name_is_unknown() -> None:
    assert set(managed(track(None, config_map({"a": "1"}), ""))) == {"unknown"}


def test_entries_of_versions_that_are_gone_are_dropped() -> None:
    created = track(None, config_map({"a": "1"}), "one")
    entry = _entries(created)[0]
    assert isinstance(entry, dict)
    entry["apiVersion"] = "v0"

    assert set(managed(track(created, config_map({"a": "1", "b": "1"}), "two"))) == {"two"}


def test_a_value_that_became_atomic_is_managed_as_a_whole(things: SchemaStructure) -> None:
    created = track(None, {"metadata": {"name": "x"}, "spec": {"atomicMap": {"a": "1"}}}, structure=things)
    entry = _entries(created)[0]
    assert isinstance(entry, dict)
    entry["fieldsV1"] = {"f:spec": {"f:atomicMap": {"f:a": {}}}}
    new: JSONObject = {"metadata": {"name": "x"}, "spec": {"atomicMap": {"a": "1"}, "text": "1"}}

    assert managed(track(created, new, "two", structure=things))["m"] == {"f:spec": {"f:atomicMap": {}}}


def test_an_object_that_cannot_be_tracked_has_no_managed_fields(things: SchemaStructure) -> None:
    new: JSONObject = {"metadata": {"name": "x"}, "spec": {"parts": [{"value": "no name"}]}}

    assert managed(track(None, new, structure=things)) == {}


def test_times_of_entries_are_no_difference() -> None:
    one = track(None, config_map({"a": "1"}), time=EARLY)
    other = track(None, config_map({"a": "1"}), time=LATE)

    assert same_but_for_times(one, other)
    assert not same_but_for_times(one, track(None, config_map({"a": "1"}), "another"))
    assert not same_but_for_times(one, track(None, config_map({"a": "2"})))
    assert not same_but_for_times(one, track(None, config_map({"a": "1"}, labels={})))
    assert not same_but_for_times(one, {**one, "immutable": True})
