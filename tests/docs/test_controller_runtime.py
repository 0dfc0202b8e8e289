"""The page for those who know controller-runtime leaves nothing out, and names nothing of ours that is not there."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/controller-runtime.md").read_text()
EXPORTED = dict(
    line.split(": ") for line in (Path(__file__).parent / "controller_runtime_names.txt").read_text().splitlines()
)
SECTIONS = {
    package: text
    for heading, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    for package in heading.removesuffix(" (package ctrl)").split(", ")
}
PACKAGES = "api|cache|client|controller|controlplane|manager|patterns|webhook"
OURS = sorted(set(re.findall(rf"`(?:kubewright\.)?((?:{PACKAGES})\.[\w.]+)`", PAGE)))


@pytest.mark.parametrize("package", EXPORTED)
def test_every_exported_name_is_mapped(package: str) -> None:
    rows = re.findall(r"^\| (`.+?) \|", SECTIONS[package], re.MULTILINE)
    mapped = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(EXPORTED[package].split()) <= mapped


@pytest.mark.parametrize("name", OURS)
def test_every_name_of_ours_exists(name: str) -> None:
    package, *attributes = name.split(".")
    found: object = importlib.import_module(f"kubewright.{package}")
    for attribute in attributes:
        try:
            found = getattr(found, attribute)
        except AttributeError:
            found = importlib.import_module(f"{found.__name__}.{attribute}")  # type: ignore[attr-defined]
