"""Regular expressions as Go reads them.

Schemas are written for Go's `regexp` (RE2). Its syntax is close to Python's but not the same: here a pattern is
translated, and refused with Go's words when Go would refuse it.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_LETTERS = {
    "d": "0-9",
    "D": "\\x00-/:-\\U0010ffff",
    "w": "0-9A-Za-z_",
    "W": "\\x00-/:-@\\[-\\^`{-\\U0010ffff",
    "s": "\\t\\n\\f\\r ",
    "S": "\\x00-\\x08\\x0b\\x0e-\\x1f!-\\U0010ffff",
}
_CONTROLS = {"a": "\\x07", "f": "\\f", "n": "\\n", "r": "\\r", "t": "\\t", "v": "\\v"}
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<(?:([A-Za-z0-9_]+)>|[^>]*(?:>|$))")
_MOST_REPEATS = 1000


class InvalidPattern(ValueError):
    """Go would not compile this; the text is Go's."""

    def __init__(self, problem: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{where}`")


@lru_cache(maxsize=4096)
def go_pattern(pattern: str) -> re.Pattern[str]:
    r"""The pattern for Python's `search`. Raises `InvalidPattern` when Go has no such expression.

    Scripts (`\p{Greek}`) are told by the names of the characters, which is an approximation.
    """
    translated = _Translation(pattern).text()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error), pattern) from None


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        # Of every open group: its flags, and how many scoped flag groups were opened in it.
        self._flags: list[frozenset[str]] = [frozenset()]
        self._scopes: list[list[str]] = [[]]
        # Whether something repeatable precedes, and the repetition that was just read.
        self._repeatable = False
        self._repetition = ""

    def text(self) -> str:
        pattern = self._pattern
        while self._at < len(pattern):
            character = pattern[self._at]
            if character in "*+?" or (character == "{" and _COUNT.match(pattern, self._at)):
                self._repeat(character)
                continue
            self._repetition = ""
            if character == "\\":
                self._escape()
            elif character == "[":
                self._emit(self._class())
            elif character == "(":
                self._open()
            elif character == ")":
                self._close()
            elif character == "|":
                self._alternative()
            else:
                self._at += 1
                self._emit(self._character(character))
        if len(self._flags) > 1:
            raise InvalidPattern("missing closing )", pattern)
        return "".join(self._out) + ")" * len(self._scopes[0])

    def _emit(self, text: str) -> None:
        self._out.append(text)
        self._repeatable = True

    def _character(self, character: str) -> str:
        flags = self._flags[-1]
        if character == ".":
            return "(?s:.)" if "s" in flags else "[^\\n]"
        if character == "^":
            return "(?m:^)" if "m" in flags else "(?-m:^)"
        if character == "$":
            return "(?m:$)" if "m" in flags else "\\Z"
        return re.escape(character)

    def _repeat(self, character: str) -> None:
        start = self._at
        found = _COUNT.match(self._pattern, self._at)
        operator = found[0] if found and character == "{" else character
        if not self._repeatable:
            raise InvalidPattern("missing argument to repetition operator", operator)
        if self._repetition:
            raise InvalidPattern("invalid nested repetition operator", self._repetition + operator)
        if found and character == "{":
            least, most = int(found[1]), int(found[3] or found[1])
            if least > _MOST_REPEATS or most > _MOST_REPEATS or most < least:
                raise InvalidPattern("invalid repeat count", operator)
        self._at += len(operator)
        if self._pattern.startswith("?", self._at):
            operator += "?"
            self._at += 1
        self._out.append(operator)
        self._repetition = self._pattern[start : self._at]

    def _open(self) -> None:
        pattern = self._pattern
        flags = self._flags[-1]
        named = _NAMED.match(pattern, self._at)
        flagged = _FLAGS.match(pattern, self._at)
        if flagged:
            self._at = flagged.end()
            flags = (flags | set(flagged[1])) - set(flagged[2] or "")
            scope = "(?i:" if "i" in flags else "(?-i:"
            if flagged[3] == ")":
                self._flags[-1] = flags
                self._scopes[-1].append(scope)
                self._out.append(scope)
                self._repeatable = False
                return
            self._out.append(scope)
        elif named:
            if not named[1]:
                raise InvalidPattern("invalid named capture", named[0])
            # Nobody asks for the group, and Python, unlike Go, wants its name only once.
            self._at = named.end()
            self._out.append("(")
        elif pattern.startswith("(?", self._at):
            raise InvalidPattern("invalid or unsupported Perl syntax", pattern[self._at : self._at + 3])
        else:
            self._at += 1
            self._out.append("(")
        self._flags.append(flags)
        self._scopes.append([])
        self._repeatable = False

    def _close(self) -> None:
        if len(self._flags) == 1:
            raise InvalidPattern("unexpected )", self._pattern)
        self._at += 1
        self._flags.pop()
        self._emit(")" * len(self._scopes.pop()) + ")")

    def _alternative(self) -> None:
        # Flags set in the middle of a group also hold for its later alternatives.
        self._at += 1
        scopes = self._scopes[-1]
        self._out.append(")" * len(scopes) + "|" + "".join(scopes))
        self._repeatable = False

    def _escape(self) -> None:
        pattern = self._pattern
        following = pattern[self._at + 1 : self._at + 2]
        if following == "Q":
            end = pattern.find("\\E", self._at)
            literal = pattern[self._at + 2 : end if end >= 0 else len(pattern)]
            self._at = end + 2 if end >= 0 else len(pattern)
            for character in literal:
                self._emit(re.escape(character))
        elif following and following in "AbB":
            self._at += 2
            self._emit("\\A" if following == "A" else f"(?a:\\{following})")
        elif following == "z":
            self._at += 2
            self._emit("\\Z")
        else:
            text, is_set = self._escaped()
            self._emit(f"[{text}]" if is_set else text)

    def _escaped(self) -> tuple[str, bool]:
        """The escape at hand, and whether it is a set of characters (then without its brackets)."""
        pattern = self._pattern
        start = self._at
        character = pattern[start + 1 : start + 2]
        self._at += 2
        if not character:
            raise InvalidPattern("trailing backslash at end of expression", "")
        if character in _LETTERS:
            return _LETTERS[character], True
        if character in "pP":
            return self._property(start, negated=character == "P"), True
        if character in _CONTROLS:
            return _CONTROLS[character], False
        if character == "x":
            found = re.compile(r"\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2})").match(pattern, self._at)
            if found and int(found[1] or found[2], 16) <= sys.maxunicode:
                self._at = found.end()
                return re.escape(chr(int(found[1] or found[2], 16))), False
        octal = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(pattern, start + 1)
        if octal:
            self._at = octal.end()
            return re.escape(chr(int(octal[0], 8))), False
        if character.isascii() and not character.isalnum():
            return re.escape(character), False
        raise InvalidPattern("invalid escape sequence", pattern[start : self._at])

    def _property(self, start: int, *, negated: bool) -> str:
        found = re.compile(r"\{(\^?)([^}]*)\}|()(.)").match(self._pattern, self._at)
        if found is None:
            raise InvalidPattern("invalid character class range", self._pattern[start:])
        self._at = found.end()
        ranges = _unicode_ranges(found[2] or found[4], negated != bool(found[1]))
        if not ranges:
            raise InvalidPattern("invalid character class range", self._pattern[start : self._at])
        return ranges

    def _class(self) -> str:
        pattern = self._pattern
        start = self._at
        self._at += 1
        parts: list[str] = []
        if pattern.startswith("^", self._at):
            self._at += 1
            parts.append("^")
        first = True
        while first or not pattern.startswith("]", self._at):
            first = False
            if self._at >= len(pattern):
                raise InvalidPattern("missing closing ]", pattern[start:])
            parts.append(self._class_item(start))
        self._at += 1
        return "[" + "".join(parts) + "]"

    def _class_item(self, start: int) -> str:
        pattern = self._pattern
        named = re.compile(r"\[:(\^?)(\w+):\]").match(pattern, self._at)
        if named:
            if named[2] not in _CLASSES:
                raise InvalidPattern("invalid character class range", named[0])
            self._at = named.end()
            return _complement(_CLASSES[named[2]]) if named[1] else _CLASSES[named[2]]
        begin = self._at
        low, is_set = self._class_character(start)
        following = pattern[self._at + 1 : self._at + 2]
        if is_set or not pattern.startswith("-", self._at) or following in ("]", ""):
            return low
        self._at += 1
        high, is_set = self._class_character(start)
        if is_set or _codepoint(high) < _codepoint(low):
            raise InvalidPattern("invalid character class range", pattern[begin : self._at])
        return f"{low}-{high}"

    def _class_character(self, start: int) -> tuple[str, bool]:
        pattern = self._pattern
        if self._at >= len(pattern):
            raise InvalidPattern("missing closing ]", pattern[start:])
        if pattern[self._at] == "\\":
            return self._escaped()
        self._at += 1
        return re.escape(pattern[self._at - 1]), False


def _codepoint(escaped: str) -> int:
    controls = {"\\x07": 7, "\\f": 12, "\\n": 10, "\\r": 13, "\\t": 9, "\\v": 11}
    return controls[escaped] if escaped in controls else ord(escaped[-1])


def _complement(ranges: str) -> str:
    matches = re.compile(f"[{ranges}]").match
    return _as_ranges([code for code in range(sys.maxunicode + 1) if matches(chr(code)) is None])


@lru_cache(maxsize=256)
def _unicode_ranges(name: str, negated: bool) -> str:
    if name == "Any":
        return "" if negated else "\\x00-\\U0010ffff"
    everything = range(sys.maxunicode + 1)
    if len(name) <= 2:
        members = {code for code in everything if unicodedata.category(chr(code)).startswith(name)}
    else:
        prefix = ("CJK" if name == "Han" else name.upper().replace("_", " ")) + " "
        members = {code for code in everything if unicodedata.name(chr(code), "").startswith(prefix)}
    if not members or not name:
        return ""
    return _as_ranges([code for code in everything if (code in members) != negated])


def _as_ranges(codes: list[int]) -> str:
    parts: list[str] = []
    start = previous = codes[0]
    for code in [*codes[1:], -1]:
        if code != previous + 1:
            parts.append(f"\\U{start:08x}-\\U{previous:08x}")
            start = code
        previous = code
    return "".join(parts)
