"""A kind that a definition claims is waited for, and no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource
from kubewright.client.client import Client
from kubewright.client.errors import NoSuchKind, NotFound
from kubewright.client.wait import exists

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer, VirtualTime

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAGE = b"404 page not found\n"
NOTHING_SERVED: dict[str, JSONValue] = {"kind": "APIResourceList", "resources": []}
NO_WIDGETS = (
    r"Widget.*: the server has no such kind, widgets in example.com/v1: is its CustomResourceDefinition installed\?"
)


@resource("example.com/v1")
class Widget(Object):
    """A kind of a definition."""


WIDGET: dict[str, JSONValue] = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"name": "a"}}
RESOURCES: dict[str, JSONValue] = {
    "kind": "APIResourceList",
    "resources": [{"name": "widgets", "kind": "Widget", "namespaced": True}],
}


def definition(**spec: JSONValue) -> dict[str, JSONValue]:
    names: JSONValue = {"plural": "widgets", "kind": "Widget"}
    versions: JSONValue = [{"name": "v0", "served": True}, {"name": "v1", "served": True}]
    return {"metadata": {"name": "widgets.example.com"}, "spec": {"names": names, "versions": versions, **spec}}


def paths(server: ScriptedServer) -> list[str]:
    return [f"{sent.method} {sent.path}" for sent in server.sent]


def test_a_kind_that_is_not_served_yet_is_waited_for(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    for _ in range(3):
        server.answers(PAGE, status=404)
        server.answers(definition())
    server.answers(WIDGET, status=201)
    made = virtual_time.run(client.create(Widget()))

    assert made.metadata.name == "a"
    own = "POST /apis/example.com/v1/namespaces/shop/widgets"
    assert paths(server) == [own, f"GET {DEFINITIONS}/widgets.example.com"] * 3 + [own]


def test_a_kind_that_is_known_by_name_alone_is_waited_for(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    """First until discovery has it, then until its endpoints are there."""
    listed: dict[str, JSONValue] = {
        "items": [{"metadata": {"name": name}} for name in ("widgets.example.com", "widgets.elsewhere.com")]
    }
    for answer in (None, {**RESOURCES, "resources": []}):
        if answer is None:
            server.answers(PAGE, status=404)
        else:
            server.answers(answer)
        server.answers(listed)
        server.answers(definition())
    server.answers(RESOURCES)
    server.answers(PAGE, status=404)
    server.answers(definition())
    server.answers(WIDGET)
    found = virtual_time.run(client.get(Dynamic.of("example.com/v1", "Widget"), "a"))

    assert found.metadata.name == "a"


def test_a_kind_is_not_waited_for_longer_than_some_seconds(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    for _ in range(10):
        server.answers(PAGE, status=404)
        server.answers(definition())
    server.answers(PAGE, status=404)
    with pytest.raises(NotFound, match="404 page not found"):
        virtual_time.run(client.get(Widget, "a"))

    assert 5 < virtual_time.elapsed < 10


@pytest.mark.parametrize(
    "unfit",
    [
        definition(versions=[{"name": "v1", "served": False}, {"name": "v0", "served": True}]),
        {**definition(), "metadata": {"name": "widgets.example.com", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {**definition(), "status": {"conditions": [{"type": "NamesAccepted", "status": "False"}]}},
    ],
    ids=["another version", "being deleted", "names refused"],
)
def test_a_definition_that_will_not_serve_the_kind_is_not_waited_for(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime, unfit: dict[str, JSONValue]
) -> None:
    server.answers(PAGE, status=404)
    server.answers(unfit)
    server.answers(NOTHING_SERVED)
    with pytest.raises(NoSuchKind):
        virtual_time.run(client.get(Widget, "a"))

    assert virtual_time.elapsed == 0


@pytest.mark.parametrize("code", [403, 404])
def test_without_permission_for_definitions_or_without_one_the_error_is_raised_at_once(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime, code: int
) -> None:
    server.answers(PAGE, status=404)
    server.refuses(code, "Forbidden" if code == 403 else "NotFound", name="widgets.example.com")
    server.answers(NOTHING_SERVED)
    with pytest.raises(NoSuchKind, match=NO_WIDGETS):
        virtual_time.run(client.get(Widget, "a"))

    server.answers(PAGE, status=404)
    server.refuses(403, "Forbidden")
    with pytest.raises(NotFound, match=r"the server has no such kind, Widget in example\.com/v1"):
        virtual_time.run(client.get(Dynamic.of("example.com/v1", "Widget"), "a"))

    assert virtual_time.elapsed == 0


async def test_objects_that_are_not_there_and_kinds_of_kubernetes_need_no_definition(
    client: Client, server: ScriptedServer
) -> None:
    server.refuses(404, "NotFound", name="a")
    assert await client.find(Widget, "a") is None
    server.answers(PAGE, status=404)
    server.answers({"kind": "APIResourceList", "resources": [{"name": "configmaps", "kind": "ConfigMap"}]})
    with pytest.raises(NotFound) as raised:
        await client.get(ConfigMap, "a")

    assert not isinstance(raised.value, NoSuchKind)
    assert [sent.path for sent in server.sent[1:]] == ["/api/v1/namespaces/shop/configmaps/a", "/api/v1"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get(Widget, "a"),
        lambda client: client.find(Widget, "a"),
        lambda client: client.list(Widget)._all(),
        lambda client: client.create(Widget(metadata=ObjectMeta(name="a"))),
        lambda client: client.delete(Widget, "a", missing_ok=True),
        lambda client: client.wait_for(Widget, "a", exists),
        lambda client: client.watch(Widget).__aenter__(),
    ],
    ids=["get", "find", "list", "create", "delete", "wait_for", "watch"],
)
async def test_every_request_for_a_kind_that_is_not_served_says_so(
    client: Client, server: ScriptedServer, ask: Callable[[Client], Awaitable[object]]
) -> None:
    server.answers(PAGE, status=404)
    server.refuses(404, "NotFound", name="widgets.example.com")
    server.answers(PAGE, status=404)
    server.answers({"kind": "APIGroupList", "groups": []})
    with pytest.raises(NoSuchKind, match=NO_WIDGETS):
        await ask(client)


async def test_a_404_that_discovery_does_not_confirm_is_not_about_the_kind(
    client: Client, server: ScriptedServer
) -> None:
    """A proxy that has lost its way answers 404 to everything."""
    for _ in range(6):
        server.answers(PAGE, status=404)
    with pytest.raises(NotFound, match=r"^get Widget shop/a: HTTP 404") as raised:
        await client.get(Widget, "a")

    assert not isinstance(raised.value, NoSuchKind)
