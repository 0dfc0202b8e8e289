"""The operator as a whole, on both control planes, with exactly the rights of its role."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from operators.conftest import AsOperator
from operators.devbox import Devbox, DevBoxRelease, DevboxV1Alpha1, Options, devbox_manager, setup
from operators.devbox.tests.world import devbox
from operators.devbox.types import State

from kubewright import Client, Field, Invalid, Manager, condition
from kubewright.api.batch.v1 import Job
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, Secret, Service
from kubewright.client.wait import deleted
from kubewright.testing import Install, Running, count_requests, settled

SOON = 120


@pytest.fixture
async def client(admin: Client, namespace: str, install: Install) -> Client:
    """A user of the operator."""
    await install(Devbox, DevboxV1Alpha1, DevBoxRelease)
    return admin.in_namespace(namespace)


@pytest.fixture
async def manager(client: Client, namespace: str, as_operator: AsOperator, storage_class: str) -> Manager:
    """Set up, but not running."""
    manager = devbox_manager(await as_operator(setup), namespaces=[namespace], webhook_address="0")
    setup(manager, Options(storage_class=storage_class))
    return manager


@pytest.fixture
async def running_devbox(client: Client, manager: Manager, running: Running, nodes: None) -> AsyncIterator[Devbox]:
    """One that runs, while the operator does."""
    async with running(manager, timeout=300):
        created = await client.create(devbox(namespace=client.namespace))
        yield await reached(client, created, "Running")


async def reached(client: Client, created: Devbox, state: State) -> Devbox:
    """The Devbox when it is in the state, and ready."""
    in_phase = Field("status.phase").equals(state) & condition("Ready")
    found = await client.wait_for(created, in_phase, timeout=SOON)
    assert found is not None
    return found


async def change(client: Client, state: State) -> Devbox:
    changed = await client.get(Devbox, "it")
    changed.spec.state = state
    return await reached(client, await client.patch(changed), state)


async def names(client: Client, kind: type[Pod | Service | Secret | PersistentVolumeClaim | Job]) -> set[str]:
    return {each.metadata.name for each in await client.list(kind) if each.metadata.deletion_timestamp is None}


async def test_item_65_each_state_has_its_pod_services_node_port_and_content(
    client: Client, manager: Manager, running_devbox: Devbox
) -> None:
    first = running_devbox
    unique_id, first_port = first.status.network.unique_id, first.status.network.node_port
    content = f"it-{first.status.content_id}"
    assert (await names(client, Pod), await names(client, Service)) == ({"it"}, {unique_id, "it-svc"})
    assert await names(client, PersistentVolumeClaim) == {content}
    service = await client.get(Service, "it-svc")
    assert [port.node_port for port in service.spec.ports] == [first_port]
    assert first_port > 0
    pod = await client.get(Pod, "it")
    assert (first.status.node, first.status.record.node) == (pod.spec.node_name, pod.spec.node_name)

    paused = await change(client, "Paused")
    assert (await names(client, Pod), await names(client, Service)) == (set(), {unique_id, "it-svc"})
    assert await names(client, PersistentVolumeClaim) == {content}
    assert (paused.status.content_id, paused.status.network.node_port) == (first.status.content_id, first_port)

    await change(client, "Running")
    assert (await client.get(Pod, "it")).metadata.uid != pod.metadata.uid
    assert await names(client, PersistentVolumeClaim) == {content}

    stopped = await change(client, "Stopped")
    committed = stopped.status.commit_records[first.status.content_id]
    assert (committed.commit_status, committed.commit_image) == ("Success", f"archive/{content}-archive")
    assert stopped.status.record.base_image == committed.commit_image
    await client.wait_for(PersistentVolumeClaim, content, deleted, timeout=SOON)
    await client.wait_for(Job, "it-commit", deleted, timeout=SOON)
    assert (await client.find(Pod, "it"), await names(client, Service)) == (None, {unique_id, "it-svc"})
    assert await names(client, PersistentVolumeClaim) == {f"{content}-archive"}
    assert (stopped.status.node, stopped.status.network.node_port) == ("", first_port)

    resumed = await change(client, "Running")
    pod = await client.get(Pod, "it")
    assert [each.name for each in pod.spec.init_containers] == ["it-unpack", "it-seed"]
    claims = {each.name: each.persistent_volume_claim for each in pod.spec.volumes}
    archive = claims["archive"]
    assert archive is not None
    assert archive.claim_name == f"{content}-archive"
    assert resumed.status.network.node_port == first_port

    shut_down = await change(client, "Shutdown")
    await client.wait_for(Service, "it-svc", deleted, timeout=SOON)
    assert (await client.find(Pod, "it"), await names(client, Service)) == (None, {unique_id})
    assert shut_down.status.network.node_port == 0
    shut_down.spec.state = "Stopped"
    with pytest.raises(Invalid, match="shut down"):
        await client.patch(shut_down)

    await settled(manager)
    with count_requests(manager.client) as requests:
        await settled(manager, quiet=1)
    assert requests.attempts == []
    rows = await client.table(Devbox)
    assert [rows.column(name) for name in ("State", "NetworkType", "UniqueID", "NodePort", "Phase", "Node")] == [
        ["Shutdown"],
        ["NodePort"],
        [unique_id],
        [0],
        ["Shutdown"],
        [""],
    ]


async def test_item_65_deletion_takes_everything_along_unless_that_is_to_stay(
    client: Client, running_devbox: Devbox
) -> None:
    before, pod = running_devbox, await client.get(Pod, "it")
    await client.delete(before, propagation="Orphan")
    assert await client.wait_for(before, deleted, timeout=SOON) is None
    again = await reached(client, await client.create(devbox(namespace=client.namespace)), "Running")
    assert (again.metadata.uid != before.metadata.uid, again.status.content_id) == (True, before.status.content_id)
    assert (await client.get(Pod, "it")).metadata.uid == pod.metadata.uid

    await client.delete(again)
    assert await client.wait_for(again, deleted, timeout=SOON) is None
    assert await names(client, Pod) == set()
    # The rest is left to the garbage collector, which may take its time.
    left = [*await client.list(Secret), *await client.list(Service), *await client.list(PersistentVolumeClaim)]
    owners = [owner for each in left for owner in each.metadata.owner_references]
    assert {(owner.uid, owner.controller) for owner in owners} <= {(again.metadata.uid, True)}
    assert len(owners) == len(left)
