from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, copied_object, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.apimachinery.structure import SchemaStructure, Structure, structure_of
from kubewright.controlplane.embedded.managedfields import apply, track_update

CONFIG_MAP = structure_of(ConfigMap)
EARLY, LATE = "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config_map(data: JSONValue, **metadata: JSONValue) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}, "data": data}


def thing(**spec: JSONValue) -> JSONObject:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


def applied(
    live: JSONObject | None,
    patch: JSONObject,
    manager: str = "m",
    *,
    force: bool = False,
    time: str = EARLY,
    subresource: str = "",
    structure: Structure = CONFIG_MAP,
    reset: Sequence[Sequence[str]] = (),
) -> JSONObject:
    return apply(
        live,
        patch,
        manager=manager,
        force=force,
        api_version=text(patch, "apiVersion"),
        subresource=subresource,
        time=time,
        structure=structure,
        reset=reset,
    )


def updated(live: JSONObject | None, new: JSONObject, manager: str) -> JSONObject:
    track_update(live, new, manager=manager, api_version="v1", subresource="", time=EARLY, structure=CONFIG_MAP)
    return new


def managed(obj: JSONObject) -> dict[str, JSONValue]:
    entries = at(obj, "metadata", "managedFields") or []
    assert isinstance(entries, list)
    return {str(at(entry, "manager")): at(entry, "fieldsV1") for entry in entries}


def test_what_is_applied_first_is_the_object() -> None:
    result = applied(None, config_map({"a": "1"}))

    assert result["data"] == {"a": "1"}
    assert managed(result) == {"m": {"f:data": {"f:a": {}}}}


def test_fields_no_longer_applied_are_removed_unless_others_manage_them() -> None:
    first = applied(None, config_map({"a": "1", "b": "2", "c": "3"}), "one")
    second = applied(first, config_map({"b": "2"}), "two")
    third = applied(second, config_map({"a": "1"}), "one", time=LATE)

    assert third["data"] == {"a": "1", "b": "2"}
    assert managed(third) == {"one": {"f:data": {"f:a": {}}}, "two": {"f:data": {"f:b": {}}}}


def test_nothing_applied_any_more_means_no_entry() -> None:
    first = applied(None, config_map({"a": "1"}))
    bare: JSONObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}

    assert applied(first, bare) == bare


def test_another_value_of_a_field_that_another_manages_is_a_conflict() -> None:
    live = applied(None, config_map({"a": "1"}), "one")
    with pytest.raises(StatusError) as refused:
        applied(live, config_map({"a": "2"}), "two")

    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert refused.value.details == {
        "causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(None, config_map({"a": "1", "b": "1", "c": "1"}), "one")
    live = applied(live, config_map({"c": "1"}), "zwei")
    with pytest.raises(StatusError) as refused:
        applied(live, config_map({"a": "2", "b": "2", "c": "2"}), "two")

    assert refused.value.message == (
        'Apply failed with 4 conflicts: conflicts with "one" using v1:\n- .data.a\n- .data.b\n- .data.c\n'
        'conflicts with "zwei":\n- .data.c'
    )


def test_the_same_value_is_managed_together() -> None:
    live = applied(None, config_map({"a": "1"}), "one")

    assert managed(applied(live, config_map({"a": "1"}), "two")) == {
        "one": {"f:data": {"f:a": {}}},
        "two": {"f:data": {"f:a": {}}},
    }


def test_force_takes_the_field() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}), "one")
    result = applied(live, config_map({"a": "2"}), "two", force=True)

    assert result["data"] == {"a": "2", "b": "1"}
    assert managed(result) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


def test_an_apply_that_changes_nothing_leaves_its_time() -> None:
    first = applied(None, config_map({"a": "1"}), "one", time=EARLY)
    again = applied(first, config_map({"a": "1"}), "one", time=LATE)
    other = applied(first, config_map({"a": "1"}), "two", time=LATE)

    assert again == first
    assert [at(entry, "time") for entry in _entries(other)] == [None, EARLY]


def _entries(obj: JSONObject) -> list[JSONValue]:
    entries = at(obj, "metadata", "managedFields")
    assert isinstance(entries, list)
    return entries


def test_objects_without_managers_belong_to_before_first_apply() -> None:
    live: JSONObject = {"metadata": {"name": "x", "uid": "u"}, "data": {"a": "1"}}

    assert managed(applied(live, config_map({"b": "1"}))) == {
        "before-first-apply": {"f:data": {".": {}, "f:a": {}}},
        "m": {"f:data": {"f:b": {}}},
    }


def test_the_result_shares_nothing_with_what_is_stored() -> None:
    live = applied(None, config_map({"a": "1"}, labels={"l": "1"}))
    before = copied_object(live)
    result = applied(live, config_map({"a": "1"}, labels={"l": "1"}))
    data, labels = result["data"], at(result, "metadata", "labels")
    assert isinstance(data, dict)
    assert isinstance(labels, dict)
    data["new"], labels["new"] = "1", "1"

    assert live == before


