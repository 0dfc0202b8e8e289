"""What users and other clients do to the network of a Devbox. In virtual time."""

from __future__ import annotations

import asyncio

from operators.devbox import Devbox
from operators.devbox.tests.world import LONG, devbox, running_world
from operators.devbox.words import unique_id

from kubewright import Field, ObjectKey, ObjectMeta
from kubewright.api.core.v1 import ContainerPort, Service, ServicePort, ServiceSpec
from kubewright.client import MergePatch
from kubewright.client.wait import deleted
from kubewright.patterns import get_condition, is_true
from kubewright.testing import virtual


@virtual
async def test_services_that_are_deleted_or_changed_are_restored() -> None:
    async with running_world() as world:
        running = await world.run()
        headless = running.status.network.unique_id
        await world.admin.delete(Service, headless)
        service = await world.admin.get(Service, "it-svc")
        service.spec.selector = {"app": "other"}
        await world.admin.update(service)
        await world.at_rest()
        assert await world.names(Service) == sorted([headless, "it-svc", "kubernetes"])
        assert (await world.admin.get(Service, "it-svc")).spec.selector == service.metadata.labels
        await world.admin.delete(Service, "it-svc")
        again = await world.at_rest()
        (port,) = (await world.admin.get(Service, "it-svc")).spec.ports
        assert again.status.network.node_port == port.node_port


@virtual
async def test_a_tailnet_is_stored_and_reported_as_not_supported() -> None:
    async with running_world() as world:
        await world.create(devbox(network="Tailnet"))
        running = await world.reaches("Running")
        for name in ("TailnetSynced", "NetworkSynced", "Ready"):
            condition = get_condition(running, name)
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "NotSupported")
        assert running.status.network.type == "Tailnet"
        await world.change(lambda found: setattr(found.spec.network, "type", "SSHGate"))
        await world.admin.wait_for(Devbox, "it", Field("status.network.type").equals("SSHGate"), timeout=LONG)
        changed = await world.at_rest()
        assert is_true(changed, "Ready")
        assert get_condition(changed, "TailnetSynced") is None
        assert is_true(changed, "SSHGateSynced")


@virtual
async def test_a_service_of_the_user_is_neither_taken_nor_deleted() -> None:
    async with running_world() as world:
        ports = [ServicePort(name="web", port=80)]
        theirs = Service(
            metadata=ObjectMeta(name="it-svc", namespace="default"),
            spec=ServiceSpec(selector={"app": "theirs"}, ports=ports),
        )
        created = await world.admin.create(theirs)
        await world.create(devbox(network="SSHGate"))
        await world.reaches("Running")
        await world.change(lambda found: setattr(found.spec.network, "type", "NodePort"))
        await asyncio.sleep(10)
        refused = get_condition(await world.read(), "NodePortSynced")
        assert refused is not None
        assert refused.message.startswith("the Service it-svc exists and is not of this Devbox")
        await world.change(lambda found: setattr(found.spec.network, "type", "SSHGate"))
        await world.at_rest()
        await world.admin.delete(Devbox, "it")
        await world.admin.wait_for(Devbox, "it", deleted, timeout=LONG)
        await asyncio.sleep(10)
        left = await world.admin.get(Service, "it-svc")
        assert (left.metadata.uid, left.spec.selector) == (created.metadata.uid, {"app": "theirs"})


@virtual
async def test_extra_ports_have_node_ports_too_and_a_port_that_is_named_twice_has_one() -> None:
    wanted = devbox()
    wanted.spec.network.extra_ports = [ContainerPort(container_port=9000), ContainerPort(container_port=22)]
    async with running_world() as world:
        await world.create(wanted)
        running = await world.reaches("Running")
        service = await world.admin.get(Service, "it-svc")
        assert [each.port for each in service.spec.ports] == [22, 9000]
        assert running.status.network.node_port == service.spec.ports[0].node_port


@virtual
async def test_a_pod_that_runs_is_kept_when_the_spec_changes_and_the_condition_says_so() -> None:
    async with running_world() as world:
        await world.run()
        before = await world.running_pod()
        await world.change(lambda found: setattr(found.spec, "image", "dev:2"))
        changed = await world.at_rest()
        condition = get_condition(changed, "PodUpToDate")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "RestartNeeded")
        assert (await world.running_pod()).metadata.uid == before.metadata.uid
        await world.set_state("Paused")
        await world.reaches("Paused")
        await world.set_state("Running")
        after = await world.running_pod(other_than=before.metadata.uid)
        assert after.spec.containers[0].image == "dev:2"
        assert get_condition(await world.at_rest(), "PodUpToDate") is None


def test_unique_ids_are_two_words_and_four_letters_and_differ() -> None:
    found = {unique_id(ObjectKey("default", f"box-{number}")) for number in range(1000)}
    assert len(found) == 1000
    assert all([len(part) for part in each.split("-")][2] == 4 and each.replace("-", "").islower() for each in found)
    assert unique_id(ObjectKey("a", "b")) == unique_id(ObjectKey("a", "b")) != unique_id(ObjectKey("b", "a"))


@virtual
async def test_node_ports_of_a_service_that_has_lost_its_labels_while_the_operator_was_down_are_given_back() -> None:
    async with running_world() as world:
        await world.run()
        await world.kill()
        await world.admin.patch(Service, "it-svc", MergePatch({"metadata": {"labels": None}}))
        await world.set_state("Shutdown")
        await world.start()
        ended = await world.reaches("Shutdown")
        assert ended.status.network.node_port == 0
        assert await world.names(Service) == sorted([ended.status.network.unique_id, "kubernetes"])
