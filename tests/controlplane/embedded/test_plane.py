"""What an embedded control plane can do beyond a real one, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from random import Random

import pytest
from msgspec.structs import replace

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.codec import decode_json
from kubewright.api.core.v1 import ConfigMap, Container, Namespace, Pod, PodSpec, ServiceAccount
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.client import Client, Config
from kubewright.client.config.credentials import StaticCredentials, bearer
from kubewright.client.errors import (
    ConnectionLost,
    Expired,
    Forbidden,
    InternalError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from kubewright.client.http.transport import HTTPTransport
from kubewright.client.session import default_user_agent
from kubewright.client.wait import condition, deleted, exists
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane


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


async def test_a_request_fails_as_often_as_the_fault_says(
    embedded_control_plane: EmbeddedControlPlane, client: Client
) -> None:
    embedded_control_plane.faults.fail(creates, code=500, message="no luck", times=2)
    async with client:
        for _ in range(2):
            with pytest.raises(InternalError, match="no luck"):
                await client.create(config_map())
        assert (await client.create(config_map())).metadata.uid


async def test_a_fault_may_set_retry_after(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
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
    embedded_control_plane.faults.delay(creates, go_on, times=2)
    async with client:
        creating = [asyncio.create_task(client.create(config_map(name))) for name in ("a", "b")]
        assert await client.find(ConfigMap, "a") is None
        go_on.set()
        for created in await asyncio.gather(*creating):
            assert created.metadata.uid


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_a_watch_is_cut_right_after_so_many_events(
    embedded_control_plane: EmbeddedControlPlane, client: Client, count: int
) -> None:
    embedded_control_plane.faults.cut_watches(lambda target: target.resource == "configmaps", after_events=count)
    seen: list[str] = []

    async def watch_from(start: str) -> None:
        async with client.watch(ConfigMap, resource_version=start) as events:
            async for event in events:
                seen.append(event.header.name)

    async with client:
        start = (await client.create(config_map())).metadata.resource_version
        for name in ("b", "c", "d"):
            await client.create(config_map(name))
        with pytest.raises(ConnectionLost):
            await watch_from(start)
        assert seen == ["b", "c", "d"][:count]
        async with client.watch(ConfigMap, resource_version=start) as events:
            assert (await anext(aiter(events))).header.name == "b"


async def test_a_watch_can_be_refused_like_any_request(
    embedded_control_plane: EmbeddedControlPlane, client: Client
) -> None:
    def watches(target: Target) -> bool:
        return (target.verb, target.resource) == ("watch", "configmaps")

    embedded_control_plane.faults.fail(watches, code=410, message="too old")
    async with client:
        await client.create(config_map())
        with pytest.raises(Expired, match="too old"):
            async with client.watch(ConfigMap, resource_version="1") as events:
                await anext(aiter(events))


async def test_a_refusal_may_set_retry_after(embedded_control_plane: EmbeddedControlPlane) -> None:
    embedded_control_plane.faults.fail(creates, code=429, retry_after=7)
    transport = HTTPTransport(embedded_control_plane.url, tls=embedded_control_plane.admin.ssl_context())
    answer = await transport.request("POST", "/api/v1/namespaces/default/configmaps", (), b"{}")
    await transport.aclose()
    assert (answer.status, answer.headers.get("Retry-After")) == (429, "7")
    assert decode_json(answer.body) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "injected fault",
        "reason": "TooManyRequests",
        "details": {"retryAfterSeconds": 7},
        "code": 429,
    }


async def test_its_own_controllers_never_fall_silent() -> None:
    """They do without the checks by which other programs notice."""
    async with ControlPlane.embedded() as plane, plane.client() as admin:
        client = admin.in_namespace("default")
        await client.wait_for(ServiceAccount, "default", exists, timeout=20)
        plane.faults.silence_open_watches(lambda target: True)
        pod = await client.create(
            Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[Container(name="app", image="app:1")]))
        )
        assert await client.wait_for(pod, condition("Ready"), timeout=20)


async def test_a_compacted_revision_has_expired(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
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


async def test_uids_and_generated_names_follow_from_given_random_numbers() -> None:
    async def made(seed: int) -> tuple[str, str]:
        async with ControlPlane.embedded(controllers=[], random=Random(seed)) as plane, plane.client() as client:
            created = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="a-", namespace="default")))
            return created.metadata.uid, created.metadata.name

    assert await made(1) == await made(1)
    assert set(await made(1)).isdisjoint(await made(2))


async def test_a_client_can_have_the_transport_of_this_process(embedded_control_plane: EmbeddedControlPlane) -> None:
    config = Config.from_kubeconfig_text(embedded_control_plane.kubeconfig())
    async with Client(config, transport=embedded_control_plane.transport()) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
        async with embedded_control_plane.client() as other:
            assert await other.find(ConfigMap, "a", namespace="default") is not None


async def test_every_request_is_in_the_audit_log(embedded_control_plane: EmbeddedControlPlane, client: Client) -> None:
    async with client:
        with pytest.raises(NotFound):
            await client.get(ConfigMap, "nothing")
    (event,) = [event for event in embedded_control_plane.audit.events if event.name == "nothing"]
    assert (event.user, event.verb, event.resource, event.namespace) == ("admin", "get", "configmaps", "default")
    assert event.status == 404


async def test_requests_can_be_followed_as_they_come(
    embedded_control_plane: EmbeddedControlPlane, client: Client
) -> None:
    async with client:
        requests = embedded_control_plane.audit.follow()
        await client.delete(await client.create(config_map()))
        first, second = await anext(requests), await anext(requests)
    assert [(event.verb, event.name, event.status) for event in (first, second)] == [
        ("create", "", 201),
        ("delete", "a", 200),
    ]
    assert first.user_agent == default_user_agent()


async def test_a_control_plane_that_just_runs_has_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    """Its garbage collector watches deprecated kinds too; a warning about that would have no reader.

    Nor would the reconciles of its own controllers.
    """
    caplog.set_level(logging.INFO)
    async with ControlPlane.embedded() as plane, plane.client() as client:
        owner = await client.create(config_map("owner"))
        reference = OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)
        metadata = ObjectMeta(name="child", namespace="default", owner_references=[reference])
        child = await client.create(ConfigMap(metadata=metadata))
        await client.delete(owner)
        await client.wait_for(child, deleted, timeout=30)
        assert any(event.resource == "endpoints" for event in plane.audit.events)
    assert caplog.messages == []


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
        config = Config.from_kubeconfig_text(plane.kubeconfig())
        async with Client(replace(config, credentials=StaticCredentials(bearer("sesame")))) as client:
            assert (await client.get(Namespace, "default")).metadata.uid
        async with Client(replace(config, credentials=StaticCredentials(bearer("wrong")))) as client:
            with pytest.raises(Unauthorized):
                await client.get(Namespace, "default")


async def test_nothing_is_left_when_it_has_stopped() -> None:
    before = asyncio.all_tasks()
    async with ControlPlane.embedded() as plane:
        url = plane.url
        assert asyncio.all_tasks() != before
    assert asyncio.all_tasks() == before
    host, port = url.removeprefix("https://").split(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


async def test_wrong_uses_are_reported() -> None:
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
