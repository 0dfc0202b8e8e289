"""What an embedded control plane can do beyond a real one, and that nothing is left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.core.v1 import ConfigMap, Namespace, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.client.errors import (
    ConnectionLost,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.embedded.request import Target


@pytest.fixture
async def embedded_control_plane() -> AsyncIterator[EmbeddedControlPlane]:
    """Without controllers, so that only the test makes requests."""
    async with ControlPlane.embedded(controllers=[]) as plane:
        yield plane


@pytest.fixture(params=["in process", "by socket"])
def client(embedded_control_plane: EmbeddedControlPlane, request: pytest.FixtureRequest) -> Client:
    """The same answers either way."""
    if request.param == "in process":
        return embedded_control_plane.client().in_namespace("default")
    config = Config.from_kubeconfig_text(embedded_control_plane.kubeconfig())
    return Client(config).in_namespace("default")


def config_map(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def creates(target: Target) -> bool:
    return (target.verb, target.resource) == ("create", "configmaps")


async def test_what_is_written_one_way_is_read_the_other(embedded_control_plane: EmbeddedControlPlane) -> None:
    config = Config.from_kubeconfig_text(embedded_control_plane.kubeconfig())
    async with embedded_control_plane.client() as inside, Client(config) as outside:
        created = await inside.create(config_map(x="1"))
        assert await outside.get(ConfigMap, "a") == created


async def test_a_request_fails_as_often_as_it_is_told_to(
    embedded_control_plane: EmbeddedControlPlane, client: Client
) -> None:
    embedded_control_plane.faults.fail(creates, code=500, message="no luck", times=2)
    async with client:
        for _ in range(2):
            with pytest.raises(InternalError, match="no luck"):
                await client.create(config_map())
        assert (await client.create(config_map())).metadata.uid


async def test_a_fault_may_ask_to_come_back_later(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    embedded_control_plane.faults.fail(creates, code=429, times=None)
    async with client:
        with pytest.raises(TooManyRequests):
            await client.create(config_map())
        embedded_control_plane.faults.clear()
        assert (await client.create(config_map())).metadata.uid


async def test_a_connection_can_be_dropped(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    embedded_control_plane.faults.drop(creates)
    async with client:
        with pytest.raises(ConnectionLost):
            await client.create(config_map())
        assert await client.find(ConfigMap, "a") is None


async def test_a_request_can_be_held_up(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    go_on = asyncio.Event()
    embedded_control_plane.faults.delay(creates, go_on.wait())
    async with client:
        creating = asyncio.create_task(client.create(config_map()))
        assert await client.find(ConfigMap, "a") is None
        go_on.set()
        assert (await creating).metadata.uid


async def test_a_watch_can_be_cut(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    embedded_control_plane.faults.cut_watches(lambda target: target.resource == "configmaps")
    async with client:
        await client.create(config_map())
        async with client.watch(ConfigMap, resource_version="0") as events:
            with pytest.raises(ConnectionLost):
                await anext(aiter(events))


async def test_what_was_compacted_has_expired(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    async with client:
        old = await client.create(config_map())
        await client.create(config_map("b"))
        embedded_control_plane.compact()
        revision = old.metadata.resource_version
        with pytest.raises(Expired):
            await client.list(ConfigMap, resource_version=revision, resource_version_match="Exact")
        with pytest.raises(Expired):
            async with client.watch(ConfigMap, resource_version=revision) as events:
                await anext(aiter(events))


async def test_a_listing_that_expires_between_two_pages_is_read_again(
    embedded_control_plane: EmbeddedControlPlane, client: Client
) -> None:
    async with client:
        for number in range(5):
            await client.create(config_map(f"c-{number}"))
        pages = client.list(ConfigMap, page_size=2).pages()
        first = await anext(pages)
        assert len(first.items) == 2
        await client.create(config_map("later"))
        embedded_control_plane.compact()
        with pytest.raises(Expired):
            await anext(pages)


async def test_everything_can_be_reset(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    async with client:
        kept = await client.create(config_map("kept", x="1"))
        before = embedded_control_plane.snapshot()
        await client.create(config_map("new"))
        kept.data["x"] = "2"
        await client.update(kept)
        embedded_control_plane.reset(before)
        assert await client.find(ConfigMap, "new") is None
        assert (await client.get(ConfigMap, "kept")).data == {"x": "1"}


async def test_every_request_is_in_the_audit_log(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    async with client:
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "nothing")
    (event,) = [event for event in embedded_control_plane.audit.events if event.name == "nothing"]
    assert (event.user, event.verb, event.resource, event.namespace) == ("admin", "get", "configmaps", "default")
    assert event.status == 404


async def test_users_have_the_rights_they_were_given_and_no_others(
    embedded_control_plane: EmbeddedControlPlane,
) -> None:
    eve = embedded_control_plane.add_user("eve", ["guests"])
    async with embedded_control_plane.client(eve) as client:
        user = (await client.create(SelfSubjectReview())).status.user_info
        assert user is not None
        assert (user.username, user.groups) == ("eve", ["guests", "system:authenticated"])
        with pytest.raises(Forbidden, match='User "eve" cannot list resource "pods"'):
            await client.list(Pod)


async def test_static_tokens_stand_for_users() -> None:
    tokens = {"sesame": UserInfo("ali", ("system:masters",))}
    async with ControlPlane.embedded(tokens=tokens) as plane:
        text = plane.kubeconfig().split("users:")[0] + (
            "users: [{name: admin, user: {token: TOKEN}}]\n"
            "contexts: [{name: c, context: {cluster: kubewright, user: admin}}]\n"
            "current-context: c\n"
        )
        async with Client(Config.from_kubeconfig_text(text.replace("TOKEN", "sesame"))) as client:
            assert (await client.get(Namespace, "default")).metadata.uid
        async with Client(Config.from_kubeconfig_text(text.replace("TOKEN", "wrong"))) as client:
            with pytest.raises(Unauthorized):
                await client.get(Namespace, "default")


async def test_time_is_what_the_clock_says() -> None:
    async with ControlPlane.embedded(clock=lambda: 1_000_000_000.0) as plane, plane.client() as client:
        created = (await client.create(config_map())).metadata.creation_timestamp
    assert created is not None
    assert created.isoformat() == "2001-09-09T01:46:40+00:00"


async def test_nothing_is_left_when_it_has_stopped() -> None:
    before = asyncio.all_tasks()
    async with ControlPlane.embedded() as plane:
        url = plane.url
        assert asyncio.all_tasks() != before
    assert asyncio.all_tasks() == before
    host, port = url.removeprefix("https://").split(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


async def test_wrong_uses_are_told() -> None:
    with pytest.raises(ControlPlaneError, match=r"there is no controller nothing \(there are: "):
        ControlPlane.embedded(controllers=["nothing"])
    plane = ControlPlane.embedded()
    with pytest.raises(ControlPlaneError, match="is not running"):
        plane.kubeconfig()
    async with plane:
        with pytest.raises(ControlPlaneError, match="was started already"):
            await plane.start()


async def test_without_its_controllers_nothing_happens_by_itself() -> None:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        await client.create(Namespace(metadata=ObjectMeta(name="bare")))
        assert await client.list(ConfigMap, namespace="bare") == []
