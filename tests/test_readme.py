"""The README's program does what the README says."""

import asyncio
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest

from kubewright import Client, ControlPlane, Manager, ObjectMeta
from kubewright.api.core.v1 import Pod
from kubewright.api.resources import Object
from kubewright.client import MergePatch
from kubewright.client.wait import Field, deleted

Install: TypeAlias = Callable[[type[Object]], Awaitable[None]]

README = Path(__file__).parent.parent / "README.md"

LEFT_OVER = """
import gc, multiprocessing, threading
gc.collect()
print([thread.name for thread in threading.enumerate()], multiprocessing.active_children())
"""


@pytest.fixture(scope="module")
def program() -> str:
    (found,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


def test_the_program_prints_what_the_readme_says(program: str) -> None:
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (answer.stderr, answer.stdout) == ("", "[3]\n")


@pytest.fixture
def operator(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module: all of it but its last line."""
    (tmp_path / "readme_program.py").write_text(program)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "readme_program", raising=False)
    return importlib.import_module("readme_program")


async def test_its_operator_heals_scales_down_and_changes_the_image(
    operator: ModuleType, control_plane: ControlPlane, admin: Client, namespace: str, install: Install
) -> None:
    await install(operator.PodManager)
    client = admin.in_namespace(namespace)
    async with control_plane.client() as own, asyncio.TaskGroup() as tasks:
        manager = Manager(own, namespaces=[namespace])
        operator.setup(manager)
        tasks.create_task(manager.run())
        spec = operator.PodManagerSpec(image="app:1")
        web = await client.create(operator.PodManager(metadata=ObjectMeta(name="web"), spec=spec))
        current = Field("status.currentReplicas")
        await client.wait_for(web, current.equals(3), timeout=20)

        lost = await client.get(Pod, "web-0")
        await client.delete(lost)
        another = Field("metadata.uid").satisfies(lambda uid: uid not in (None, lost.metadata.uid), "is another")
        await client.wait_for(Pod, "web-0", another, timeout=20)
        await client.wait_for(web, current.equals(3), timeout=20)

        await client.patch(operator.PodManager, "web", MergePatch({"spec": {"replicas": 1}}))
        for name in ("web-1", "web-2"):
            await client.wait_for(Pod, name, deleted, timeout=20)
        await client.wait_for(web, current.equals(1), timeout=20)
        assert [pod.metadata.name for pod in await client.list(Pod)] == ["web-0"]

        await client.patch(operator.PodManager, "web", MergePatch({"spec": {"image": "app:2"}}))
        await client.wait_for(Pod, "web-0", Field("spec.containers[0].image").equals("app:2"), timeout=20)
        await client.wait_for(web, current.equals(1), timeout=20)
        manager.stop()


def test_the_program_leaves_nothing_behind(program: str, tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", f"{program}\n{LEFT_OVER}"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (answer.stderr, answer.stdout) == ("", "[3]\n['MainThread'] []\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("real_control_plane")
def test_it_prints_the_same_on_the_real_server(program: str) -> None:
    real = program.replace("ControlPlane.embedded(", "ControlPlane.real(controller_manager=True, ")
    assert real != program
    answer = subprocess.run([sys.executable, "-c", real], capture_output=True, text=True, timeout=60)
    assert (answer.stderr, answer.stdout) == ("", "[3]\n")
