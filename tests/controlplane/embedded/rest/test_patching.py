from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"


def config_map(**content: JSONValue) -> JSONObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **content}


async def test_that_the_result_cannot_be_decoded_is_the_fault_of_the_patch(send: Send) -> None:
    await send("POST", CONFIG_MAPS, config_map())

    status, refused = await send("PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": 1}}, patch="merge")

    assert (status, refused["reason"]) == (422, "Invalid")
    [cause] = items(refused, "details", "causes")
    assert text(cause, "field") == "patch"
    assert text(cause, "message").endswith(
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    )


async def test_of_several_mistakes_in_what_a_patch_made_the_first_in_order_is_reported(send: Send) -> None:
    await send("POST", CONFIG_MAPS, config_map())

    _, refused = await send(
        "PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"a": True}}, "data": {"a": 1}}, patch="merge"
    )

    assert text(refused, "message").endswith("Go struct field ConfigMap.data of type string")


async def test_that_the_result_of_an_apply_cannot_be_decoded_is_a_failure_of_the_server(send: Send) -> None:
    secret: JSONObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a"},
        "data": {"a": "not base64"},
    }

    status, refused = await send("PATCH", f"{SECRETS}/a?fieldManager=me", secret, patch="apply")

    assert status == 500
    assert refused["message"] == (
        "failed to convert new object (/a; /v1, Kind=Secret) to proper version: unable to convert unstructured object "
        "to /v1, Kind=Secret: error decoding from json: illegal base64 data at input byte 3"
    )


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"size": "1"}, ".spec.size: expected numeric (int or float), got string"),
        ({"color": 1}, ".spec.color: expected string, got &value.valueUnstructured{Value:1}"),
        ({"other": 1}, ".spec.other: field not declared in schema"),
    ],
)
async def test_what_does_not_fit_the_schema_cannot_be_applied(
    send: Send, gears: str, spec: JSONObject, complaint: str
) -> None:
    gear: JSONObject = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "a"}, "spec": spec}

    status, refused = await send("PATCH", f"{gears}/a?fieldManager=me", gear, patch="apply")

    assert status == 500
    assert refused["message"] == (f"failed to create typed patch object (/a; example.com/v1, Kind=Gear): {complaint}")


async def test_an_empty_map_that_is_applied_is_owned(send: Send) -> None:
    _, applied = await send("PATCH", f"{CONFIG_MAPS}/a?fieldManager=me", config_map(data={}), patch="apply")

    assert [mapping(entry, "fieldsV1") for entry in items(applied, "metadata", "managedFields")] == [{"f:data": {}}]


async def test_a_manager_that_applies_nothing_any_more_is_forgotten(send: Send) -> None:
    await send("PATCH", f"{CONFIG_MAPS}/a?fieldManager=me", config_map(data={"a": "1"}), patch="apply")

    _, applied = await send("PATCH", f"{CONFIG_MAPS}/a?fieldManager=me", config_map(), patch="apply")

    assert "managedFields" not in mapping(applied, "metadata")
    assert "data" not in applied


async def test_empty_metadata_that_is_applied_to_a_custom_resource_is_there_but_hidden(send: Send, gears: str) -> None:
    """So that the next write, even if it changes nothing that can be seen, is one."""
    gear: JSONObject = {
        "apiVersion": "example.com/v1",
        "kind": "Gear",
        "metadata": {"name": "a", "labels": {}},
        "spec": {"size": 1},
    }
    _, applied = await send("PATCH", f"{gears}/a?fieldManager=me", gear, patch="apply")
    _, again = await send("PATCH", f"{gears}/a?fieldManager=me", gear, patch="apply")
    _, patched = await send("PATCH", f"{gears}/a", {"spec": {"size": 1}}, patch="merge")
    _, settled = await send("PATCH", f"{gears}/a", {"spec": {"size": 1}}, patch="merge")

    assert "labels" not in mapping(applied, "metadata")
    revisions = [text(answer, "metadata", "resourceVersion") for answer in (applied, again, patched, settled)]
    assert revisions[0] == revisions[1] != revisions[2] == revisions[3]
