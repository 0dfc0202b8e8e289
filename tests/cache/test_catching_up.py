"""A watch that is behind is waited for, and one that is not costs one request at most."""

from __future__ import annotations

import asyncio
import sys

import pytest
from tests.cache.test_client_in_process import World, run, settings, world

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import ObjectKey
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controlplane import ControlPlane

NOW = sys.maxsize


async def behind(here: World) -> None:
    """The watch loses touch, and others create, change, delete and replace an object each."""
    here.hold_watches()
    changed = await here.admin.get(ConfigMap, "changed")
    changed.data = {"is": "new"}
    await here.admin.update(changed)
    await here.admin.delete(ConfigMap, "gone")
    await here.admin.delete(ConfigMap, "replaced")
    await here.create("replaced", is_="new")
    await here.create("new")


def test_it_ends_when_all_that_was_written_before_is_there() -> None:
    async def scenario() -> None:
        async with world() as here:
            for name in ("changed", "gone", "kept", "replaced"):
                await here.create(name)
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                await behind(here)
                assert sorted(await here.names(namespace="default")) == ["changed", "gone", "kept", "replaced"]
                await handle.caught_up(NOW)
                found = {each.metadata.name: each.data for each in handle.list(namespace="default")}
                assert found == {"changed": {"is": "new"}, "kept": {}, "new": {}, "replaced": {"is_": "new"}}

    run(scenario)


@pytest.mark.parametrize("last", ["delete", "update"])
def test_a_single_difference_is_enough(last: str) -> None:
    async def scenario() -> None:
        async with world() as here:
            obj = await here.create("web")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                obj.data = {"is": "new"}
                await (here.admin.delete(obj) if last == "delete" else here.admin.update(obj))
                await handle.caught_up(NOW)
                found = handle.find(ObjectKey("default", "web"))
                assert (found.data if found else None) == (None if last == "delete" else {"is": "new"})

    run(scenario)


def test_it_is_confined_to_what_the_watch_covers() -> None:
    async def scenario() -> None:
        async with world(existing=["other"]) as here:
            await here.create("web")
            with here.cache.watch(ConfigMap, namespace="default", labels={"app": "web"}) as handle:
                await handle.synced()
                await here.create("web", "other")
                await here.create("db")
                async with asyncio.timeout(1):  # without an event of its own, and before any bookmark
                    await handle.caught_up(NOW)

    run(scenario)


def test_several_that_ask_send_one_request_and_none_when_the_watch_shows_the_revision() -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                (informer,) = handle.informers
                lease = await here.admin.create(settings("lease"))
                revision = int(lease.metadata.resource_version)
                await here.until(lambda: informer.revision == revision)
                before = here.requests
                await handle.caught_up(revision)
                assert here.requests == before
                other = await here.admin.create(Dynamic.of("v1", "ServiceAccount")(metadata=settings("other").metadata))
                revision = int(other.metadata.resource_version)
                before = here.requests
                await asyncio.gather(*(handle.caught_up(revision) for _ in range(3)))
                assert here.requests == before + 1

    run(scenario)


def test_a_list_that_fails_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.plane.faults.fail(lambda target: target.verb == "list", code=500, times=2)
                await handle.caught_up(NOW)

    run(scenario)
    assert caplog.text.count("whether the watch of configmaps is behind is not known: ") == 2


def test_a_server_that_cannot_list_metadata_is_not_asked_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.plane.faults.fail(lambda target: target.verb == "list", code=406, times=None)
                await handle.caught_up(NOW)

    run(scenario)
    assert caplog.text.count("whether the watch of configmaps is behind is not known: ") == 1


def test_a_watch_that_stays_behind_is_reported_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                await here.create("new")
                await handle.caught_up(NOW)
                assert [each.metadata.name for each in handle.list(namespace="default")] == ["new"]

    run(scenario)
    assert "the watch of configmaps is behind by more than 30 s" in caplog.text


def test_a_kind_that_does_not_exist_is_not_waited_for() -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(
                Dynamic.of("example.com/v1", "Nothing", plural="nothings", namespaced=True)
            ) as handle:
                await handle.settled()
                await handle.caught_up(NOW)

    run(scenario)


async def test_a_server_without_changes_of_the_kind_confirms_it(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    await admin.create(settings("web", namespace))
    cache = Cache(admin)
    task = asyncio.create_task(cache.run())
    with cache.watch(ConfigMap, namespace=namespace) as handle:
        await handle.synced()
        account = Dynamic.of("v1", "ServiceAccount", plural="serviceaccounts", namespaced=True)
        other = await admin.create(account(metadata=settings("other", namespace).metadata))
        revision = int(other.metadata.resource_version)
        async with asyncio.timeout(30):  # a bookmark would take a minute
            await handle.caught_up(revision)
        assert all(informer.revision >= revision for informer in handle.informers)
    task.cancel()
    await asyncio.wait([task])
