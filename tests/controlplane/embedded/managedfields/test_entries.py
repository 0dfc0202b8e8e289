from __future__ import annotations

import pytest

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.managedfields.entries import (
    FieldManager,
    capped,
    given_managers,
    is_reset,
    stored_managers,
    written,
)
from kubewright.controlplane.embedded.managedfields.fieldset import MalformedFields


def updater(name: str, time: str, version: str = "v1") -> FieldManager:
    return FieldManager(name, "Update", version, "", time, {"f:data": {f"f:{name}": {}}})


def test_entries_have_their_fields_in_order_and_only_those_that_are_set() -> None:
    (whole, bare) = written(
        [
            FieldManager("m", "Update", "v1", "status", "2024-01-01T00:00:00Z", {"f:a": {}}),
            FieldManager("a", "Apply", "v1", "", "", {"f:a": {}}),
        ]
    )[::-1]

    assert isinstance(whole, dict)
    assert isinstance(bare, dict)
    assert list(whole) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"]
    assert list(bare) == ["manager", "operation", "apiVersion", "fieldsType", "fieldsV1"]


def test_entries_are_sorted_by_operation_time_and_name() -> None:
    managers = [updater("b", "2"), updater("a", "2"), updater("c", "1"), FieldManager("z", "Apply", "v1", "", "9", {})]

    assert [entry.name for entry in stored_managers(written(managers)).values()] == ["z", "c", "a", "b"]


def test_an_applying_manager_is_one_in_all_versions_an_updating_one_is_not() -> None:
    applies = [FieldManager("m", "Apply", version, "", "", {}) for version in ("v1", "v2")]
    updates = [FieldManager("m", "Update", version, "", "", {}) for version in ("v1", "v2")]

    assert applies[0].identity == applies[1].identity
    assert updates[0].identity != updates[1].identity


def test_the_oldest_of_more_than_ten_updaters_are_put_together() -> None:
    managers = [updater(f"m{number:02}", f"2024-01-01T00:00:{number:02}Z") for number in range(12)]
    kept = capped({manager.identity: manager for manager in managers})

    assert len(kept) == 10
    bucket = kept["ancient-changes", "Update", "v1", ""]
    assert bucket.fields == {"f:data": {"f:m00": {}, "f:m01": {}, "f:m02": {}}}
    assert bucket.time == "2024-01-01T00:00:02Z"


def test_updaters_of_different_versions_are_not_put_together() -> None:
    managers = [updater("old", "0", "v0"), *(updater(f"m{number:02}", f"{number:02}") for number in range(10, 20))]
    kept = capped({manager.identity: manager for manager in managers})

    assert len(kept) == 10
    assert ("old", "Update", "v0", "") in kept


def test_appliers_do_not_count() -> None:
    managers = [FieldManager(f"m{number}", "Apply", "v1", "", "", {"f:a": {}}) for number in range(20)]

    assert len(capped({manager.identity: manager for manager in managers})) == 20


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], True),
        ([{}], True),
        ([{"manager": ""}], True),
        (None, False),
        ([{}, {}], False),
        ([{"manager": "m"}], False),
    ],
)
def test_an_empty_list_or_entry_resets_the_managers(entries: JSONValue, expected: bool) -> None:
    assert is_reset(entries) is expected


def test_times_that_clients_write_become_utc() -> None:
    entry: JSONValue = {
        "manager": "m",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "time": "2024-01-01T01:00:00+01:00",
    }
    (manager,) = given_managers([entry]).values()

    assert manager.time == "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "Create"},
        {"apiVersion": ""},
        {"fieldsType": ""},
        {"fieldsV1": {"a": {}}},
        {"time": "yesterday"},
    ],
)
def test_entries_that_are_not_right_are_refused(change: dict[str, JSONValue]) -> None:
    entry: dict[str, JSONValue] = {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", **change}

    with pytest.raises(MalformedFields):
        given_managers([entry])
