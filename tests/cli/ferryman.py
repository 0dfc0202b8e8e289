"""A small operator as a user's project has it, for commands that are given one."""

from __future__ import annotations

from pathlib import Path

PROGRAM = '''
from kubewright import CachedClient, Manager, Model, Permission, Request, Resource, controller_for, resource
from kubewright.api.core.v1 import ConfigMap


class FerrySpec(Model):
    seats: int = 100


@resource("{group}/v1")
class Ferry(Resource[FerrySpec, None]):
    """Crosses a river."""


class FerryReconciler:
    def __init__(self, client: CachedClient) -> None:
        self.client = client

    async def reconcile(self, request: Request) -> None:
        await self.client.find(Ferry, request)


def setup(manager: Manager) -> None:
    controller_for(manager, Ferry).complete(FerryReconciler(manager.client))
    manager.require(Permission(ConfigMap, "create"))
'''
SAMPLE = """
apiVersion: {group}/v1
kind: Ferry
metadata: {{name: big}}
spec: {{seats: 12}}
"""


def ferryman(directory: Path, name: str = "ferryman", *, group: str = "ferries.cli.test") -> Path:
    """Write the package of that name, with one sample, and return its folder."""
    package = directory / name
    (package / "samples").mkdir(parents=True)
    (package / "__init__.py").write_text("from .program import setup as setup\n")
    (package / "__main__.py").touch()
    (package / "program.py").write_text(PROGRAM.format(group=group))
    (package / "samples" / "ferry.yaml").write_text(SAMPLE.format(group=group))
    return package
