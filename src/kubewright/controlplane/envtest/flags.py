"""Flags as kube-apiserver reads them: `--name=value` or `--name value`, and `--name` alone for a switch.

What kube-apiserver does not know is refused in its words. What it knows is returned, whether it has an effect here or
not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

SWITCH = ""
"""The type of a flag that needs no value."""
_SHORT = {"-v": "v"}
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


class FlagError(Exception):
    """The command line is not one of kube-apiserver's."""


class GivenFlags:
    """The values that were given for each flag, in their order."""

    def __init__(self, given: Mapping[str, Sequence[str]]) -> None:
        self._given = given

    def __iter__(self) -> Iterator[str]:
        """The names of the flags that were given."""
        return iter(self._given)

    def text(self, name: str, default: str = "") -> str:
        """The last value of a flag, which is the one that counts."""
        return self._given[name][-1] if name in self._given else default

    def texts(self, name: str) -> list[str]:
        """All values of a flag that takes a list: given several times, or separated by commas."""
        return [value for values in self._given.get(name, ()) for value in values.split(",") if value]

    def number(self, name: str, default: int) -> int:
        """A number. Raises FlagError for anything else."""
        value = self.text(name)
        try:
            return int(value) if value else default
        except ValueError:
            raise FlagError(
                f'invalid argument "{value}" for "--{name}" flag: strconv.ParseInt: parsing "{value}": invalid syntax'
            ) from None

    def switch(self, name: str, *, default: bool) -> bool:
        """Whether it is on. Raises FlagError for what is neither true nor false."""
        if name not in self._given:
            return default
        value = self.text(name)
        if value not in _TRUE | _FALSE:
            raise FlagError(
                f'invalid argument "{value}" for "--{name}" flag: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        return value in _TRUE


def known_flags(lines: Iterable[str]) -> dict[str, str]:
    """The type of each flag, from lines such as `secure-port int`; `SWITCH` where there is none."""
    return {name: kind.strip() for name, _, kind in (line.partition(" ") for line in lines)}


def parse_flags(arguments: Sequence[str], known: Mapping[str, str]) -> GivenFlags:
    """Read a command line. Raises FlagError with kube-apiserver's sentence for what it would refuse."""
    given: dict[str, list[str]] = {}
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if not argument.startswith("-") or argument == "--":
            words = " ".join(f'"{word}"' for word in (rest if argument == "--" else [argument, *rest]))
            raise FlagError(f'"kube-apiserver" does not take any arguments, got [{words}]')
        written, has_value, value = argument.partition("=")
        # As there, both spellings of a name are the same.
        name = _SHORT.get(written) or written.removeprefix("--").replace("_", "-")
        if name not in known:
            if written.startswith("--"):
                raise FlagError(f"unknown flag: {written}")
            raise FlagError(f"unknown shorthand flag: '{written[1:2]}' in {written}")
        if not has_value:
            if known[name] == SWITCH:
                value = "true"
            elif rest:
                value = rest.pop(0)
            else:
                raise FlagError(f"flag needs an argument: {written}")
        given.setdefault(name, []).append(value)
    return GivenFlags(given)
