"""An event is rendered once for all watchers that see it alike."""

from __future__ import annotations

import asyncio

from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.rest.presentation import EventLines, WatchPresentation
from kubewright.controlplane.embedded.server.assembly import assemble
from kubewright.controlplane.embedded.storage.stored_object import StoredObject

PATH = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def entry(revision: int, size: int = 0) -> StoredObject:
    return StoredObject("/core/configmaps/default/a", {"data": "x" * size}, revision, 1)


def test_lines_are_shared_by_presentation_and_revision() -> None:
    rendered: list[int] = []

    def render(entry: StoredObject) -> bytes:
        rendered.append(entry.revision)
        return entry.raw

    lines, one, other = EventLines(), WatchPresentation(render, lambda: 1), WatchPresentation(render, lambda: 2)
    first = lines.line(b"ADDED", entry(5), one)

    assert first == b'{"type":"ADDED","object":{"data":""}}\n'
    assert lines.line(b"ADDED", entry(5), one) is first
    assert lines.line(b"ADDED", entry(5), other) == first
    lines.line(b"ADDED", entry(6), one)
    lines.line(b"DELETED", entry(6), one)
    assert rendered == [5, 5, 6, 6]


def test_lines_are_kept_up_to_a_size() -> None:
    lines, presentation = EventLines(), WatchPresentation(lambda entry: entry.raw, lambda: 1)
    for revision in range(100):
        lines.line(b"ADDED", entry(revision, 50_000), presentation)
    kept = lines._lines.values()

    assert 0 < sum(map(len, kept)) <= 1 << 20
    assert lines.line(b"ADDED", entry(200, 3 << 20), presentation) in lines._lines.values()
    assert len(lines._lines) == 1


async def test_watchers_of_the_same_get_the_same_bytes() -> None:
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}, clock=lambda: 1e9).server
    headers = {"authorization": "Bearer sesame"}
    query = f"watch=1&resourceVersion={server.services.store.revision}"
    streams = []
    for accept in ("application/json", TABLE, METADATA, PROTOBUF, METADATA.replace("application/json", PROTOBUF)) * 3:
        response = await server.respond(HTTPRequest("GET", PATH, query, {**headers, "accept": accept}))
        assert response.stream is not None
        streams.append(aiter(response.stream))

    async def event(name: str) -> list[bytes]:
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        body = b'{"metadata":{"name":"%s"}}' % name.encode()
        assert (await server.respond(HTTPRequest("POST", PATH, headers=headers, body=body))).status == 201
        return list(await asyncio.gather(*waiting))

    await event("a")  # the columns of tables are in their first event only
    pieces = await event("b")
    assert len({id(piece) for piece in pieces}) == len(set(pieces)) == 5
