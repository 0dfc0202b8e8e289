"""What the embedded server does differently when it calls conversion webhooks. The rest is compared with a real one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.conformance.asking import Answer
from tests.conformance.converters import Converter, served_version
from tests.conformance.custom_kinds import DEFINITIONS, Kind
from tests.conformance.webhooks import Webhooks, serving

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions import conversion
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.assembly import ServerOptions, assemble

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
BETA = "v1beta1"


class Asking:
    """Sends requests to a server without a socket."""

    def __init__(self, server: APIServer) -> None:
        self._server = server

    async def __call__(
        self, method: str, path: str, body: JSONValue = None, content_type: str = "application/json"
    ) -> Answer:
        endpoint, _, query = path.replace("NAMESPACE", "default").partition("?")
        sent = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": content_type, "accept": "application/json"}
        response = await self._server.respond(HTTPRequest(method, endpoint, query, headers, body=sent))
        is_json = response.content_type == "application/json"
        return Answer(response.status, msgspec.json.decode(response.body) if is_json else {}, [])


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    assembled = assemble(options=ServerOptions(always_allow=True))
    definitions = asyncio.create_task(assembled.definitions.run())
    yield Asking(assembled.server)
    definitions.cancel()


@pytest.fixture
async def converter(asking: Asking, tmp_path: Path) -> AsyncIterator[Converter]:
    webhooks = Webhooks(asking, "own")
    made = Converter(Kind(asking, "own.example.com"), webhooks)
    async with serving(webhooks, tmp_path):
        await made.define()
        yield made


async def test_the_objects_of_a_list_are_converted_at_once_and_remembered(converter: Converter) -> None:
    kind = converter.kind
    for name in "abc":
        await kind.create(name, spec={"replicas": 1})
    assert converter.requests == []
    listed = await kind.ask("GET", kind.path(version=BETA))
    (request,) = converter.requests
    again = await kind.ask("GET", kind.path(version=BETA))

    assert [text(obj, "metadata", "name") for obj in items(request, "objects")] == ["a", "b", "c"]
    assert [at(item, "spec", "size") for item in items(listed.body, "items")] == [1, 1, 1]
    assert again.body == listed.body
    assert converter.requests == [request]


async def test_what_is_too_long_for_one_review_is_converted_in_several(
    converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "_MAX_REVIEW_SIZE", 1)
    kind = converter.kind
    for number, name in enumerate("abc"):
        await kind.create(name, spec={"replicas": number})
    listed = await kind.ask("GET", kind.path(version=BETA))

    assert [len(items(request, "objects")) for request in converter.requests] == [1, 1, 1]
    assert [at(item, "spec", "size") for item in items(listed.body, "items")] == [0, 1, 2]


async def quota(asking: Asking, kind: Kind) -> None:
    counted: JSONObject = {f"count/{kind.name}": "1"}
    assert (await asking("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": counted}})).code == 201
    status: JSONObject = {"status": {"hard": counted, "used": {f"count/{kind.name}": "0"}}}
    merge = "application/merge-patch+json"
    assert (await asking("PATCH", f"{QUOTAS}/q/status", status, merge)).code == 200


async def test_a_request_that_is_handled_again_is_charged_once(asking: Asking, converter: Converter) -> None:
    kind = converter.kind
    await quota(asking, kind)
    created = await kind.create("a", version=BETA, spec={"size": 1})
    refused = await kind.create("b", version=BETA, spec={"size": 1})

    assert (created.code, refused.code) == (201, 403)
    assert at((await asking("GET", f"{QUOTAS}/q")).body, "status", "used") == {f"count/{kind.name}": "1"}


async def test_quotas_are_not_seen_through_the_schema_of_what_is_counted(asking: Asking) -> None:
    kind = Kind(asking, "plain.example.com")
    await kind.define(served_version("v1", storage=True), served_version(BETA, storage=False))
    await quota(asking, kind)
    created = await kind.create("a", version=BETA, spec={"size": 1})

    assert created.code == 201
    shown = (await asking("GET", f"{QUOTAS}/q")).body
    assert at(shown, "spec", "hard") == at(shown, "status", "used") == {f"count/{kind.name}": "1"}
    assert (await kind.create("b", version=BETA, spec={"size": 1})).code == 403
    assert (await asking("DELETE", f"{DEFINITIONS}/{kind.name}")).code == 200
