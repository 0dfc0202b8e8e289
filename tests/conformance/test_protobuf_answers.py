"""Answers in protobuf, which Go clients prefer: the bytes that Go makes of what the same answer is in JSON."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec
import pytest
from tests.conformance.asking import Fetch, decoded
from tools.record_answers import answers, in_namespace, normalized, questions

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.http.transport import Response
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.protobuf.encoding import protobuf_pieces

PROTOBUF = "application/vnd.kubernetes.protobuf"
METADATA = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
JSON = "application/json"


def as_protobuf(body: bytes) -> bytes:
    return b"".join(protobuf_pieces(body))


def opened(response: Response, kind: str = PROTOBUF) -> JSONObject:
    """An answer in protobuf as JSON; it is byte for byte what is made of that again."""
    assert response.headers.get("Content-Type") == kind, response.body
    found = decode_protobuf(response.body)
    assert as_protobuf(msgspec.json.encode(found)) == response.body, found
    return found


async def test_objects_of_every_kind_and_refusals_are_written_as_go_writes_them(fetch: Fetch, namespace: str) -> None:
    recorded = answers()
    plurals: dict[str, JSONObject] = {}
    for question in questions():
        if question.title not in recorded or not question.title.startswith(("objects: ", "odd_objects: ")):
            continue
        document = in_namespace(question.document, namespace)
        api_version, kind = text(document, "apiVersion"), text(document, "kind")
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if root not in plurals:
            found = decoded(await fetch(root, headers=[("Accept", JSON)]))
            plurals[root] = {
                text(one, "kind"): one for one in items(found, "resources") if "/" not in text(one, "name")
            }
        resource = mapping(plurals[root], kind)
        scope = f"/namespaces/{namespace}" if resource["namespaced"] else ""
        response = await fetch(
            f"{root}{scope}/{resource['name']}?dryRun=All",
            "POST",
            [("Content-Type", JSON), ("Accept", f"{PROTOBUF},{JSON}")],
            msgspec.json.encode(document),
        )
        expected = recorded[question.title]
        for template in items(expected, "spec", "volumeClaimTemplates"):
            # Only JSON has the kind of an object within another.
            for name in ("apiVersion", "kind"):
                mapping(template).pop(name)
        assert normalized(opened(response), namespace) == expected, question.title


async def test_lists_and_all_verbs_answer_in_protobuf(fetch: Fetch, client: Client) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    sent = [("Accept", f"{PROTOBUF}, {JSON};q=0.9")]
    empty = opened(await fetch(f"{path}?labelSelector=none%3Dthere", headers=sent))
    created = opened(await fetch(path, "POST", sent, b'{"metadata":{"name":"a"},"binaryData":{"x":"","y":"AAE="}}'))
    merge = [*sent, ("Content-Type", "application/merge-patch+json")]
    patched = opened(await fetch(f"{path}/a", "PATCH", merge, b'{"data":{"b":"","a":"1"}}'))
    revision = text(patched, "metadata", "resourceVersion")
    exact = f"{path}?resourceVersion={revision}&resourceVersionMatch=Exact"
    in_json, listed = await fetch(exact, headers=[("Accept", JSON)]), await fetch(exact, headers=sent)
    deleted = opened(await fetch(f"{path}/a", "DELETE", sent))
    missing = await fetch(f"{path}/a", headers=sent)

    assert (empty["kind"], empty["items"]) == ("ConfigMapList", None)
    assert (created["kind"], created["binaryData"]) == ("ConfigMap", {"x": "", "y": "AAE="})
    assert patched["data"] == {"a": "1", "b": ""}
    assert opened(listed) == msgspec.json.decode(in_json.body)
    assert as_protobuf(in_json.body) == listed.body
    assert (deleted["kind"], deleted["status"]) == ("Status", "Success")
    assert (missing.status, opened(missing)["reason"]) == (404, "NotFound")


def events(body: bytes) -> Iterator[tuple[str, JSONObject]]:
    """The events of a stream: each has its length before it, and is a type and an enveloped object."""
    while body:
        (length,) = struct.unpack(">I", body[:4])
        frame, body = body[4 : 4 + length], body[4 + length :]
        assert frame[0] == 0x0A
        type_, rest = frame[2 : 2 + frame[1]], frame[2 + frame[1] :]
        assert rest[0] == 0x12
        start = rest.index(b"k8s\0")
        yield type_.decode(), decode_protobuf(rest[start:])


async def test_a_watch_is_a_stream_of_framed_events(fetch: Fetch, client: Client) -> None:
    first = await client.create(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}))
    await client.create(ConfigMap(metadata=ObjectMeta(name="b")))
    await client.delete(ConfigMap, "b")
    path = (
        f"/api/v1/namespaces/{client.namespace}/configmaps?watch=1&timeoutSeconds=1"
        f"&resourceVersion={int(first.metadata.resource_version) - 1}&fieldSelector=metadata.name%21%3Dkube-root-ca.crt"
    )
    in_json = await fetch(path, headers=[("Accept", JSON)])
    expected = [msgspec.json.decode(line) for line in in_json.body.splitlines()]
    for accept in (PROTOBUF, f"{PROTOBUF};stream=watch, {JSON};stream=watch"):
        streamed = await fetch(path, headers=[("Accept", accept)])
        assert streamed.headers.get("Content-Type") == f"{PROTOBUF};stream=watch"
        assert [{"type": type_, "object": obj} for type_, obj in events(streamed.body)] == expected
    assert [event["type"] for event in expected] == ["ADDED", "ADDED", "DELETED"]


async def test_the_end_of_the_initial_events_and_an_error_come_in_frames(fetch: Fetch, client: Client) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    path = f"/api/v1/namespaces/{client.namespace}/configmaps?watch=1&timeoutSeconds=1"
    initial = f"{path}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    found = list(events((await fetch(initial, headers=[("Accept", METADATA)])).body))
    future = f"{initial}&resourceVersion=9999999999"
    ((failure, status),) = events((await fetch(future, headers=[("Accept", PROTOBUF)])).body)

    assert {(type_, obj["kind"]) for type_, obj in found} == {
        ("ADDED", "PartialObjectMetadata"),
        ("BOOKMARK", "PartialObjectMetadata"),
    }
    assert mapping(found[-1][1], "metadata", "annotations") == {"k8s.io/initial-events-end": "true"}
    assert (failure, status["kind"], status["reason"]) == ("ERROR", "Status", "Timeout")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_metadata_alone_comes_in_protobuf(fetch: Fetch, client: Client, version: str) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", labels={"only": "this"}), data={"x": "1"}))
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    one = await fetch(f"{path}/a", headers=[("Accept", METADATA.replace("v1", version))])
    several = await fetch(
        f"{path}?labelSelector=only%3Dthis", headers=[("Accept", METADATA_LIST.replace("v1", version))]
    )

    assert text(opened(one), "apiVersion") == f"meta.k8s.io/{version}"
    assert opened(one).keys() == {"kind", "apiVersion", "metadata"}
    assert [mapping(item, "metadata")["name"] for item in items(opened(several), "items")] == ["a"]


@pytest.mark.usefixtures("widgets")
async def test_of_a_custom_resource_only_the_metadata_comes_in_protobuf(fetch: Fetch, namespace: str) -> None:
    path = f"/apis/example.com/v1/namespaces/{namespace}/widgets"
    created = await fetch(path, "POST", [("Content-Type", JSON), ("Accept", f"{PROTOBUF},{JSON}")], _WIDGET)
    refused = await fetch(f"{path}/a", headers=[("Accept", PROTOBUF)])
    scale = await fetch(f"{path}/a/scale", headers=[("Accept", PROTOBUF)])
    in_yaml = await fetch(f"{path}/a", headers=[("Accept", f"{PROTOBUF},application/yaml")])
    missing = await fetch(f"{path}/b", headers=[("Accept", f"{PROTOBUF},{JSON}")])
    one = opened(await fetch(f"{path}/a", headers=[("Accept", f"{METADATA},{JSON}")]))
    several = opened(await fetch(path, headers=[("Accept", f"{METADATA_LIST},{JSON}")]))

    assert (created.status, created.headers.get("Content-Type")) == (201, JSON)
    assert (refused.status, opened(refused)["reason"]) == (406, "NotAcceptable")
    assert (scale.status, opened(scale)["reason"]) == (406, "NotAcceptable")
    assert in_yaml.headers.get("Content-Type") == "application/yaml"
    assert (missing.status, opened(missing)["reason"]) == (404, "NotFound")
    assert (one["kind"], text(one, "metadata", "name")) == ("PartialObjectMetadata", "a")
    assert (several["kind"], len(items(several, "items"))) == ("PartialObjectMetadataList", 1)


_WIDGET = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}'


async def test_there_is_no_table_in_protobuf(fetch: Fetch, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    table = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"
    refused = await fetch(path, headers=[("Accept", table)])
    passed_over = await fetch(path, headers=[("Accept", f"{table},{PROTOBUF}")])

    assert refused.status == 406
    assert opened(passed_over)["kind"] == "ConfigMapList"


@pytest.mark.parametrize("path", ["/api", "/apis/apps", "/apis/apps/v1"])
async def test_discovery_answers_in_protobuf(fetch: Fetch, path: str) -> None:
    in_json, in_protobuf = [await fetch(path, headers=[("Accept", accept)]) for accept in (JSON, PROTOBUF)]
    assert in_protobuf.headers.get("Content-Type") == PROTOBUF
    assert in_protobuf.body == as_protobuf(in_json.body)


async def test_all_of_discovery_comes_in_protobuf(fetch: Fetch) -> None:
    form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    opened(await fetch("/apis", headers=[("Accept", PROTOBUF)]))
    found = opened(await fetch("/apis", headers=[("Accept", f"{PROTOBUF}{form}")]), f"{PROTOBUF}{form}")
    assert "apps" in {text(group, "metadata", "name") for group in items(found, "items")}
