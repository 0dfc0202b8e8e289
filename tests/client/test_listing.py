from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import ConfigMap, Node, Secret
from kubewright.api.dynamic import metadata_only
from kubewright.api.markers import JSONValue
from kubewright.api.meta import LabelSelector
from kubewright.client.client import Client
from kubewright.client.errors import Expired, Forbidden, ProtocolError

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer


def page(*names: str, continue_: str = "", revision: str = "7") -> dict[str, JSONValue]:
    items: list[JSONValue] = [{"metadata": {"name": name, "namespace": "shop"}} for name in names]
    return {"kind": "ConfigMapList", "metadata": {"resourceVersion": revision, "continue": continue_}, "items": items}


async def test_awaiting_gives_the_objects_of_all_pages(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a", "b", continue_="next-1"))
    server.answers(page("c", continue_="next-2"))
    server.answers(page("d"))
    found = await client.list(ConfigMap, page_size=2)

    assert [item.metadata.name for item in found] == ["a", "b", "c", "d"]
    assert [sent.query for sent in server.sent] == [
        {"limit": "2"},
        {"limit": "2", "continue": "next-1"},
        {"limit": "2", "continue": "next-2"},
    ]


async def test_iterating_requests_the_next_page_when_it_is_needed(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a", "b", continue_="next-1"))
    server.answers(page("c"))
    requests = [(item.metadata.name, len(server.sent)) async for item in client.list(ConfigMap)]

    assert requests == [("a", 1), ("b", 1), ("c", 2)]
    assert server.sent[0].query == {"limit": "500"}


async def test_leaving_early_requests_no_further_page(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a", continue_="next-1"))
    async for item in client.list(ConfigMap):
        assert item.metadata.name == "a"
        break

    assert len(server.sent) == 1


async def test_pages_show_their_revision(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a", continue_="next-1", revision="42"))
    server.answers(page("b", revision="42"))
    async with aclosing(client.list(ConfigMap).pages()) as pages:
        seen = [(page.metadata.resource_version, len(page.items)) async for page in pages]

    assert seen == [("42", 1), ("42", 1)]


async def test_a_listing_can_be_read_again_with_new_requests(client: Client, server: ScriptedServer) -> None:
    listing = client.list(ConfigMap)
    server.answers(page("a"))
    server.answers(page("a", "b"))

    assert (len(await listing), len(await listing)) == (1, 2)


@pytest.mark.parametrize("items", [[], None], ids=["empty", "null"])
async def test_an_empty_list_has_no_items(client: Client, server: ScriptedServer, items: JSONValue) -> None:
    server.answers({"kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": items})

    assert await client.list(ConfigMap) == []


async def test_a_revision_is_sent_for_the_first_page_only(client: Client, server: ScriptedServer) -> None:
    """A continue token names its revision; the server refuses another one beside it."""
    server.answers(page("a", continue_="next-1"))
    server.answers(page("b"))
    await client.list(ConfigMap, resource_version="5", resource_version_match="NotOlderThan", page_size=1)

    assert server.sent[0].query == {"limit": "1", "resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"}
    assert server.sent[1].query == {"limit": "1", "continue": "next-1"}


async def test_awaiting_starts_over_with_one_whole_list_when_the_pages_expire(
    client: Client, server: ScriptedServer
) -> None:
    server.answers(page("a", continue_="next-1"))
    server.refuses(410, "Expired")
    server.answers(page("x", "y", "z"))
    found = await client.list(ConfigMap, labels={"app": "web"}, page_size=1)

    assert [item.metadata.name for item in found] == ["x", "y", "z"]
    assert server.sent[2].query == {"labelSelector": "app=web"}


async def test_iterating_raises_when_the_pages_expire(client: Client, server: ScriptedServer) -> None:
    """What was handed out cannot be taken back, so the caller decides."""
    server.answers(page("a", continue_="next-1"))
    server.refuses(410, "Expired", "the continue token is too old")
    items = aiter(client.list(ConfigMap))
    assert (await anext(items)).metadata.name == "a"
    with pytest.raises(Expired, match=r"^list ConfigMap in all namespaces: the continue token is too old$"):
        await anext(items)


async def test_a_whole_list_that_expires_too_is_an_error(client: Client, server: ScriptedServer) -> None:
    server.refuses(410, "Expired")
    server.refuses(410, "Expired")
    with pytest.raises(Expired):
        await client.list(ConfigMap, resource_version="1", resource_version_match="Exact")


async def test_a_list_can_be_unpaged(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a"))
    await client.list(ConfigMap, page_size=0)

    assert server.sent[0].query == {}


async def test_selectors_are_sent_as_the_server_reads_them(client: Client, server: ScriptedServer) -> None:
    server.answers(page())
    server.answers(page())
    await client.list(ConfigMap, labels={"app": ["a", "b"]}, fields={"metadata.name": "x,y"})
    await client.list(ConfigMap, labels=LabelSelector(match_labels={"app": "web"}))

    assert server.sent[0].query["labelSelector"] == "app in (a,b)"
    assert server.sent[0].query["fieldSelector"] == r"metadata.name=x\,y"
    assert server.sent[1].query["labelSelector"] == "app=web"


async def test_lists_span_all_namespaces_unless_one_is_given(client: Client, server: ScriptedServer) -> None:
    for _ in range(3):
        server.answers(page())
    await client.list(ConfigMap)
    await client.list(ConfigMap, namespace="kube-system")
    await client.in_namespace("kube-system").list(Node)

    assert [sent.path for sent in server.sent] == [
        "/api/v1/configmaps",
        "/api/v1/namespaces/kube-system/configmaps",
        "/api/v1/nodes",
    ]


async def test_only_metadata_is_requested_where_metadata_is_enough(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a"))
    (found,) = await client.list(metadata_only(Secret))

    assert found.metadata.name == "a"
    assert server.sent[0].path == "/api/v1/secrets"
    assert server.sent[0].header("Accept") == ["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]


async def test_items_know_their_kind_though_lists_do_not_repeat_it(client: Client, server: ScriptedServer) -> None:
    server.answers(page("a"))
    (found,) = await client.list(ConfigMap)

    assert (found.api_version, found.kind) == ("v1", "ConfigMap")


def named(name: str, data: JSONValue) -> dict[str, JSONValue]:
    return {"metadata": {"name": name, "namespace": "shop"}, "data": data}


async def test_objects_that_do_not_fit_their_type_are_left_out_and_each_is_logged_once(
    client: Client, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        server.answers({"items": [named("a", {"x": "1"}), named("b", 7), named("c", {}), named("d", [])]})
        assert [each.metadata.name for each in await client.list(ConfigMap, namespace="shop")] == ["a", "c"]

    assert client.skipped.counts == {"ConfigMap": 4}
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        'ConfigMap "shop/b"',
        'ConfigMap "shop/d"',
    ]


async def test_one_object_that_is_nested_too_deeply_does_not_hold_up_the_others(
    client: Client, server: ScriptedServer
) -> None:
    deep = b'{"metadata":{"name":"b"},"data":%b1%b}' % (b'{"a":' * 100_000, b"}" * 100_000)
    fine = b'{"metadata":{"name":"a"},"data":{"x":"},]"}}'
    server.answers(b'{"items":[%b,%b,%b],"metadata":{"resourceVersion":"7"}}' % (fine, deep, fine))
    (page,) = [page async for page in client.list(ConfigMap).pages()]

    assert page.metadata.resource_version == "7"
    assert [each.data for each in page.items] == [{"x": "},]"}] * 2
    assert client.skipped.counts == {"ConfigMap": 1}


async def test_an_answer_that_is_cut_short_is_a_protocol_error(client: Client, server: ScriptedServer) -> None:
    server.answers(b'{"items": [{"metad', headers={"Content-Type": "application/json"})
    with pytest.raises(ProtocolError, match=r"^list ConfigMap in shop: the server answered 200 \(application/json\)"):
        await client.list(ConfigMap, namespace="shop")


async def test_a_refusal_names_the_list(client: Client, server: ScriptedServer) -> None:
    server.refuses(403, "Forbidden", 'User "jane" cannot list resource "configmaps"')
    with pytest.raises(Forbidden, match=r'^list ConfigMap in shop: User "jane" cannot list'):
        await client.list(ConfigMap, namespace="shop")
