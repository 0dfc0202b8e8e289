"""What others have written, such as pods and servers, without anything that a terminal takes for a command."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text, line by line as it is, with a space for each character that is no sign."""
    return "".join(each if each.isprintable() or each == "\n" else " " for each in text)


def printable_line(text: str) -> str:
    """The text as one line."""
    return " ".join(printable(text).split())
