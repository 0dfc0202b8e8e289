from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import Pod
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.api.resources import resource_info
from kubewright.client.config.config import Config
from kubewright.client.errors import Forbidden, NotFound, ProtocolError
from kubewright.client.mapping import Mapper
from kubewright.client.session import Session

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer

Widget = Dynamic.of("example.com/v1", "Widget")
Gadget = Dynamic.of("example.com/v1", "Gadget")


def resources(*entries: dict[str, JSONValue]) -> dict[str, JSONValue]:
    return {"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": list(entries)}


WIDGETS: dict[str, JSONValue] = {
    "name": "widgetry",
    "singularName": "widget",
    "kind": "Widget",
    "namespaced": True,
    "verbs": ["get", "list"],
    "shortNames": ["wi"],
    "categories": None,
}
WIDGETS_STATUS: dict[str, JSONValue] = {"name": "widgetry/status", "kind": "Widget", "namespaced": True}
NO_DEFINITIONS: dict[str, JSONValue] = {"items": []}
GADGETS: dict[str, JSONValue] = {"name": "gadgets", "kind": "Gadget", "namespaced": False}


@pytest.fixture
def mapper(server: ScriptedServer) -> Mapper:
    return Mapper(Session(Config(server="https://kubernetes.example.com"), transport=server))


async def test_a_typed_kind_needs_no_discovery(mapper: Mapper, server: ScriptedServer) -> None:
    assert await mapper.info(Pod) == resource_info(Pod)
    assert server.sent == []


async def test_a_dynamic_kind_that_says_all_itself_needs_no_discovery(mapper: Mapper, server: ScriptedServer) -> None:
    info = await mapper.info(Dynamic.of("example.com/v1", "Widget", plural="widgetry", namespaced=False))

    assert (info.plural, info.namespaced) == ("widgetry", False)
    assert server.sent == []


async def test_an_unknown_scope_is_discovered(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources(WIDGETS, WIDGETS_STATUS))
    info = await mapper.info(Widget)

    assert (info.plural, info.singular, info.namespaced, info.short_names) == ("widgetry", "widget", True, ("wi",))
    assert info.has_status
    assert [sent.target for sent in server.sent] == ["/apis/example.com/v1"]


async def test_a_group_and_version_is_discovered_once(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources(WIDGETS, WIDGETS_STATUS, GADGETS))
    await mapper.info(Widget)
    await mapper.info(Widget)
    gadget = await mapper.info(Gadget)

    assert not gadget.namespaced
    assert not gadget.has_status
    assert len(server.sent) == 1


async def test_the_core_group_is_discovered_at_its_own_root(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources({"name": "pods", "kind": "Pod", "namespaced": True}))
    await mapper.info(Dynamic.of("v1", "Pod"))

    assert server.sent[0].target == "/api/v1"


async def test_a_missing_kind_is_an_error_that_lists_the_others(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources(WIDGETS, GADGETS))
    server.answers(NO_DEFINITIONS)
    with pytest.raises(NotFound) as caught:
        await mapper.info(Dynamic.of("example.com/v1", "Wigdet"))

    assert str(caught.value) == (
        "the server has no such kind, Wigdet in example.com/v1 (kinds there: Gadget, Widget): "
        "is its CustomResourceDefinition installed?"
    )
    assert caught.value.code == 404


async def test_a_missing_group_is_the_same_error(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(b"404 page not found\n", status=404, headers={"Content-Type": "text/plain"})
    server.answers(NO_DEFINITIONS)
    with pytest.raises(NotFound, match=r"no such kind, Widget in example.com/v1 \(kinds there: none\)"):
        await mapper.info(Widget)


async def test_a_missing_kind_is_looked_up_again(mapper: Mapper, server: ScriptedServer) -> None:
    """Its definition may have been installed since."""
    server.answers(status=404)
    server.answers(NO_DEFINITIONS)
    with pytest.raises(NotFound):
        await mapper.info(Widget)

    server.answers(resources(WIDGETS))
    assert (await mapper.info(Widget)).plural == "widgetry"


async def test_a_refused_discovery_is_not_a_missing_kind(mapper: Mapper, server: ScriptedServer) -> None:
    server.refuses(403, "Forbidden")
    with pytest.raises(Forbidden, match=r"^discover example.com/v1: no$"):
        await mapper.info(Widget)


async def test_a_discovery_that_is_no_json_names_itself(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(b"<html>", headers={"Content-Type": "text/html"})
    with pytest.raises(ProtocolError, match=r"^discover example.com/v1: the server answered 200 \(text/html\)"):
        await mapper.info(Widget)


async def test_discovery_shows_subresources_too(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources(WIDGETS, WIDGETS_STATUS))
    found = await mapper.resources("example.com/v1")

    assert [(entry.name, entry.kind, entry.verbs) for entry in found] == [
        ("widgetry", "Widget", ["get", "list"]),
        ("widgetry/status", "Widget", []),
    ]


async def test_a_version_that_is_none_is_refused(mapper: Mapper) -> None:
    with pytest.raises(ValueError, match='"a/b/c", kind'):
        await mapper.resources("a/b/c")


NOT_FOUND_PAGE = b"404 page not found\n"


def groups(*versions: str) -> dict[str, JSONValue]:
    group: dict[str, JSONValue] = {"name": "example.com", "versions": [{"groupVersion": each} for each in versions]}
    return {"kind": "APIGroupList", "groups": [group]}


async def test_a_kind_is_served_when_discovery_has_it(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(resources(WIDGETS))
    assert await mapper.serves(Widget)
    server.answers(resources(GADGETS, {**WIDGETS, "name": "gadgets/status"}))
    assert not await mapper.serves(Widget)


async def test_a_kind_is_not_served_when_discovery_lists_other_versions(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(NOT_FOUND_PAGE, status=404)
    server.answers(groups("example.com/v2"))
    assert not await mapper.serves(Widget)


async def test_a_404_alone_does_not_say_that_a_kind_is_not_served(mapper: Mapper, server: ScriptedServer) -> None:
    server.answers(NOT_FOUND_PAGE, status=404)
    server.answers(groups("example.com/v1"))
    with pytest.raises(NotFound):
        await mapper.serves(Widget)
    server.answers(NOT_FOUND_PAGE, status=404)
    server.answers(NOT_FOUND_PAGE, status=404)
    with pytest.raises(NotFound):
        await mapper.serves(Widget)
    server.answers(NOT_FOUND_PAGE, status=404)
    with pytest.raises(NotFound):
        await mapper.serves(Pod)


@pytest.mark.parametrize("status", [200, 404])
async def test_json_that_is_no_discovery_does_not_say_that_a_kind_is_not_served(
    mapper: Mapper, server: ScriptedServer, status: int
) -> None:
    server.answers({"status": "ok"}, status=status)
    if status == 404:
        server.answers({"status": "ok"})
    with pytest.raises(ProtocolError, match='the server answered with the kind "": expected API'):
        await mapper.serves(Widget)
