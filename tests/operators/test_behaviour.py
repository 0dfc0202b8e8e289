"""What every operator that comes with kubewright guarantees, whatever it does. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from operators import builtins, chaospod, devbox, podmanager, wukong
from operators.wukong import simulators
from operators.wukong.kubevirt import VirtualMachine

from kubewright import Client, ControlPlane, Manager, ObjectMeta, Quantity
from kubewright.api import Object
from kubewright.api.core.v1 import Container, Pod, PodSpec, PodTemplateSpec
from kubewright.api.resources import resource_info
from kubewright.controlplane.definitions import DefinitionSource
from kubewright.manager import LeaderElection
from kubewright.testing import count_requests, run_virtual, settled

POD = PodSpec(containers=[Container(name="app", image="app:1")])
METADATA = ObjectMeta(name="it", namespace="default")


class Operator(NamedTuple):
    """An operator, an object for it, the children that it makes of it, and how often it reconciles it by the clock."""

    setup: Callable[[Manager], None]
    obj: Object
    children: int
    kind: type[Object] = Pod
    """Of the children."""
    timers_a_minute: int = 0
    definitions: Sequence[DefinitionSource] = ()
    """Of its other kinds."""
    others: Callable[[Manager], None] | None = None
    """Sets up the controllers of others that it depends on."""


OPERATORS = {
    "podmanager": Operator(
        podmanager.setup,
        podmanager.PodManager(metadata=METADATA, spec=podmanager.PodManagerSpec(image="app:1", replicas=3)),
        children=3,
        timers_a_minute=2,
    ),
    "builtins": Operator(
        builtins.setup,
        builtins.PodSet(metadata=METADATA, spec=builtins.PodSetSpec(replicas=3, template=PodTemplateSpec(spec=POD))),
        children=3,
    ),
    "devbox": Operator(
        devbox.setup,
        devbox.Devbox(
            metadata=METADATA,
            spec=devbox.DevboxSpec(
                image="app:1", resource={"cpu": Quantity(1)}, network=devbox.Network(type="NodePort")
            ),
        ),
        children=1,
        definitions=[devbox.DevBoxRelease],
    ),
    "chaospod": Operator(
        chaospod.setup,
        chaospod.ChaosPod(metadata=METADATA, spec=chaospod.ChaosPodSpec(template=PodTemplateSpec(spec=POD))),
        children=1,
    ),
    "wukong": Operator(
        wukong.setup,
        wukong.Wukong(
            metadata=METADATA,
            spec=wukong.WukongSpec(
                cpu=1,
                disks=[wukong.Disk(name="root", size="1Gi", storage_class_name="standard", image="app:1")],
                networks=[wukong.Network(name="lan", type="bridge")],
            ),
        ),
        children=1,
        kind=VirtualMachine,
        definitions=[wukong.WukongSnapshot, simulators.DEFINITIONS],
        others=simulators.setup,
    ),
}
# A ChaosPod never comes to rest.
RESTING = [name for name in OPERATORS if name != "chaospod"]


@asynccontextmanager
async def running_plane(operator: Operator) -> AsyncIterator[ControlPlane]:
    definitions = [type(operator.obj), *operator.definitions]
    async with ControlPlane.embedded(definitions=definitions) as plane, plane.client() as client:
        if operator.others is None:
            yield plane
            return
        others = Manager(client, webhook_address="0")
        operator.others(others)
        async with others.running():
            yield plane


def reconciles(manager: Manager) -> int:
    return sum(sum(controller.statistics.results.values()) for controller in manager.controllers)


async def children(client: Client, operator: Operator) -> int:
    return len([each for each in await client.list(operator.kind) if each.metadata.deletion_timestamp is None])


def creation(operator: Operator) -> str:
    """The request that creates a child."""
    info = resource_info(operator.kind)
    root = "/apis" if info.gvk.group else "/api"
    return f"POST {root}/{info.gvk.api_version}/namespaces/{{namespace}}/{info.plural}"


@pytest.mark.parametrize("name", RESTING)
def test_a_settled_object_causes_no_reconciles_but_by_the_clock_and_those_make_no_requests(name: str) -> None:
    operator = OPERATORS[name]

    async def main() -> None:
        async with running_plane(operator) as cluster, cluster.client() as admin, cluster.client() as own:
            manager = Manager(own, webhook_address="0")
            operator.setup(manager)
            async with manager.running():
                await admin.create(operator.obj)
                await asyncio.sleep(30)
                await settled(manager)
                assert await children(admin, operator) == operator.children
                before = reconciles(manager)
                with count_requests(own) as requests:
                    await asyncio.sleep(60)
                assert reconciles(manager) - before == operator.timers_a_minute
                assert requests.attempts == []

    run_virtual(main)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("moment", [0.0, 0.02, 1.0])
def test_two_replicas_create_nothing_twice_when_the_leader_ends_at_any_moment(name: str, moment: float) -> None:
    operator = OPERATORS[name]

    async def main() -> None:
        async with (
            running_plane(operator) as cluster,
            cluster.client() as admin,
            cluster.client() as first_client,
            cluster.client() as second_client,
        ):
            elections = [LeaderElection(client, "it", namespace="default") for client in (first_client, second_client)]
            managers = [
                Manager(client, election=election, webhook_address="0")
                for client, election in zip((first_client, second_client), elections, strict=True)
            ]
            for manager in managers:
                operator.setup(manager)
            tasks = [asyncio.create_task(manager.run()) for manager in managers]
            await asyncio.sleep(5)
            leader = next(index for index, election in enumerate(elections) if election.is_leader)
            with count_requests(first_client) as by_first, count_requests(second_client) as by_second:
                await admin.create(operator.obj)
                await asyncio.sleep(moment)
                tasks[leader].cancel()
                await asyncio.wait([tasks[leader]])
                await asyncio.sleep(8)
                created = by_first.by_path[creation(operator)] + by_second.by_path[creation(operator)]
            assert elections[1 - leader].is_leader
            assert (await children(admin, operator), created) == (operator.children, operator.children)
            tasks[1 - leader].cancel()
            await asyncio.wait(tasks)

    run_virtual(main)
