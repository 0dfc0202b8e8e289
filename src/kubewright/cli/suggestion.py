"""What a user probably meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(given: str, known: Iterable[str], prefix: str = "") -> str:
    """The end of a sentence that names the closest one, with a prefix; empty when none is close."""
    close = difflib.get_close_matches(given, [*known], 1)
    return f', did you mean "{prefix}{close[0]}"?' if close else ""
