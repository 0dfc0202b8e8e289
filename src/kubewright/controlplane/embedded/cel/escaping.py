"""How property names that are no identifiers are written in rules: `my-name` is `my__dash__name`."""

from __future__ import annotations

import re
from typing import Final

RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"),
        *("let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
"""Words that are no identifiers, though rules may select a field of such a name."""
_ESCAPABLE: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_PART: Final = re.compile(r"__|[-./]")
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escaped(name: str) -> str | None:
    """The identifier that stands for a property; None when no rule can name it."""
    if not _ESCAPABLE.fullmatch(name):
        return None
    if name in RESERVED:
        return f"__{name}__"
    return _PART.sub(lambda found: _ESCAPES[found.group()], name)
