from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import ConfigMap, Node, Pod
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.markers import JSONObject
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.errors import ConfigError, Conflict, Forbidden, NoSuchKind, NotFound
from kubewright.client.patch import MergePatch
from kubewright.client.paths import Propagation
from kubewright.client.token_bucket import TokenBucket

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedServer, Serve

PATH = "/api/v1/namespaces/shop/configmaps/a"


class Unnamed(Object):
    """A class without a kind."""


# reading


async def test_get_reads_one_object(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a", "namespace": "shop"}, "data": {"x": "1"}})
    found = await client.get(ConfigMap, "a")

    assert found.data == {"x": "1"}
    (sent,) = server.sent
    assert (sent.method, sent.target, sent.body) == ("GET", PATH, None)
    assert sent.header("Accept") == ["application/json"]


async def test_get_can_accept_an_older_state(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a"}})
    await client.get(ConfigMap, "a", resource_version="0")

    assert server.sent[0].query == {"resourceVersion": "0"}


async def test_get_can_read_metadata_alone(client: Client, server: ScriptedServer) -> None:
    server.answers({"kind": "PartialObjectMetadata", "metadata": {"name": "a"}})
    await client.get(metadata_only(ConfigMap), "a")

    assert server.sent[0].header("Accept") == ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]


async def test_an_absent_object_is_an_error_for_get_and_none_for_find(client: Client, server: ScriptedServer) -> None:
    for _ in range(2):
        server.refuses(404, "NotFound", 'configmaps "a" not found', name="a", kind="configmaps")
    with pytest.raises(NotFound, match=r'^get ConfigMap shop/a: configmaps "a" not found$'):
        await client.get(ConfigMap, "a")
    assert await client.find(ConfigMap, "a") is None


async def test_find_returns_an_existing_object(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a"}})
    found = await client.find(ConfigMap, "a")

    assert found is not None
    assert found.metadata.name == "a"


async def test_a_kind_that_the_server_does_not_have_is_not_an_object_that_is_gone(
    client: Client, server: ScriptedServer
) -> None:
    """An operator that takes None for a deletion would clean up what is still there."""
    server.refuses(404, "NotFound", "the server could not find the requested resource")
    server.answers({"kind": "APIResourceList", "resources": []})
    with pytest.raises(NoSuchKind, match="the server has no such kind, configmaps in v1: is the server older"):
        await client.find(ConfigMap, "a")

    for _ in range(2):
        server.answers(b"<html>no such page</html>", status=404, headers={"Content-Type": "text/html"})
    with pytest.raises(NotFound, match=r"HTTP 404 \(text/html\)"):
        await client.find(ConfigMap, "a")

    server.answers({"resources": []})
    server.answers({"items": []})
    with pytest.raises(NotFound, match=r"the server has no such kind, Widget in example\.com/v1"):
        await client.find(Dynamic.of("example.com/v1", "Widget"), "a")


async def test_find_raises_every_other_error(client: Client, server: ScriptedServer) -> None:
    server.refuses(403, "Forbidden", "not yours")
    with pytest.raises(Forbidden, match=r"^get ConfigMap shop/a: not yours$"):
        await client.find(ConfigMap, "a")


async def test_discovery_is_available_to_users(client: Client, server: ScriptedServer) -> None:
    server.answers({"resources": [{"name": "pods", "kind": "Pod", "namespaced": True}]})
    (found,) = await client.discover("v1")

    assert found.name == "pods"


async def test_schemas_are_those_of_the_kinds_in_one_version(client: Client, server: ScriptedServer) -> None:
    def schema(version: str, kind: str) -> JSONObject:
        gvk: JSONObject = {"group": "example.com", "version": version, "kind": kind}
        return {"type": "object", "x-kubernetes-group-version-kind": [gvk]}

    schemas: JSONObject = {"a": schema("v1", "Widget"), "b": schema("v2", "Widget"), "c": {"type": "string"}}
    server.answers({"openapi": "3.0.0", "components": {"schemas": schemas}})

    assert await client.schemas("example.com/v1") == {"Widget": schemas["a"]}
    assert server.sent[0].target == "/openapi/v3/apis/example.com/v1"


# deleting


async def test_delete_takes_an_object_or_a_kind_and_a_name(client: Client, server: ScriptedServer) -> None:
    server.answers({"kind": "Status", "status": "Success"})
    server.answers({"kind": "ConfigMap", "metadata": {"name": "a"}})
    await client.delete(ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", uid="u-1")))
    await client.delete(ConfigMap, "a")

    for sent in server.sent:
        assert (sent.method, sent.target) == ("DELETE", PATH)
        assert sent.json == {"apiVersion": "v1", "kind": "DeleteOptions"}
        assert sent.header("Content-Type") == ["application/json"]


@pytest.mark.parametrize("propagation", ["Orphan", "Background", "Foreground"])
async def test_delete_sends_its_options(client: Client, server: ScriptedServer, propagation: Propagation) -> None:
    server.answers({})
    await client.delete(
        ConfigMap, "a", propagation=propagation, grace_period=0, uid="u-1", resource_version="7", dry_run=True
    )

    assert server.sent[0].json == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u-1", "resourceVersion": "7"},
        "dryRun": ["All"],
    }


async def test_one_precondition_is_enough(client: Client, server: ScriptedServer) -> None:
    server.refuses(409, "Conflict", "the UID in the precondition does not match")
    with pytest.raises(Conflict, match=r"^delete ConfigMap shop/a: the UID"):
        await client.delete(ConfigMap, "a", uid="u-1")

    assert server.sent[0].json == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1"}}


async def test_deleting_an_absent_object_is_an_error_unless_ignored(client: Client, server: ScriptedServer) -> None:
    for _ in range(2):
        server.refuses(404, "NotFound", 'configmaps "a" not found', name="a")
    with pytest.raises(NotFound, match=r"^delete ConfigMap shop/a: "):
        await client.delete(ConfigMap, "a")
    await client.delete(ConfigMap, "a", missing_ok=True)


async def test_a_404_that_does_not_name_the_object_is_never_ignored(client: Client, server: ScriptedServer) -> None:
    for _ in range(2):
        server.answers(b"no such page", status=404)
    with pytest.raises(NotFound):
        await client.delete(ConfigMap, "a", missing_ok=True)


async def test_delete_all_deletes_what_matches_in_one_namespace(client: Client, server: ScriptedServer) -> None:
    server.answers({})
    server.answers({})
    await client.delete_all(
        ConfigMap, namespace="shop", labels={"app": "web"}, fields={"metadata.name": "a"}, propagation="Background"
    )
    await client.in_namespace("other").delete_all(ConfigMap, grace_period=5, dry_run=True)

    first, second = server.sent
    assert (first.method, first.path) == ("DELETE", "/api/v1/namespaces/shop/configmaps")
    assert first.query == {"labelSelector": "app=web", "fieldSelector": "metadata.name=a"}
    assert first.json == {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    assert second.target == "/api/v1/namespaces/other/configmaps"
    assert second.json == {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 5, "dryRun": ["All"]}


async def test_delete_all_of_a_namespaced_kind_needs_a_namespace(client: Client, server: ScriptedServer) -> None:
    """The namespace of the configuration is not good enough for that."""
    with pytest.raises(ValueError, match=r"delete_all\(ConfigMap\) needs namespace="):
        await client.delete_all(ConfigMap, labels={"app": "web"})

    assert server.sent == []


async def test_delete_all_of_a_cluster_scoped_kind_needs_none(client: Client, server: ScriptedServer) -> None:
    server.refuses(403, "Forbidden")
    with pytest.raises(Forbidden, match=r"^delete all Node: no$"):
        await client.delete_all(Node, labels={"spot": True})

    assert server.sent[0].target == "/api/v1/nodes?labelSelector=spot"


# the namespaced view


async def test_a_view_stays_in_its_namespace(client: Client, server: ScriptedServer) -> None:
    view = client.in_namespace("other")
    for _ in range(2):
        server.answers({"metadata": {"name": "a"}})
    server.answers({"items": []})
    server.streams()
    await view.get(ConfigMap, "a")
    await view.create(ConfigMap(metadata=ObjectMeta(name="a")))
    await view.list(ConfigMap)
    async with view.watch(ConfigMap):
        pass

    assert view.namespace == "other"
    assert {sent.path.removesuffix("/a") for sent in server.sent} == {"/api/v1/namespaces/other/configmaps"}


async def test_a_view_refuses_another_namespace(client: Client, server: ScriptedServer) -> None:
    view = client.in_namespace("other")
    stranger = ConfigMap(metadata=ObjectMeta(name="a", namespace="shop"))
    words = 'this client stays in the namespace "other" and does not go to "shop"'
    for attempt in (
        view.get(ConfigMap, "a", namespace="shop"),
        view.get(ConfigMap, stranger.key),
        view.create(stranger),
        view.update(stranger),
        view.apply(stranger),
        view.delete(stranger),
        view.delete_all(ConfigMap, namespace="shop"),
        view.status.update(stranger),
        view.evict("web-1", namespace="shop"),
        anext(view.logs("web-1", namespace="shop")),
        anext(aiter(view.list(ConfigMap, namespace="shop"))),
    ):
        with pytest.raises(ValueError, match=words):
            await attempt
    with pytest.raises(ValueError, match=words):
        view.watch(ConfigMap, namespace="shop")

    assert server.sent == []


async def test_a_view_accepts_its_own_namespace_and_keeps_the_options(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a"}})
    await client.in_namespace("other").create(ConfigMap(metadata=ObjectMeta(name="a", namespace="other")))

    assert server.sent[0].target == "/api/v1/namespaces/other/configmaps?fieldManager=kubewright"


# wrong usage


async def test_an_object_without_a_name_is_refused(client: Client, server: ScriptedServer) -> None:
    nameless = ConfigMap()
    for attempt in (
        client.get(ConfigMap, ""),
        client.update(nameless),
        client.apply(nameless),
        client.patch(nameless),
        client.delete(nameless),
        client.status.update(nameless),
    ):
        with pytest.raises(ValueError, match=r"^the ConfigMap has no name$"):
            await attempt

    assert server.sent == []


async def test_a_kind_without_a_name_is_refused(client: Client, server: ScriptedServer) -> None:
    with pytest.raises(TypeError, match=r"^which ConfigMap\? Give an object, or a kind and a name$"):
        await client.delete(ConfigMap)  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(TypeError, match=r"^which ConfigMap\? "):
        await client.patch(ConfigMap, MergePatch({}))  # type: ignore[call-overload]  # that is the mistake
    with pytest.raises(TypeError, match=r"^which Pod\? "):
        await client.get_scale(Pod)

    assert server.sent == []


@pytest.mark.parametrize("name", [".", ".."])
async def test_a_name_that_would_change_the_endpoint_is_refused(client: Client, name: str) -> None:
    with pytest.raises(ValueError, match=f'"{name}" cannot be the name of an object'):
        await client.delete(ConfigMap, name)


async def test_a_class_that_is_no_kind_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="Unnamed is not a kind yet: decorate it with @resource"):
        await client.get(Unnamed, "a")


def test_without_any_configuration_the_error_lists_what_was_tried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="nowhere"):
        Client()


async def test_closing_a_client_closes_its_transport(client: Client, server: ScriptedServer) -> None:
    async with client as entered:
        assert entered is client
        assert not server.is_closed

    assert server.is_closed


async def test_closing_a_view_leaves_the_client_open(client: Client, server: ScriptedServer) -> None:
    async with client.in_namespace("shop") as view:
        await view.aclose()
        await view.in_namespace("shop").aclose()

    assert not server.is_closed


async def test_a_separate_client_has_connections_of_its_own_and_no_rate_limit(serve: Serve) -> None:
    """A limit of one request in a day holds up only the client it was made for."""
    numbers = []

    async def handler(peer: Peer) -> None:
        while True:
            await peer.request()
            numbers.append(peer.number)
            await peer.answer(b'{"metadata": {"name": "a", "namespace": "shop"}}')

    address = (await serve(handler)).address
    client = Client(Config(server=f"http://{address}", namespace="shop"), rate_limit=TokenBucket(1 / 86400))
    separate = client.in_namespace("shop").separate()
    await client.get(ConfigMap, "a")
    for _ in range(3):
        await separate.get(ConfigMap, "a")
    await client.aclose()
    await separate.get(ConfigMap, "a")
    await separate.aclose()

    assert separate.namespace == "shop"
    assert numbers == [0, 1, 1, 1, 1]
    assert client.answers == {("200", "GET", address): 5}
    with pytest.raises(RuntimeError, match="is closed"):
        await separate.get(ConfigMap, "a")


async def test_a_separate_client_shares_a_transport_that_was_given(client: Client, server: ScriptedServer) -> None:
    async with client.separate() as separate:
        server.answers({"metadata": {"name": "a", "namespace": "shop"}})
        await separate.get(ConfigMap, "a")

    assert not server.is_closed
