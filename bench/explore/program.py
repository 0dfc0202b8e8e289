"""`python -m bench.explore.program every-fault|seeds`: explore an operator with a finalizer, a child and a status.

Prints the microseconds of CPU that each world took.
"""

from __future__ import annotations

import sys
import time

from kubewright import Condition, Manager, Model, ObjectMeta, Resource, controller_for, deleted, ready, resource
from kubewright.api.core.v1 import ConfigMap
from kubewright.patterns import ObjectReconciler, ensure, set_condition
from kubewright.testing import World, explore

SEEDS = 80


class GadgetSpec(Model):
    size: int = 1


class GadgetStatus(Model):
    conditions: list[Condition] = []


@resource("bench.kubewright.test/v1")
class Gadget(Resource[GadgetSpec, GadgetStatus]):
    """Has a ConfigMap."""


class GadgetReconciler(ObjectReconciler[Gadget]):
    finalizer = "bench.kubewright.test/gadget"

    async def converge(self, obj: Gadget) -> None:
        data = {"size": str(obj.spec.size)}
        await ensure(self.client, ConfigMap(metadata=ObjectMeta(name=obj.metadata.name), data=data), owner=obj)
        set_condition(obj, "Ready", True, "Done")

    async def cleanup(self, obj: Gadget) -> None:
        pass


def setup(manager: Manager) -> None:
    controller_for(manager, Gadget).owns(ConfigMap).complete(GadgetReconciler(manager.client))


GADGET = Gadget(metadata=ObjectMeta(name="a", namespace="default"), spec=GadgetSpec())


async def live_and_die(world: World[None]) -> None:
    await world.create(GADGET)
    await world.wait(GADGET, ready)
    await world.change(GADGET, lambda gadget: setattr(gadget.spec, "size", 2))
    await world.wait(GADGET, ready)
    await world.delete(GADGET)


def main(worlds: str) -> None:
    began = time.process_time()
    exploration = explore(
        setup,
        kinds=[Gadget],
        when=live_and_die,
        until=lambda world: world.wait(GADGET, deleted),
        seeds=SEEDS if worlds == "seeds" else 0,
    )
    exploration.same_end()
    print((time.process_time() - began) / exploration.worlds * 1e6)


if __name__ == "__main__":
    main(sys.argv[1])
