"""A small operator as a user's project has it, for commands that are given one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Self

from kubewright.api import Object
from kubewright.api.meta import ObjectMeta
from kubewright.testing import unique_name

PROGRAM = '''
from kubewright import Manager, Model, Permission, Resource, Result, Review
from kubewright import controller_for, resource, serve_webhooks, validates
from kubewright.api.core.v1 import ConfigMap
from kubewright.patterns import ObjectReconciler


class FerrySpec(Model):
    seats: int = 100


@resource("{group}/v1")
class Ferry(Resource[FerrySpec, None]):
    """Crosses a river."""


class FerryReconciler(ObjectReconciler[Ferry]):
    finalizer = "{group}/cleanup"

    async def converge(self, ferry: Ferry) -> Result | None:
        """Nothing to do."""

    async def cleanup(self, ferry: Ferry) -> None:
        """Nothing to do either, but the finalizer goes."""


@validates(ConfigMap, namespace_selector="river=styx")
def check(review: Review[ConfigMap]) -> None: ...


def setup(manager: Manager) -> None:
    controller_for(manager, Ferry).complete(FerryReconciler(manager.client))
    manager.require(Permission(ConfigMap, "create"))


def with_webhooks(manager: Manager) -> None:
    setup(manager)
    serve_webhooks(manager, check)
'''
SAMPLE = """
apiVersion: {group}/v1
kind: Ferry
metadata: {{name: big}}
spec: {{seats: 12}}
"""


class Ferryman(NamedTuple):
    """A project: the directory that commands run in, the name of its package, and the group of its kind."""

    directory: Path
    package: str
    group: str

    @classmethod
    def write(cls, directory: Path, package: str = "") -> Self:
        """Write the package, with one sample."""
        package = package or unique_name("ferry").replace("-", "_")
        made = cls(directory, package, f"{package.replace('_', '-')}.cli.test")
        (made.folder / "samples").mkdir(parents=True)
        (made.folder / "__init__.py").write_text("from .program import setup as setup\n")
        (made.folder / "__main__.py").touch()
        made.program.write_text(PROGRAM.format(group=made.group))
        (made.folder / "samples" / "ferry.yaml").write_text(SAMPLE.format(group=made.group))
        return made

    @property
    def folder(self) -> Path:
        return self.directory / self.package

    @property
    def program(self) -> Path:
        return self.folder / "program.py"

    @property
    def name(self) -> str:
        """That of the operator."""
        return self.package.replace("_", "-")

    @property
    def namespace(self) -> str:
        return f"{self.name}-system"

    @property
    def definition(self) -> str:
        return f"ferries.{self.group}"

    def imported(self) -> ModuleType:
        """Its program, in this process."""
        sys.path.insert(0, str(self.directory))
        try:
            return importlib.import_module(f"{self.package}.program")
        finally:
            sys.path.remove(str(self.directory))

    def ferry(self, metadata: ObjectMeta) -> Object:
        """One of its objects."""
        module = self.imported()
        made: Object = module.Ferry(metadata=metadata, spec=module.FerrySpec())
        return made
