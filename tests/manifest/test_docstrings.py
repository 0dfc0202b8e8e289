from __future__ import annotations

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
