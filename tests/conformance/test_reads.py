"""Reading: revisions, pages, fields to select by and forms of an answer, on every control plane."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import cast

import msgspec
import pytest
from tests.conformance.asking import Fetch, decoded

from kubewright.api.codec import from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, Event, Secret
from kubewright.api.markers import JSONObject
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.http.transport import Response
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.rest.reading import not_selectable, selectable

METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = METADATA.replace("Metadata;", "MetadataList;")
JSON = ("Content-Type", "application/json")
LABELS = {"read": "yes"}


@pytest.fixture
def path(client: Client) -> str:
    return f"/api/v1/namespaces/{client.namespace}/configmaps"


def names(response: Response) -> list[str]:
    return [text(found, "metadata", "name") for found in items(decoded(response), "items")]


def revision(response: Response) -> int:
    return int(text(decoded(response), "metadata", "resourceVersion"))


async def create(client: Client, *names: str) -> list[ConfigMap]:
    return [await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels=LABELS))) for name in names]


async def test_one_revision_counts_the_writes_of_every_kind(client: Client, fetch: Fetch) -> None:
    (config_map,) = await create(client, "a")
    secret = await client.create(Secret(metadata=ObjectMeta(name="a")))
    assert int(secret.metadata.resource_version) > int(config_map.metadata.resource_version)
    # A list is as new as the store, not as its newest object, even when it has none.
    empty = await fetch(f"/api/v1/namespaces/{client.namespace}/pods")
    assert names(empty) == []
    assert revision(empty) >= int(secret.metadata.resource_version)
    listed = await fetch(f"/api/v1/namespaces/{client.namespace}/configmaps?labelSelector=read")
    assert revision(listed) >= int(secret.metadata.resource_version)
    # Objects keep their own.
    (found,) = items(decoded(listed), "items")
    assert text(found, "metadata", "resourceVersion") == config_map.metadata.resource_version


@pytest.mark.parametrize("query", ["", "resourceVersion=0", "resourceVersion=0&resourceVersionMatch=NotOlderThan"])
async def test_a_read_of_any_age_has_a_revision(client: Client, fetch: Fetch, path: str, query: str) -> None:
    (created,) = await create(client, "a")
    # What is at hand is new enough after this.
    await fetch(f"{path}?resourceVersion={created.metadata.resource_version}")
    assert revision(await fetch(f"{path}?{query}")) >= int(created.metadata.resource_version)
    single = await fetch(f"{path}/a?{query}")
    assert (single.status, text(decoded(single), "metadata", "uid")) == (200, created.metadata.uid)


async def test_the_past_can_be_listed_exactly(client: Client, fetch: Fetch, path: str) -> None:
    first, _ = await create(client, "a", "b")
    first.data = {"x": "later"}
    updated = await client.update(first)
    await client.delete(ConfigMap, "b")
    await create(client, "c")
    before = int(updated.metadata.resource_version) - 1
    then = await fetch(f"{path}?labelSelector=read&resourceVersion={before}&resourceVersionMatch=Exact")
    assert (names(then), revision(then)) == (["a", "b"], before)
    assert "data" not in mapping(items(decoded(then), "items")[0])
    now = await fetch(f"{path}?labelSelector=read&resourceVersion={before}&resourceVersionMatch=NotOlderThan")
    assert names(now) == ["a", "c"]


async def test_pages_go_by_namespace_and_name(client: Client, fetch: Fetch, path: str) -> None:
    await create(client, "b", "a", "a-b", "a.b", "c")
    listed = names(await fetch(path))
    assert [name for name in listed if name != "kube-root-ca.crt"] == ["a", "a-b", "a.b", "b", "c"]
    assert listed == sorted(listed)
    seen: list[str] = []
    token = ""
    revisions: set[int] = set()
    while True:
        page = await fetch(f"{path}?limit=2&continue={token}")
        revisions.add(revision(page))
        seen += names(page)
        metadata = mapping(decoded(page), "metadata")
        token = text(metadata, "continue")
        if not token:
            break
        assert metadata["remainingItemCount"] == len(listed) - len(seen)
    assert seen == listed
    assert len(revisions) == 1
    assert "remainingItemCount" not in metadata


async def test_a_selected_list_has_no_remaining_item_count(client: Client, fetch: Fetch, path: str) -> None:
    await create(client, "a", "b", "c")
    metadata = mapping(decoded(await fetch(f"{path}?labelSelector=read&limit=1")), "metadata")
    assert text(metadata, "continue")
    assert "remainingItemCount" not in metadata


async def test_a_list_of_any_age_comes_whole(client: Client, fetch: Fetch, path: str) -> None:
    created = await create(client, "a", "b", "c")
    await fetch(f"{path}?resourceVersion={created[-1].metadata.resource_version}")
    listed = await fetch(f"{path}?labelSelector=read&limit=1&resourceVersion=0")
    assert names(listed) == ["a", "b", "c"]
    assert text(decoded(listed), "metadata", "continue") == ""


async def test_a_continue_token_may_continue_with_the_current_state(client: Client, fetch: Fetch, path: str) -> None:
    """The one that comes with 410 says so by its revision."""
    await create(client, "a", "b")
    token = urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":-1,"start":"b\\u0000"}').rstrip(b"=").decode()
    await create(client, "c")
    listed = await fetch(f"{path}?limit=10&continue={token}")
    assert [name for name in names(listed) if name != "kube-root-ca.crt"] == ["c"]


async def test_a_revision_does_not_go_with_a_token(client: Client, fetch: Fetch, path: str) -> None:
    await create(client, "a", "b")
    token = text(decoded(await fetch(f"{path}?limit=1")), "metadata", "continue")
    for query in (f"continue={token}&resourceVersion=5", f"continue={token}&limit=1&resourceVersion=5"):
        answer = await fetch(f"{path}?{query}")
        complaint = "specifying resource version is not allowed when using continue"
        assert (answer.status, decoded(answer)["message"]) == (400, complaint)


@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
async def test_numbers_are_numbers(fetch: Fetch, path: str, name: str) -> None:
    answer = await fetch(f"{path}?{name}=x")
    assert (answer.status, decoded(answer)["message"]) == (400, 'strconv.ParseInt: parsing "x": invalid syntax')


async def test_every_kind_is_selected_by_its_fields_and_no_others(fetch: Fetch) -> None:
    """By name and namespace all of them, by more only those that say so."""
    resources = [resource for resource in built_in_resources() if {"list", "watch"} <= set(resource.verbs)]
    everything = sorted(set().union(*(resource.strategy.selectable for resource in resources)))
    assert len(everything) > 20
    different: list[str] = []
    for resource in resources:
        group, version = resource.gvk[:2]
        at = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for field in ["metadata.name", "metadata.namespace", *everything]:
            answer = await fetch(f"{at}/{resource.plural}?fieldSelector={field}%3Dnothing")
            message = str(decoded(answer).get("message", ""))
            expected = (200, "") if field in selectable(resource) else (400, not_selectable(resource, field))
            if (answer.status, message) != expected:
                different.append(f"{resource.plural} by {field}: {answer.status} {message}")
    assert different == []


async def test_metadata_alone_is_the_answer_to_everything(client: Client, fetch: Fetch, path: str) -> None:
    accept, kind = ("Accept", METADATA), ("PartialObjectMetadata", "meta.k8s.io/v1")

    def refusal(response: Response) -> tuple[str, str]:
        found = decoded(response)
        assert found.keys() == {"kind", "apiVersion", "metadata"}
        return text(found, "kind"), text(found, "apiVersion")

    body = b'{"metadata":{"name":"m","finalizers":["example.com/wait"]},"data":{"x":"1"}}'
    created = await fetch(path, "POST", [accept, JSON], body)
    assert (created.status, refusal(created)) == (201, kind)
    patch = ("Content-Type", "application/merge-patch+json")
    assert refusal(await fetch(f"{path}/m", headers=[accept])) == kind
    assert refusal(await fetch(f"{path}/m", "PATCH", [accept, patch], b'{"data":{"x":"2"}}')) == kind
    deleted = await fetch(f"{path}/m", "DELETE", [accept])
    assert refusal(deleted) == kind
    assert text(decoded(deleted), "metadata", "deletionTimestamp")
    listed = decoded(await fetch(f"{path}?fieldSelector=metadata.name%3Dm", headers=[("Accept", METADATA_LIST)]))
    assert (text(listed, "kind"), text(listed, "apiVersion")) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    (item,) = items(listed, "items")
    assert (text(item, "kind"), text(item, "apiVersion")) == kind
    assert "data" not in mapping(item)
    await fetch(f"{path}/m", "PATCH", [patch], b'{"metadata":{"finalizers":null}}')


async def test_of_nothing_the_metadata_is_null(fetch: Fetch, client: Client) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/pods"
    assert decoded(await fetch(path, headers=[("Accept", METADATA_LIST)]))["items"] is None
    assert decoded(await fetch(path))["items"] == []


async def test_metadata_has_whole_seconds_and_no_link_to_itself(client: Client, fetch: Fetch, path: str) -> None:
    await create(client, "a")
    metadata = mapping(decoded(await fetch(f"{path}/a")), "metadata")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text(metadata, "creationTimestamp"))
    empty = {"selfLink", "generateName", "deletionTimestamp", "ownerReferences", "finalizers", "annotations"}
    assert not empty & metadata.keys()


async def test_some_times_are_of_microseconds(client: Client, fetch: Fetch) -> None:
    time = "2026-01-02T03:04:05.678900Z"
    await client.create(from_json(Lease, {"metadata": {"name": "l"}, "spec": {"renewTime": time}}))
    event: JSONObject = {
        "metadata": {"name": "e"},
        "involvedObject": {"namespace": client.namespace},
        "reason": "R",
        "type": "Normal",
        "action": "A",
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
        "eventTime": time,
    }
    await client.create(from_json(Event, event))
    lease = await fetch(f"/apis/coordination.k8s.io/v1/namespaces/{client.namespace}/leases/l")
    assert text(decoded(lease), "spec", "renewTime") == time
    found = await fetch(f"/api/v1/namespaces/{client.namespace}/events/e")
    assert text(decoded(found), "eventTime") == time


@pytest.mark.parametrize("headers", [[], [("Content-Type", "")], [("Content-Type", "application/json; charset=utf-8")]])
async def test_a_body_without_a_content_type_is_json(
    fetch: Fetch, path: str, headers: Sequence[tuple[str, str]]
) -> None:
    created = await fetch(path, "POST", headers, b'{"metadata":{"name":"a"}}')
    assert (created.status, text(decoded(created), "metadata", "name")) == (201, "a")


@pytest.mark.parametrize(
    ("watched", "expected"),
    [("configmaps", ["a", "b"]), ("configmaps/b", ["b"]), ("configmaps/b?fieldSelector=metadata.name%3Db", ["b"])],
)
async def test_watches_can_be_requested_in_the_old_way(
    client: Client, fetch: Fetch, watched: str, expected: list[str]
) -> None:
    await create(client, "a", "b")
    separator = "&" if "?" in watched else "?"
    target = f"/api/v1/watch/namespaces/{client.namespace}/{watched}{separator}timeoutSeconds=1&labelSelector=read"
    answer = await fetch(target)
    events = [cast(JSONObject, msgspec.json.decode(line)) for line in answer.body.splitlines()]
    assert [(event["type"], text(event, "object", "metadata", "name")) for event in events] == [
        ("ADDED", name) for name in expected
    ]


async def test_an_object_is_not_watched_by_the_name_of_another(client: Client, fetch: Fetch) -> None:
    target = f"/api/v1/watch/namespaces/{client.namespace}/configmaps/a?fieldSelector=metadata.name%3Db"
    answer = await fetch(target)
    complaint = "fieldSelector metadata.name doesn't match requested name"
    assert (answer.status, decoded(answer)["message"]) == (400, complaint)
