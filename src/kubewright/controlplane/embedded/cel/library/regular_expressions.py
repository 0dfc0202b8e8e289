"""Regular expressions in rules: what matches, and what is found."""

from __future__ import annotations

from typing import Final

from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import BOOL, INT, STRING, list_of
from kubewright.controlplane.embedded.cel.values import EvaluationError
from kubewright.controlplane.embedded.schema.patterns import GoPattern, InvalidPattern, go_pattern


def _matches(text: str, pattern: str) -> bool:
    try:
        return go_pattern(pattern).matches(text)
    except InvalidPattern as error:
        raise EvaluationError(str(error)) from None


def _find(text: str, pattern: str) -> str:
    return next(iter(_searched(pattern).find_all(text, 1)), "")


def _find_all(text: str, pattern: str, maximum: int = -1) -> list[object]:
    return [*_searched(pattern).find_all(text, maximum)]


def _searched(pattern: str) -> GoPattern:
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
