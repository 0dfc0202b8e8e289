"""Virtual machines on a hypervisor outside the cluster, such as libvirt: `python -m examples.hypervisor`.

`External` wakes the reconciler by what happens there, and by what differs when everything is read from time to time.
"""

import asyncio
from collections.abc import AsyncIterator

import kubewright
from kubewright import Condition, ControlPlane, Manager, Model, ObjectMeta, Request, Resource, deleted, ready
from kubewright.patterns import External, NotYet, ObjectReconciler, set_condition


class Hypervisor:
    """The states of its domains, by name. This one is in memory: a domain takes a moment to start."""

    def __init__(self) -> None:
        self.domains: dict[str, str] = {}
        self._changed: asyncio.Queue[str] = asyncio.Queue()

    async def states(self) -> dict[str, str]:
        return dict(self.domains)

    async def follow(self) -> AsyncIterator[str]:
        while True:
            yield await self._changed.get()

    async def start(self, name: str) -> None:
        self.become(name, "starting")
        asyncio.get_running_loop().call_later(0.1, self.become, name, "running", "starting")

    def become(self, name: str, state: str, before: str | None = None) -> None:
        if before is None or self.domains.get(name) == before:  # one that starts may be stopped meanwhile
            self.domains[name] = state
            self._changed.put_nowait(name)


class MachineSpec(Model):
    running: bool = True


class MachineStatus(Model):
    phase: str = "Pending"
    conditions: list[Condition] = []


@kubewright.resource("hypervisor.example.com/v1")
class Machine(Resource[MachineSpec, MachineStatus]):
    """A domain of the hypervisor."""


class MachineReconciler(ObjectReconciler[Machine]):
    finalizer = "hypervisor.example.com/domain"

    def __init__(self, client: kubewright.CachedClient, hypervisor: Hypervisor) -> None:
        super().__init__(client)
        self.hypervisor = hypervisor

    async def converge(self, machine: Machine) -> None:
        name, state = str(machine.key), await self.state(machine)
        if machine.spec.running and state == "shutoff":
            await self.hypervisor.start(name)
        elif not machine.spec.running and state != "shutoff":
            self.hypervisor.become(name, "shutoff")
        machine.status.phase = {"running": "Running", "starting": "Creating", "shutoff": "Stopped"}[state]
        set_condition(machine, "Ready", state == "running", "DomainState", f"the domain is {state}")

    async def cleanup(self, machine: Machine) -> None:
        if await self.state(machine) != "shutoff":
            self.hypervisor.become(str(machine.key), "shutoff")
            raise NotYet("the domain is stopping", after=1)
        self.hypervisor.domains.pop(str(machine.key), None)

    async def state(self, machine: Machine) -> str:
        return (await self.hypervisor.states()).get(str(machine.key), "shutoff")


def setup(manager: Manager, hypervisor: Hypervisor) -> None:
    domains = External(
        "hypervisor", concerns=lambda name: Request(*name.split("/")), state=hypervisor.states, events=hypervisor.follow
    )
    kubewright.controller_for(manager, Machine).source(domains).complete(MachineReconciler(manager.client, hypervisor))


async def main() -> None:
    async with ControlPlane.embedded(definitions=[Machine]) as cluster, cluster.client() as client:
        manager, hypervisor = Manager(client), Hypervisor()
        setup(manager, hypervisor)
        async with manager.running():
            web = await client.create(Machine(metadata=ObjectMeta(name="web"), spec=MachineSpec()))
            await client.wait_for(web, ready)
            print(hypervisor.domains)
            await client.delete(web)
            await client.wait_for(web, deleted)
            print(hypervisor.domains)


if __name__ == "__main__":
    asyncio.run(main())
