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
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program of the document."""
    ((name, text),) = re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL)
    (tmp_path / name).write_text(text)
    spec = importlib.util.spec_from_file_location("bucket", tmp_path / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bucket", module)
    spec.loader.exec_module(module)
    return module


def test_the_operator_of_the_document_works(bucket: ModuleType) -> None:
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
