"""docs/manifests.md: its example does what the text says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from operators.podmanager import setup

from kubewright.deployment import Operator, files_of, with_setup

DOCUMENT = (Path(__file__).parents[2] / "docs/manifests.md").read_text(encoding="utf-8")


async def test_the_example_writes_the_files(tmp_path: Path) -> None:
    example: dict[str, Any] = {}
    [text] = re.findall(r"```python\n# \S+\.py\n(.*?)```", DOCUMENT, re.DOTALL)
    exec(compile(text, "manifests.md", "exec"), example)
    await example["write"](tmp_path)
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    expected = await with_setup(Operator(name="podmanager", image="podmanager:1.0"), setup)
    assert written == {*files_of(expected), "Dockerfile"}
    assert "config/crd/bases/apps.mycompany.com_podmanagers.yaml" in written


def test_every_option_of_an_operator_is_in_the_table() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE)
    assert listed == [*Operator.__struct_fields__]


def test_every_directory_is_described() -> None:
    described = set(re.findall(r"^    (?:config|dist)/([\w-]+)", DOCUMENT, re.MULTILINE))
    assert described == {
        "crd",
        "rbac",
        "manager",
        "webhook",
        "network-policy",
        "cleanup",
        "objects",
        "default",
        "samples",
        "install",
    }
