"""Docstrings from the descriptions of a schema: wrapped, and safe to stand between triple quotes."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Final

# Lines whose breaks mean something: lists, quotes, tables, code, headings.
_KEPT: Final = re.compile(r"\s|[-*+>|#]|```|\d+[.)]\s")
_SPACE: Final = re.compile(r"[^\S\n]")


def docstring(description: str, indent: str, width: int) -> list[str]:
    """The lines of a docstring that says `description`, or none when that is empty."""
    text = inspect.cleandoc(_SPACE.sub(" ", description)).strip()
    lines = _wrapped(text, width - len(indent) - len('"""'))
    if len(lines) == 1 and len(f'{indent}"""{lines[0]}"""') > width:
        lines = _wrapped(text, width - len(indent) - 2 * len('"""'))
    if not text:
        return []
    lines = [_escaped(line) for line in lines]
    if text.endswith('"') and not text.endswith('"""'):
        lines[-1] = f'{lines[-1][:-1]}\\"'
    if lines[0].startswith('"'):
        lines[0] = f"\\{lines[0]}"
    if len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}".rstrip() for line in lines[1:]), f'{indent}"""']


def _escaped(line: str) -> str:
    escaped = "".join(
        character if character.isprintable() and character != "\\" else repr(character)[1:-1] for character in line
    )
    return re.sub('"{3,}', lambda quotes: '\\"' * len(quotes[0]), escaped)


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        written = [line.rstrip() for line in paragraph.split("\n")]
        if not any(_KEPT.match(line) for line in written):
            written = [" ".join(written)]
        lines += [""] * bool(lines) + [part for line in written for part in _wrap(line, width)]
    return lines


def _wrap(line: str, width: int) -> list[str]:
    indent = re.match(r" *(?:[-*+] |\d+[.)] )?", line)
    following = " " * len(indent[0] if indent else "")
    return textwrap.wrap(line, width, subsequent_indent=following, break_long_words=False, break_on_hyphens=False) or [
        ""
    ]
