"""An operator with options of its own, and with something to open and to close."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from kubewright import Manager, Meta, Model, Permission, Request, Result, controller_for, run
from kubewright.api import partial
from kubewright.api.core.v1 import ConfigMap, Namespace


class Options(Model):
    retention: Annotated[int, Meta(ge=1, description="days that a workspace is kept")] = 30
    prefix: str = "ns-"


class Session:
    async def aclose(self) -> None: ...


class Reconciler:
    def __init__(self, manager: Manager, options: Options, session: Session) -> None:
        self.client, self.options, self.session = manager.client, options, session

    async def reconcile(self, request: Request) -> Result:
        namespace = await self.client.get(Namespace, request)
        again = await self.client.find(namespace)
        assert again is not None
        assert again.metadata.name.startswith(self.options.prefix)
        labelled = partial(ConfigMap, "settings", namespace=request.name)
        labelled.metadata.labels["kept"] = str(self.options.retention)
        labelled.data["prefix"] = self.options.prefix
        applied = await self.client.apply(labelled)
        return Result(requeue_after=3600.0 if applied.data else None)


@asynccontextmanager
async def setup(manager: Manager, options: Options) -> AsyncGenerator[None, None]:
    session = Session()
    controller_for(manager, Namespace).owns(ConfigMap).complete(Reconciler(manager, options, session))
    yield
    await session.aclose()


if __name__ == "__main__":
    permissions = [Permission(ConfigMap, "create", "patch")]
    run(setup, name="workspaces", options=Options, permissions=permissions)
