"""docs/patterns.md: its operator works, and nothing that is exported is left out."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kubewright.patterns
from kubewright import ControlPlane, Field, Manager, ObjectMeta
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.client.wait import deleted
from kubewright.patterns import is_true
from kubewright.testing import run_virtual

DOCUMENT = (Path(__file__).parents[2] / "docs/patterns.md").read_text(encoding="utf-8")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The programs of the document, by their names."""
    modules = {}
    for file, text in re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL):
        name = file.removesuffix(".py")
        (tmp_path / file).write_text(text)
        spec = importlib.util.spec_from_file_location(name, tmp_path / file)
        assert spec is not None
        assert spec.loader is not None
        modules[name] = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, modules[name])
        spec.loader.exec_module(modules[name])
    return modules


def test_the_operator_of_the_document_works(programs: dict[str, ModuleType]) -> None:
    bucket = programs["bucket"]

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[bucket.Bucket]) as plane, plane.client() as client:
            manager, store = Manager(client), bucket.Store()
            bucket.setup(manager, store)
            async with manager.running():
                metadata = ObjectMeta(name="logs", namespace="default")
                created = await client.create(bucket.Bucket(metadata=metadata, spec=bucket.BucketSpec()))
                active = await client.wait_for(created, Field("status.phase").equals("Active"), timeout=60)
                assert active is not None
                assert is_true(active, "Ready")
                assert (await client.get(ConfigMap, "logs")).data == {"region": "eu"}
                assert (await client.get(Secret, "logs")).metadata.owner_references == [created.as_owner()]
                assert list(store.buckets.values()) == ["eu"]
                await client.delete(created)
                await client.wait_for(created, deleted, timeout=60)
                assert store.buckets == {}

    run_virtual(main)


def test_the_requests_of_the_document_are_carried_out(programs: dict[str, ModuleType], tmp_path: Path) -> None:
    grants = programs["grants"]

    async def main() -> None:
        async with ControlPlane.embedded(definitions=[grants.Grant]) as plane, plane.client() as client:
            manager = Manager(client)
            grants.setup(manager, tmp_path / "grants.jsonl")
            async with manager.running():
                for role, phase in (("reader", "Completed"), ("king", "Failed")):
                    spec = grants.GrantSpec(user="ada", role=role)
                    created = await client.create(
                        grants.Grant(metadata=ObjectMeta(name=role, namespace="default"), spec=spec)
                    )
                    await client.wait_for(created, Field("status.phase").equals(phase), timeout=60)

    run_virtual(main)
    assert len((tmp_path / "grants.jsonl").read_text().splitlines()) == 4


def test_everything_exported_is_documented() -> None:
    undocumented = {name for name in kubewright.patterns.__all__ if not re.search(rf"\b{name}\b", DOCUMENT)}
    assert undocumented == {
        "AuditRecord",  # what others return, take or are done by hand
        "AuditSink",
        "Ensured",
        "Hook",
        "LogAudit",
        "Step",
        "StepOutcome",
        "add_finalizer",
        "remove_finalizer",
    }
