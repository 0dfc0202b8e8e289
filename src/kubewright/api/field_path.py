r"""Paths of fields: one syntax for columns, scale, selectors, indexes and waiting.

    spec.replicas
    spec.ports[0].name
    metadata.labels["app.kubernetes.io/name"]             or metadata.labels.app\.kubernetes\.io/name
    status.conditions[?(@.type=="Ready")].status          several values: for columns only

Names are those of JSON, and a dot in front may be left out. It is the part of kubectl's JSONPath that means fields.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Struct

from kubewright.api.markers import JSONValue

# Compiled when first used, and kept by `re`: most paths are names alone.
_STEP = r"""(?:^|\.)(?P<name>(?:\\.|[^.\[\]\\\s{}'"])+)
    | \[(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)")\]
    | \[(?P<index>\d+)\]
    | \[(?P<items>\*|-\d+|-?\d*:-?\d*(?::\d+)?|\?\(.+?\))\]"""
_NAMES = r"""(?:(?:^|\.)[^.\[\]\\\s{}'"]+)+"""


class FieldPathError(ValueError):
    """Text that is not the path of a field."""


class SomeItems(Struct, frozen=True):
    """A step to several items of a list, or to one counted from its end: `[*]`, `[-1]`, `[1:3]`, `[?(...)]`."""

    text: str


Step: TypeAlias = str | int | SomeItems


class FieldPath:
    """A parsed path. Raises `FieldPathError` for text that is none, with the part that cannot be read."""

    __slots__ = ("steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = _parsed(text)

    @property
    def names(self) -> tuple[str, ...]:
        """The steps of a path that consists of names; `FieldPathError` for any other."""
        names = tuple(step for step in self.steps if isinstance(step, str))
        if len(names) < len(self.steps) or "[" in self.text:
            raise FieldPathError(f'"{self.text}" has more than names: expected a path such as .spec.replicas')
        return names

    def read(self, content: JSONValue) -> JSONValue:
        """The value in an object; None when it is not there, or when the path leads to several."""
        value = content
        for step in self.steps:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def __str__(self) -> str:
        """With the dot that Kubernetes demands in definitions."""
        return self.text if self.text.startswith((".", "[")) else f".{self.text}"


def _parsed(text: str) -> tuple[Step, ...]:
    if re.fullmatch(_NAMES, text):
        return tuple(text.removeprefix(".").split("."))
    steps: list[Step] = []
    position = 0
    pattern = re.compile(_STEP, re.VERBOSE)
    while not steps or position < len(text):
        found = pattern.match(text, position)
        if found is None:
            raise FieldPathError(
                f'"{text}" is not the path of a field, from "{text[position:]}" on: '
                'expected something like spec.ports[0].name or metadata.labels["app.kubernetes.io/name"]'
            )
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["index"]:
        return int(found["index"])
    if found["items"]:
        return SomeItems(f"[{found['items']}]")
    return found["single"] or found["double"] or re.sub(r"\\(.)", r"\1", found["name"])
