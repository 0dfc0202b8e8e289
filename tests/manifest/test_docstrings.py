from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from kubewright.api.model import Model
from kubewright.manifest.docstrings import field_descriptions


class Bed(Model):
    length: int = 1
    "In meters."


OldBed = Bed


class Shed(Model):
    width: int = 3
    "Of the wall."


class Bed(Model):  # type: ignore[no-redef]
    length: int = 1
    "In feet."


def test_of_two_classes_by_one_name_neither_is_described_as_the_other() -> None:
    assert field_descriptions(OldBed) == field_descriptions(Bed) == {}


def test_a_class_is_described_wherever_it_is_written() -> None:
    try:

        class Pond(Model):
            depth: int = 1
            "Of the water."
    finally:
        pass
    assert field_descriptions(Pond) == {"depth": "Of the water."}
    assert field_descriptions(Shed)["width"] == "Of the wall."


def test_a_module_that_is_loaded_again_is_described_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = 'from kubewright import Model\n\nclass Gate(Model):\n    height: int = 1\n    "{}"\n'
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "garden_of_docstrings.py"
    file.write_text(source.format("Of the bars."))
    module = importlib.import_module(file.stem)
    monkeypatch.setitem(sys.modules, file.stem, module)
    assert field_descriptions(module.Gate) == {"height": "Of the bars."}

    file.write_text(source.format("Of the posts on both sides."))
    assert field_descriptions(importlib.reload(module).Gate) == {"height": "Of the posts on both sides."}