def test_items_of_lists_are_managed_one_by_one(things: SchemaStructure) -> None:
    one = applied(None, thing(parts=[{"name": "a", "value": "1"}, {"name": "b"}]), "one", structure=things)
    both = applied(one, thing(parts=[{"name": "c"}, {"name": "a"}]), "two", structure=things)
    assert at(both, "spec", "parts") == [{"name": "c"}, {"name": "a", "value": "1"}, {"name": "b"}]

    left = applied(both, thing(parts=[{"name": "a", "value": "1"}]), "one", structure=things)
    assert at(left, "spec", "parts") == [{"name": "c"}, {"name": "a", "value": "1"}]


def test_defaults_of_keys_identify_items(things: SchemaStructure) -> None:
    live: JSONObject = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}
    result = applied(live, thing(ports=[{"port": 80, "name": "web"}]), structure=things)

    assert at(result, "spec", "ports") == [{"port": 80, "protocol": "TCP", "name": "web"}]


def test_each_subresource_has_its_own_applier(things: SchemaStructure) -> None:
    live = applied(None, thing(text="1"), structure=things, reset=[["status"]])
    patch: JSONObject = {**thing(text="2"), "status": {"phase": "on"}}
    result = applied(live, patch, subresource="status", structure=things, reset=[["metadata"], ["spec"]])

    main, status = _entries(result)
    assert at(main, "fieldsV1") == {"f:spec": {"f:text": {}}}
    assert at(status, "fieldsV1") == {"f:status": {"f:phase": {}}}
    assert at(status, "subresource") == "status"


def test_a_manager_that_applies_in_another_version_is_the_same(things: SchemaStructure) -> None:
    first = applied(None, thing(text="1", number=1), "one", structure=things)
    second = apply(
        first,
        {**thing(number=1), "apiVersion": "example.com/v2"},
        manager="one",
        force=False,
        api_version="example.com/v2",
        subresource="",
        time=LATE,
        structure=things,
        versions={"example.com/v1": things},
    )

    assert second["spec"] == {"number": 1}
    assert [at(entry, "apiVersion") for entry in _entries(second)] == ["example.com/v2"]


@pytest.mark.parametrize("managers", [[], [{}], "x"])
def test_managed_fields_may_not_be_applied(managers: JSONValue) -> None:
    with pytest.raises(StatusError, match=r"^metadata\.managedFields must be nil$") as refused:
        applied(None, config_map({}, managedFields=managers))

    assert refused.value.code == 400


def test_a_value_that_cannot_be_merged_is_an_error_that_names_object_and_field() -> None:
    with pytest.raises(StatusError) as refused:
        applied(None, {**config_map({}, namespace="n"), "foo": 1})

    assert (refused.value.code, refused.value.reason) == (500, "")
    assert refused.value.message == (
        "failed to create typed patch object (n/x; /v1, Kind=ConfigMap): .foo: field not declared in schema"
    )


def client_side(data: JSONObject) -> JSONObject:
    """An object that kubectl applied on the client's side."""
    last = json.dumps(config_map(data))
    created = updated(None, config_map(dict(data), annotations={LAST_APPLIED: last}), "kubectl-client-side-apply")
    metadata = created["metadata"]
    assert isinstance(metadata, dict)
    metadata["uid"] = "u"
    return created


def test_kubectl_takes_over_fields_from_client_side_apply() -> None:
    result = applied(client_side({"a": "1"}), config_map({"a": "<2>"}), "kubectl")

    assert result["data"] == {"a": "<2>"}
    annotation = at(result, "metadata", "annotations", LAST_APPLIED)
    assert annotation == (
        '{"apiVersion":"v1","data":{"a":"\\u003c2\\u003e"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    )


def test_kubectl_does_not_take_over_fields_changed_since() -> None:
    live = client_side({"a": "1", "b": "1"})
    changed = updated(live, {**copied_object(live), "data": {"a": "1", "b": "9"}}, "editor")
    with pytest.raises(StatusError) as refused:
        applied(changed, config_map({"a": "2", "b": "2"}), "kubectl")

    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.b'


def test_others_get_no_such_favour() -> None:
    with pytest.raises(StatusError, match="kubectl-client-side-apply"):
        applied(client_side({"a": "1"}), config_map({"a": "2"}), "other")


@pytest.mark.parametrize("last", ["", "no json", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","foo":1}'])
def test_an_unusable_annotation_does_not_avoid_the_conflict(last: str) -> None:
    live = client_side({"a": "1"})
    annotations = at(live, "metadata", "annotations")
    assert isinstance(annotations, dict)
    annotations[LAST_APPLIED] = last
    with pytest.raises(StatusError, match="conflict"):
        applied(live, config_map({"a": "2"}), "kubectl")


def test_an_annotation_that_grows_too_large_is_removed() -> None:
    result = applied(client_side({"a": "1"}), config_map({"a": "x" * 262_144}), "kubectl")

    assert at(result, "metadata", "annotations") == {}
