r"""Which Python patterns the API server understands.

The server searches with Go's RE2, as `re.search` does, and knows most of Python's syntax. What it lacks, or reads
differently, is found here before the server refuses it. Two differences remain: its `\d`, `\w`, `\s` and `\b` know
ASCII only, and its `$` does not match before a final newline, where Python's does.
"""

from __future__ import annotations

import re
from typing import Final

# Both read these escapes alike; every ASCII sign that is neither letter nor digit may be escaped as well.
_SHARED_ESCAPES: Final = frozenset("aAbBdDfnrsStvwWx0123456789")
_MAX_REPEATS: Final = 1000

_GROUPS: Final = {
    "(?=": "look-ahead (?=...)",
    "(?!": "negative look-ahead (?!...)",
    "(?<=": "look-behind (?<=...)",
    "(?<!": "negative look-behind (?<!...)",
    "(?P=": "a backreference (?P=...)",
    "(?(": "a conditional (?(...)...)",
    "(?>": "an atomic group (?>...)",
    "(?#": "a comment (?#...)",
}
_NAME: Final = re.compile(r"\(\?P<(\w+)>")
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?[:)]")
_REPEAT: Final = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
# Three octal digits are a character; in a class, where nothing can be referred to, two are enough.
_BACKREFERENCE: Final = re.compile(r"\\(?:[89]|[1-7](?![0-7]{2}))")
_SHORT_OCTAL: Final = re.compile(r"\\[1-7](?![0-7])")


def incompatibility(pattern: str) -> str | None:
    """The first construct of a valid Python pattern that the server does not read as Python does; None without any."""
    position = 0
    repeats = 1  # of what was read last, with those in it
    most = [1]  # in each of the groups around
    while position < len(pattern):
        sign, start = pattern[position], position
        if sign == "\\":
            found, position = _escape(pattern, position, in_class=False), position + 2
        elif sign == "[":
            found, position = _class(pattern, position)
        elif sign == "(":
            found, position = _group(pattern, position), position + 1
        elif sign in "*+?{":
            found, position = _repeat(pattern, position)
        else:
            found, position = None, position + 1
        if repeat := _REPEAT.match(pattern, start):
            repeats = repeats * _count(repeat) or 1  # nothing is left of what is repeated at most 0 times
            if repeats > _MAX_REPEATS:
                found = found or f"{repeat[0]} of repetitions (at most {_MAX_REPEATS} in all)"
        elif sign not in "*+?":
            most[-1] = max(most[-1], repeats)
            repeats = most.pop() if sign == ")" else 1
        if sign == "(":
            most.append(1)
        if found is not None:
            return found
    return None


def _escape(pattern: str, position: int, *, in_class: bool) -> str | None:
    letter = pattern[position + 1]
    if letter == "Z":
        return r"\Z (write $ at the end instead)"
    if not in_class and _BACKREFERENCE.match(pattern, position):
        return f"a backreference \\{letter}"
    if in_class and (letter == "b" or _SHORT_OCTAL.match(pattern, position)):
        return f"[\\{letter}]"
    if letter in _SHARED_ESCAPES:
        return None
    if letter.isascii() and not letter.isalnum():
        return None
    return f"the escape \\{letter}"


def _class(pattern: str, position: int) -> tuple[str | None, int]:
    position += 2 if pattern.startswith("[^", position) else 1
    start = position
    while pattern[position] != "]" or position == start:
        if pattern.startswith("[:", position):
            return "[: in a character class (escape the bracket)", position
        if pattern[position] == "\\":
            if found := _escape(pattern, position, in_class=True):
                return found, position
            position += 1
        position += 1
    return None, position + 1


def _group(pattern: str, position: int) -> str | None:
    for opening, name in _GROUPS.items():
        if pattern.startswith(opening, position):
            return name
    if (named := _NAME.match(pattern, position)) and not named[1].isascii():
        return f"the group name {named[1]}"
    if flags := _FLAGS.match(pattern, position):
        unknown = sorted({*flags[1], *(flags[2] or "")} - {*"ims"})
        if unknown:
            return f"the flag (?{unknown[0]})"
    return None


def _count(repeat: re.Match[str]) -> int:
    """How often something is repeated, as the server counts it: at most, or at least where there is no end."""
    least, comma, most = repeat.groups()
    if most:
        return int(most)
    return max(1, int(least or 0)) if comma else int(least or 1)


def _repeat(pattern: str, position: int) -> tuple[str | None, int]:
    """The quantifier at `position`: its text is read alike unless it is open to the left, large, or possessive."""
    end = position + 1
    if pattern[position] == "{":
        repeat = _REPEAT.match(pattern, position)
        if repeat is None or not repeat[0].strip("{}"):
            return None, end
        if not repeat[1]:
            return f"{repeat[0]} (write {{0,{repeat[3]}}})", end
        if max(int(repeat[1]), int(repeat[3] or 0)) > _MAX_REPEATS:
            return f"{repeat[0]} (at most {_MAX_REPEATS} repetitions)", end
        end = repeat.end()
    if pattern.startswith("+", end):
        return f"a possessive quantifier {pattern[position : end + 1]}", end
    # A question mark makes it lazy and is no quantifier of its own.
    return None, end + pattern.startswith("?", end)
