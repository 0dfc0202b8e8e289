"""The environment of a Devbox for login shells: `export` lines that any POSIX shell reads back exactly."""

from __future__ import annotations

import re
from collections.abc import Mapping

_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_READ_ONLY = {"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}
_NUMBERS = {"HISTCMD", "OPTIND", "RANDOM", "SRANDOM"}
_KEPT_BY_SHELLS = _READ_ONLY | _NUMBERS
"""Assigning to these ends a shell: bash has some read-only, also as `sh`, and others take but numbers. What else is
assigned to them is evaluated, with the commands that are in it.
"""


def env_profile(variables: Mapping[str, str]) -> str:
    """A script that exports the variables with just these values, whatever characters are in them.

    Names that a shell cannot export are left out: as containers may have such variables, one of them must not end the
    script. So are values with a NUL, which no process can have in its environment.
    """
    exported = ((name, value) for name, value in variables.items() if is_exportable(name) and "\0" not in value)
    return "".join(f"export {name}={_quoted(value)}\n" for name, value in exported)


def is_exportable(name: str) -> bool:
    """Whether a shell takes it for the name of a variable, and lets that be set."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _KEPT_BY_SHELLS


def _quoted(value: str) -> str:
    # Within single quotes nothing has a meaning but the quote that ends them.
    return "'" + value.replace("'", "'\\''") + "'"
