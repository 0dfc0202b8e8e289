from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"


async def test_a_name_that_is_being_deleted_is_taken(send: Send) -> None:
    held: JSONObject = {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}
    await send("POST", CONFIG_MAPS, held)
    await send("DELETE", f"{CONFIG_MAPS}/a")

    status, refused = await send("POST", CONFIG_MAPS, held)

    assert (status, refused["reason"]) == (409, "AlreadyExists")
    assert refused["message"] == 'object is being deleted: configmaps "a" already exists'


async def test_removing_the_last_finalizer_returns_the_revision_before(send: Send) -> None:
    """Only watchers get the revision of the deletion."""
    await send("POST", CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    _, marked = await send("DELETE", f"{CONFIG_MAPS}/a")

    _, last = await send("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, patch="merge")

    assert text(last, "metadata", "resourceVersion") == text(marked, "metadata", "resourceVersion")
    assert (await send("GET", f"{CONFIG_MAPS}/a"))[0] == 404


async def test_a_dry_run_that_would_create_keeps_the_revision_it_was_sent(send: Send) -> None:
    spec: JSONObject = {"ports": [{"port": 80}]}

    status, shown = await send(
        "PUT", f"{SERVICES}/a?dryRun=All", {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": spec}
    )

    assert (status, text(shown, "metadata", "resourceVersion")) == (201, "7")


async def test_an_update_of_a_custom_resource_without_a_revision_is_reported_with_the_resource(
    send: Send, gears: str
) -> None:
    gear: JSONObject = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}}
    await send("POST", gears, gear)

    status, refused = await send("PUT", f"{gears}/a", gear)

    assert status == 422
    assert refused["message"] == (
        'gears.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )


async def test_a_body_that_cannot_be_decoded_is_refused_before_the_object_is_read(send: Send) -> None:
    status, refused = await send(
        "PUT", "/api/v1/namespaces/default/secrets/a", {"metadata": {"name": "a"}, "data": {"a": "not base64"}}
    )

    assert status == 400
    assert "illegal base64 data" in text(refused, "message")


async def test_a_service_that_comes_to_be_by_its_status_gets_no_address(send: Send) -> None:
    service: JSONObject = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}

    status, created = await send("PUT", f"{SERVICES}/a/status", service)

    assert status == 201
    assert "clusterIP" not in mapping(created, "spec")


@pytest.mark.parametrize(("kind", "field"), [("configmaps", "binaryData"), ("secrets", "data")])
async def test_an_empty_map_of_bytes_is_a_change_of_an_immutable_object_that_has_none(
    send: Send, kind: str, field: str
) -> None:
    """Not so with texts: none and an empty map of them are the same."""
    path, locked = f"/api/v1/namespaces/default/{kind}", {"metadata": {"name": "a"}, "immutable": True}
    await send("POST", path, locked)

    assert (await send("PUT", f"{path}/a", locked))[0] == 200
    assert (await send("PUT", f"{path}/a", {**locked, "stringData" if kind == "secrets" else "data": {}}))[0] == 200
    status, refused = await send("PUT", f"{path}/a", {**locked, field: {}})

    assert status == 422
    assert [text(cause, "field") for cause in items(refused, "details", "causes")] == [field]


async def test_one_mistake_in_metadata_has_a_cause_for_each_time_it_is_validated(send: Send) -> None:
    """By the rules of a creation, of an update, of an update of a config map, and of a new config map."""
    await send("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})

    _, refused = await send("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "labels": {"tier": "not a value"}}})

    assert [text(cause, "field") for cause in items(refused, "details", "causes")] == ["metadata.labels"] * 4
    assert text(refused, "message").count("metadata.labels") == 1


async def test_a_status_that_comes_with_a_spec_of_the_wrong_type_makes_managers_forgotten(
    send: Send, gears: str
) -> None:
    """The spec is no matter to the status, but field ownership cannot be computed any more."""
    gear: JSONObject = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}}
    _, created = await send("POST", gears, {**gear, "spec": {"size": 1}})
    metadata = {"name": "a", "resourceVersion": text(created, "metadata", "resourceVersion")}

    status, changed = await send(
        "PUT", f"{gears}/a/status", {**gear, "metadata": metadata, "spec": {"color": 1}, "status": {}}
    )

    assert (status, changed["spec"]) == (200, {"size": 1})
    assert items(created, "metadata", "managedFields")
    assert "managedFields" not in mapping(changed, "metadata")
