"""Where in an expression something is wrong, and how cel-go shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOWHERE = -1
"""The offset of a fault of the whole expression."""

_MAX_SHOWN = 100
_MAX_SNIPPET_LENGTH = 16384


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault, at an offset counted in code points."""

    at: int
    message: str


class ExpressionError(Exception):
    """An expression that does not compile; its text is that of cel-go: every fault with the line it is in."""

    def __init__(self, expression: str, issues: Iterable[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.at)
        lines = expression.split("\n")
        shown = [_shown(lines, issue) for issue in self.issues[:_MAX_SHOWN]]
        if len(self.issues) > _MAX_SHOWN:
            shown.append(f"{len(self.issues) - _MAX_SHOWN} more errors were truncated")
        super().__init__("\n".join(shown))


def _shown(lines: list[str], issue: Issue) -> str:
    if issue.at == NOWHERE:
        return f"ERROR: <input>:-1:0: {issue.message}"
    line, column = 0, issue.at
    while line < len(lines) - 1 and column > len(lines[line]):
        column -= len(lines[line]) + 1
        line += 1
    text = f"ERROR: <input>:{line + 1}:{column + 1}: {issue.message}"
    snippet = lines[line].replace("\t", " ")
    if len(snippet.encode()) > _MAX_SNIPPET_LENGTH:
        return text
    # Characters beyond ASCII are taken to be wide, so that the mark stays below its character.
    dots = "".join("." if sign.isascii() else "．" for sign in snippet[:column])  # noqa: RUF001 (the wide dot is meant)
    mark = "^" if column >= len(snippet) or snippet[column].isascii() else "＾"  # noqa: RUF001 (the wide mark is meant)
    return f"{text}\n | {snippet}\n | {dots}{mark}"
