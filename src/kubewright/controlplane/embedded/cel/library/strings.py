"""The strings library: searching, cutting, joining and quoting text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubewright.controlplane.embedded.cel.library.formatting import formatted, quoted
from kubewright.controlplane.embedded.cel.library.overload import Overload, function, method
from kubewright.controlplane.embedded.cel.types import DYN, INT, STRING, list_of
from kubewright.controlplane.embedded.cel.values import EvaluationError, elements_of

_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
# What Go takes for white space; Python's own notion has a few more.
_SPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)


def _in_range(index: int, length: int) -> None:
    if not 0 <= index <= length:
        raise EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    _in_range(index, len(text))
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part) if part else len(text)


def _last_index_of_before(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise EvaluationError(f"index out of range: {offset}")
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, maximum: int = -1) -> str:
    return text.replace(old, new, maximum)


def _split(text: str, separator: str, maximum: int = -1) -> list[object]:
    if maximum == 0:
        return []
    if separator:
        return list(text.split(separator, maximum - 1 if maximum > 0 else -1))
    if 0 < maximum < len(text):
        return [*text[: maximum - 1], text[maximum - 1 :]]
    return list(text)


def _substring(text: str, start: int) -> str:
    _in_range(start, len(text))
    return text[start:]


def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _in_range(start, len(text))
    _in_range(end, len(text))
    return text[start:end]


def _join(texts: object, separator: str = "") -> str:
    elements: Sequence[object] = elements_of(texts) or []
    for element in elements:
        if not isinstance(element, str):
            raise EvaluationError(f"join: invalid input: {element}")
    return separator.join(map(str, elements))


STRING_FUNCTIONS: Final[list[Overload]] = [
    method("charAt", [STRING, INT], STRING, _char_at),
    method("indexOf", [STRING, STRING], INT, _index_of),
    method("indexOf", [STRING, STRING, INT], INT, _index_of),
    method("lastIndexOf", [STRING, STRING], INT, _last_index_of),
    method("lastIndexOf", [STRING, STRING, INT], INT, _last_index_of_before),
    method("lowerAscii", [STRING], STRING, lambda text: text.translate(_LOWER)),
    method("upperAscii", [STRING], STRING, lambda text: text.translate(_UPPER)),
    method("replace", [STRING, STRING, STRING], STRING, _replace),
    method("replace", [STRING, STRING, STRING, INT], STRING, _replace),
    method("split", [STRING, STRING], list_of(STRING), _split),
    method("split", [STRING, STRING, INT], list_of(STRING), _split),
    method("substring", [STRING, INT], STRING, _substring),
    method("substring", [STRING, INT, INT], STRING, _substring_between),
    method("trim", [STRING], STRING, lambda text: text.strip(_SPACE)),
    method("format", [STRING, list_of(DYN)], STRING, formatted),
    function("strings.quote", [STRING], STRING, quoted),
    method("join", [list_of(STRING)], STRING, _join),
    method("join", [list_of(STRING), STRING], STRING, _join),
]
