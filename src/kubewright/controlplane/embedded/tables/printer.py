"""Printers: the columns of a kind, and how an object becomes the cells below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, text
from kubewright.controlplane.embedded.tables.durations import since

Cells: TypeAlias = list[JSONValue]
"""One per column. Zero values are written out: a cell is never absent."""


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column. Those with a priority above 0 are shown by `-o wide` only."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> JSONObject:
        """As the table announces it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Printer:
    """`cells` gets the object and the present in seconds since the epoch."""

    columns: Sequence[PrinterColumn]
    cells: Callable[[JSONObject, float], Cells]
    conditions: Callable[[JSONObject], list[JSONValue]] | None = None
    """What is special about a row, such as that the pod has completed."""


NAME = PrinterColumn("Name", format="name")
AGE = PrinterColumn("Age")


def integer(name: str) -> PrinterColumn:
    """A column of whole numbers."""
    return PrinterColumn(name, "integer")


def boolean(name: str) -> PrinterColumn:
    """A column of truth values."""
    return PrinterColumn(name, "boolean")


def wide(name: str) -> PrinterColumn:
    """A column that only `-o wide` shows."""
    return PrinterColumn(name, priority=1)


def name_of(obj: JSONObject) -> str:
    """The first cell of nearly every row."""
    return text(obj, "metadata", "name")


def age_of(obj: JSONObject, now: float) -> str:
    """How long an object has existed."""
    return since(at(obj, "metadata", "creationTimestamp"), now)


def number(value: JSONValue, *path: str) -> int:
    """The integer at a path; 0 when there is none."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def created(obj: JSONObject, now: float) -> Cells:
    """The cells of kinds that have no printer of their own."""
    return [name_of(obj), text(obj, "metadata", "creationTimestamp") or "0001-01-01T00:00:00Z"]


CREATED = Printer((NAME, PrinterColumn("Created At", "date")), created)


def aged(obj: JSONObject, now: float) -> Cells:
    """Name and age, and nothing else."""
    return [name_of(obj), age_of(obj, now)]
