"""Regular expressions in rules: what matches, and what is found."""

from __future__ import annotations

import re
from typing import Final

from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, INT, STRING, list_of
from kubewright.controlplane.embedded.cel.values import EvaluationError
from kubewright.controlplane.embedded.schema.patterns import InvalidPattern, go_pattern


def _matches(text: str, pattern: str) -> bool:
    try:
        return go_pattern(pattern).search(text) is not None
    except InvalidPattern as error:
        raise EvaluationError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    found = _searched(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, most: int = -1) -> list[object]:
    searched = _searched(pattern)
    found: list[object] = []
    position, end = 0, -1
    while len(found) != most and position <= len(text):
        match = searched.search(text, position)
        if match is None:
            break
        # An empty match right after another one does not count.
        if match.end() > match.start() or match.start() != end:
            found.append(match.group())
            end = match.end()
        position = match.end() if match.end() > match.start() else match.end() + 1
    return found


def _searched(pattern: str) -> re.Pattern[str]:
    try:
        return go_pattern(pattern)
    except InvalidPattern as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


REGEX_FUNCTIONS: Final[list[Overload]] = [
    method("matches", [STRING, STRING], BOOL, _matches, guarded=False),
    function("matches", [STRING, STRING], BOOL, _matches),
    method("find", [STRING, STRING], STRING, _find),
    method("findAll", [STRING, STRING], list_of(STRING), _find_all),
    method("findAll", [STRING, STRING, INT], list_of(STRING), _find_all),
]
