"""The `Warning` header fields of a response: each warning once, and with a limited total length.

Once they are too long together, each is cut short; once even that is too long, the rest is left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_MAX_LENGTH = 256
_MAX_TOTAL_LENGTH = 4096


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """The values of the fields. A warning with control characters cannot be sent and is left out."""
    distinct = [warning for warning in dict.fromkeys(warnings) if warning and not _has_control_characters(warning)]
    if sum(map(len, distinct)) > _MAX_TOTAL_LENGTH:
        distinct = _cut(distinct)
    return [f'299 - "{_quoted(warning)}"' for warning in distinct]


def _cut(warnings: list[str]) -> list[str]:
    """The warnings, cut short where they are too long together."""
    kept: list[str] = []
    whole = cut = 0
    for warning in warnings:
        if whole > _MAX_TOTAL_LENGTH and cut >= _MAX_TOTAL_LENGTH:
            break
        kept.append(warning[:_MAX_LENGTH])
        whole += len(warning)
        cut += len(kept[-1])
    return kept


def _quoted(warning: str) -> str:
    # Half of a surrogate pair is no character: as in Go, one that says so takes its place.
    characters = warning.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return characters.replace("\\", "\\\\").replace('"', '\\"')


def _has_control_characters(warning: str) -> bool:
    return not warning.isprintable() and any(unicodedata.category(character) == "Cc" for character in warning)
