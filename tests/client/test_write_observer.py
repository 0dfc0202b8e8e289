from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.client.conftest import ScriptedServer

from kubewright.api.core.v1 import ConfigMap, Pod
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, ResourceInfo
from kubewright.client import Client, MergePatch
from kubewright.client.endpoint import Endpoint
from kubewright.client.errors import DecodeError, NotFound
from kubewright.client.http.transport import Response
from kubewright.client.write_observer import DeletionEnd

ANSWER: dict[str, JSONValue] = {
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7"},
}


class Observer:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def needs_whole(self, info: ResourceInfo) -> bool:
        return True

    def updating(self, endpoint: Endpoint, obj: Object) -> None:
        if obj.metadata.labels.get("cut"):
            raise ValueError("it has only a part of the object")

    def written(
        self, method: str, endpoint: Endpoint, sent: bytes, response: Response, obj: Object | None, base: str | None
    ) -> None:
        answer = "not decoded" if obj is None else f"revision {obj.metadata.resource_version}"
        self.seen.append(f"{method} {endpoint.path}: {answer}{f' after {base}' if base else ''}")

    def deleting(self, endpoint: Endpoint) -> DeletionEnd:
        self.seen.append(f"deleting {endpoint.path}")
        return lambda response: self.seen.append("failed" if response is None else "deleted")


@pytest.fixture
def observer(client: Client) -> Observer:
    observer = Observer()
    client._operations = replace(client._operations, observer=observer)
    return observer


def settings(resource_version: str = "") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", resource_version=resource_version))


async def test_each_write_is_reported_with_its_answer(
    client: Client, server: ScriptedServer, observer: Observer
) -> None:
    for _ in range(4):
        server.answers(ANSWER)
    await client.create(settings())
    await client.update(settings(resource_version="6"))
    await client.patch(ConfigMap, "a", MergePatch({"data": {"x": "1"}}))
    await client.submit(settings())

    path = "/api/v1/namespaces/shop/configmaps"
    assert observer.seen == [
        f"POST {path}: revision 7",
        f"PUT {path}/a: revision 7 after 6",
        f"PATCH {path}/a: revision 7",
        f"POST {path}: not decoded",
    ]


async def test_a_write_whose_answer_cannot_be_decoded_is_reported_all_the_same(
    client: Client, server: ScriptedServer, observer: Observer
) -> None:
    server.answers({**ANSWER, "data": 7})
    with pytest.raises(DecodeError):
        await client.create(settings())
    assert observer.seen == ["POST /api/v1/namespaces/shop/configmaps: not decoded"]


async def test_reads_dry_runs_and_refused_writes_are_not_reported(
    client: Client, server: ScriptedServer, observer: Observer
) -> None:
    server.answers(ANSWER)
    await client.get(ConfigMap, "a")
    server.answers(ANSWER)
    await client.create(settings(), dry_run=True)
    server.answers(ANSWER)
    await client.delete(settings(), dry_run=True)
    server.refuses(404, "NotFound", name="settings")
    with pytest.raises(NotFound):
        await client.update(settings())
    assert observer.seen == []


async def test_a_deletion_is_reported_before_it_is_sent_and_when_it_has_ended(
    client: Client, server: ScriptedServer, observer: Observer
) -> None:
    server.answers({"kind": "Status", "status": "Success"})
    await client.delete(Pod, "web-1")
    server.refuses(404, "NotFound", name="settings")
    with pytest.raises(NotFound):
        await client.delete(Pod, "web-1")
    deleting = "deleting /api/v1/namespaces/shop/pods/web-1"
    assert observer.seen == [deleting, "deleted", deleting, "failed"]


async def test_an_update_that_the_observer_refuses_is_not_sent(
    client: Client, server: ScriptedServer, observer: Observer
) -> None:
    cut = settings(resource_version="6")
    cut.metadata.labels["cut"] = "yes"
    with pytest.raises(ValueError, match="it has only a part of the object"):
        await client.update(cut)
    assert server.sent == []
    server.answers(ANSWER)
    await client.status.update(cut)
    assert len(server.sent) == 1
