"""What takes long is done in parts: other requests are answered in between."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
import yaml

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.assembly import assemble

COUNT = 1000
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture
def server() -> APIServer:
    """A server with `COUNT` ConfigMaps."""
    assembled = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))})
    for number in range(COUNT):
        name = f"c{number:04}"
        metadata: JSONObject = {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
        assembled.store.create(f"/core/configmaps/default/{name}", {"metadata": metadata, "data": {"x": "x" * 300}})
    return assembled.server


def request(method: str, path: str, accept: str = "application/json", **headers: str) -> HTTPRequest:
    fields = {"authorization": "Bearer sesame", "accept": accept, **headers}
    return HTTPRequest(method, path, "", fields)


async def answered_meanwhile(server: APIServer, long: HTTPRequest) -> tuple[HTTPResponse, list[JSONObject]]:
    """The response to a request, and those to requests for the first ConfigMap that came during it."""
    others: list[JSONObject] = []
    task = asyncio.create_task(server.respond(long))
    while not task.done():
        await asyncio.sleep(0)
        response = await server.respond(request("GET", f"{CONFIG_MAPS}/c0000"))
        others.append(msgspec.json.decode(response.body, type=JSONObject))
    return await task, others


@pytest.mark.parametrize(
    ("accept", "pauses"),
    [("application/json", 4), (TABLE, 4), ("application/yaml", 20), (PROTOBUF, 7), (f"{TABLE}, */*", 4)],
)
async def test_a_long_list_lets_other_requests_through(server: APIServer, accept: str, pauses: int) -> None:
    response, others = await answered_meanwhile(server, request("GET", CONFIG_MAPS, accept))

    assert response.status == 200
    assert len(others) > pauses
    assert {str(other["kind"]) for other in others} == {"ConfigMap"}


async def test_a_list_in_pieces_is_the_same_in_every_representation(server: APIServer) -> None:
    as_json = (await server.respond(request("GET", CONFIG_MAPS))).body
    as_yaml = (await server.respond(request("GET", CONFIG_MAPS, "application/yaml"))).body
    table = msgspec.json.decode((await server.respond(request("GET", CONFIG_MAPS, TABLE))).body)
    as_protobuf = (await server.respond(request("GET", CONFIG_MAPS, PROTOBUF))).body
    listed = msgspec.json.decode(as_json)

    assert [item["metadata"]["name"] for item in listed["items"]] == [f"c{number:04}" for number in range(COUNT)]
    assert yaml.load(as_yaml, yaml.CSafeLoader) == listed
    assert [row["cells"][0] for row in table["rows"]] == [f"c{number:04}" for number in range(COUNT)]
    assert decode_protobuf(as_protobuf) == listed
    assert as_json.endswith(b"]}\n")


async def test_a_compressed_list_lets_other_requests_through(server: APIServer) -> None:
    long = request("GET", CONFIG_MAPS, **{"accept-encoding": "gzip"})
    response, others = await answered_meanwhile(server, long)

    assert ("Content-Encoding", "gzip") in response.headers
    assert len(others) > 5


async def test_a_long_deletion_of_a_collection_lets_other_requests_through(server: APIServer) -> None:
    response, others = await answered_meanwhile(server, request("DELETE", CONFIG_MAPS))
    left = msgspec.json.decode((await server.respond(request("GET", CONFIG_MAPS))).body)

    assert response.status == 200
    assert len(msgspec.json.decode(response.body)["items"]) == COUNT
    assert left["items"] == []
    # The first object was gone when others asked, while the rest was still being deleted.
    assert len(others) > 4
    assert {other["kind"] for other in others} == {"Status"}


async def test_an_error_in_the_middle_of_a_long_deletion_is_the_response(server: APIServer) -> None:
    body = b'{"preconditions":{"uid":"another"}}'
    wrong = HTTPRequest("DELETE", CONFIG_MAPS, "", {"authorization": "Bearer sesame"}, body=body)
    response = await server.respond(wrong)

    assert response.status == 409
