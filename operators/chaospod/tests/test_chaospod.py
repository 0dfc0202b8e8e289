from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from operators.chaospod import ChaosPod, ChaosPodReconciler, ChaosPodSpec, setup
from operators.conftest import AsOperator

from kubewright import Client, ControlPlane, Manager, ObjectMeta, Result, controller_for, now
from kubewright.api.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from kubewright.client.wait import Field, deleted, exists
from kubewright.manager.roles import declared_permissions
from kubewright.testing import Install, RecordedEvents, Running, restricted_client, run_virtual, settled


def chaos(namespace: str = "default") -> ChaosPod:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="app", image="app:1")])
    )
    return ChaosPod(metadata=ObjectMeta(name="it", namespace=namespace), spec=ChaosPodSpec(template=template))


async def test_item_23_the_pod_is_created_stopped_and_created_again(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    as_operator: AsOperator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await install(ChaosPod)
    client = admin.in_namespace(namespace)
    manager = Manager(await as_operator(setup), namespaces=[namespace])
    reconciler = ChaosPodReconciler(manager.client, RecordedEvents(), lambda: timedelta(seconds=1))
    controller_for(manager, ChaosPod).owns(Pod).complete(reconciler)
    async with running(manager):
        created = await client.create(chaos(namespace))
        first = await client.wait_for(Pod, "it", exists, timeout=30)
        assert first is not None
        assert first.metadata.owner_references == [created.as_owner()]
        assert first.metadata.labels == {"app": "web"}
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, first.metadata.uid), "is another")
        await client.wait_for(Pod, "it", another, timeout=30)
        await client.delete(created)
        await client.wait_for(Pod, "it", deleted, timeout=60)
        await settled(manager, quiet=0.3)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_pod_is_stopped_when_its_time_has_come_and_not_before() -> None:
    async def main() -> None:
        async with (
            ControlPlane.embedded(definitions=[ChaosPod], nodes=0) as plane,
            plane.client() as admin,
            restricted_client(plane, await declared_permissions(setup)) as own,
        ):
            manager = Manager(own, webhook_address="0")
            setup(manager)
            async with manager.running():
                began = now()
                await admin.create(chaos())
                await asyncio.sleep(5)
                first = await admin.get(Pod, "it")
                there = await admin.get(ChaosPod, "it")
                assert there.status.last_run == first.metadata.creation_timestamp
                assert there.spec.next_stop is not None
                assert there.spec.next_stop - began in (timedelta(seconds=10), timedelta(seconds=20))
                lasting = (there.spec.next_stop - now()).total_seconds()
                await asyncio.sleep(lasting)
                assert (await admin.get(Pod, "it")).metadata.uid == first.metadata.uid
                await asyncio.sleep(3)
                assert (await admin.get(Pod, "it")).metadata.uid != first.metadata.uid

    run_virtual(main)


def test_a_pod_whose_time_was_not_written_down_gets_one_and_is_not_stopped_at_once() -> None:
    async def main() -> None:
        async with (
            ControlPlane.embedded(definitions=[ChaosPod], nodes=0) as plane,
            plane.client() as admin,
            restricted_client(plane, await declared_permissions(setup)) as own,
        ):
            reconciler = ChaosPodReconciler(Manager(own).client, RecordedEvents(), lambda: timedelta(seconds=10))
            created = chaos()
            created.spec.next_stop = now() - timedelta(hours=1)
            created = await admin.create(created)
            await admin.create(reconciler.pod_of(created))  # and there it was interrupted
            assert await reconciler.reconcile(created.key) == Result(requeue_after=11.0)
            there = await admin.get(created)
            assert there.spec.next_stop is not None
            assert there.spec.next_stop > now()

    run_virtual(main)


def test_a_pod_of_somebody_else_is_left_alone() -> None:
    async def main() -> None:
        async with (
            ControlPlane.embedded(definitions=[ChaosPod], nodes=0) as plane,
            plane.client() as admin,
            restricted_client(plane, await declared_permissions(setup)) as own,
        ):
            events = RecordedEvents()
            reconciler = ChaosPodReconciler(Manager(own).client, events)
            spec = PodSpec(containers=[Container(name="app", image="app:1")])
            await admin.create(Pod(metadata=ObjectMeta(name="it", namespace="default"), spec=spec))
            created = await admin.create(chaos())
            assert await reconciler.reconcile(created.key) == Result(requeue_after=10)
            assert [warning.reason for warning in events.warnings] == ["NameTaken"]
            assert (await admin.get(created)).spec.next_stop is None

    run_virtual(main)
