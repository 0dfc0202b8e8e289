"""Regular expressions as Go reads them: in time linear in the text, whatever the pattern.

Schemas are written for Go's `regexp`, whose syntax is RE2's, so RE2 itself is used. Only its messages
differ: a pattern that Go would refuse is refused with Go's.
"""

from __future__ import annotations

import re
from typing import Final

import re2  # type: ignore[import-untyped]  # it has no stubs

from kubewright.controlplane.embedded.apimachinery.remembered import remembered

# How RE2 names what is wrong, and how Go does.
_PROBLEMS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
_TOO_LARGE: Final = "pattern too large"
_TOKEN: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|\(\?P?<(?P<name>[^>]*)>|[()]", re.DOTALL
)
_GROUP_NAME: Final = re.compile("[A-Za-z0-9_]+")
_DEEPEST: Final = 1000


class InvalidPattern(ValueError):
    """Go would not compile this; the text is Go's."""

    def __init__(self, problem: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{where}`")


class GoPattern:
    """A compiled expression. A text matches that has it anywhere."""

    def __init__(self, pattern: str) -> None:
        options = re2.Options()
        options.log_errors = False
        # Unicode classes are large once they are repeated; Go has no such bound, only one on the number of steps.
        options.max_mem = 64 << 20
        try:
            self._compiled = re2.compile(pattern, options)
        except re2.error as error:
            raise _invalid(pattern, str(error.args[0], "utf-8", "replace")) from None
        _check(pattern)

    def matches(self, text: str) -> bool:
        """Whether it is anywhere in the text."""
        return self._compiled.search(text) is not None

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """What matches, from left to right, without overlap; with `limit`, not more than that."""
        found: list[str] = []
        end = -1
        for match in self._compiled.finditer(text):
            if len(found) == limit:
                break
            # An empty match right after another one does not count.
            if match.end() > match.start() or match.start() != end:
                found.append(match.group())
                end = match.end()
        return found


@remembered(4096)
def go_pattern(pattern: str) -> GoPattern:
    """The compiled pattern. Raises `InvalidPattern` when Go has no such expression."""
    return GoPattern(pattern)


def _check(pattern: str) -> None:
    """What RE2 takes and Go does not: single bytes, names in other letters, and groups within groups without end."""
    depth = 0
    for found in _TOKEN.finditer(pattern):
        if found[0] == "\\C":
            raise InvalidPattern("invalid escape sequence", "\\C")
        if found["name"] is not None and not _GROUP_NAME.fullmatch(found["name"]):
            raise InvalidPattern("invalid named capture", found[0])
        depth += {"(": 1, ")": -1}.get(found[0][0], 0)
        if depth > _DEEPEST:
            raise InvalidPattern("expression nests too deeply", pattern)


def _invalid(pattern: str, complaint: str) -> InvalidPattern:
    if complaint.startswith(_TOO_LARGE):
        return InvalidPattern("expression too large", pattern)
    problem, _, where = complaint.partition(": ")
    if problem == "invalid repetition size":
        where = where.removesuffix("?")
    elif problem in ("invalid perl operator", "invalid named capture group") and where.startswith("(?<"):
        # Go takes any of these for the name of a group, up to where that should end.
        name = re.match("[^>]*>?", pattern[pattern.index(where) :])
        return InvalidPattern("invalid named capture", name[0] if name else where)
    return InvalidPattern(_PROBLEMS.get(problem, problem), where)
