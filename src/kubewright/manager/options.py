"""An operator's own options: the fields of a Model become flags and environment variables.

    class Options(Model):
        dns_zone: Annotated[str, Meta(description="The zone that names are made in")]
        timeout: Annotated[timedelta, Meta(description="How long a request may take")] = timedelta(seconds=30)
        dry_run: bool = False

    run(setup, name="podmanager", options=Options)

is `--dns-zone`, `--timeout 1m30s` and `--dry-run`, or `PODMANAGER_DNS_ZONE` and so on. A flag takes precedence over its
variable; a variable that is empty counts as not set. A list takes its flag several times, or a variable with commas.
"""

from __future__ import annotations

import argparse
import enum
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from kubewright.manager.durations import duration_text, parse_duration

Options = TypeVar("Options", bound=Struct)

_METAVARS: dict[object, str] = {
    str: "TEXT",
    int: "INT",
    float: "NUMBER",
    bool: "BOOL",
    Path: "PATH",
    timedelta: "DURATION",
}
_COLLECTIONS: dict[object, Callable[[Iterable[object]], object]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}


class OptionError(ValueError):
    """An option that is required is not given, or a value cannot be used."""


class Option(Struct, frozen=True):
    """One field of the options. `item` is the type of a value, or of each value of a `collection`."""

    field: str
    flag: str
    variable: str
    item: object
    collection: Callable[[Iterable[object]], object] | None
    description: str
    default: object
    is_required: bool

    @property
    def choices(self) -> list[str]:
        """The values that are accepted, when they can be listed."""
        base = _bare(self.item)
        if get_origin(base) is Literal:
            return [str(value) for value in get_args(base)]
        if isinstance(base, type) and issubclass(base, enum.Enum):
            return [str(member.value) for member in base]
        return []

    @property
    def metavar(self) -> str:
        """The placeholder of a value in the help."""
        choices = self.choices
        return f"{{{','.join(choices)}}}" if choices else _METAVARS[_bare(self.item)]

    @property
    def help(self) -> str:
        """The description, and the other sources of a value."""
        notes = [f"env {self.variable}"]
        if self.collection is not None:
            notes.append("may be repeated")
        if self.is_required:
            notes.append("required")
        elif shown := _shown(self.default):
            notes.append(f"default: {shown}")
        return f"{self.description} ({'; '.join(notes)})".lstrip()

    def read(self, given: Sequence[str] | None, environment: Mapping[str, str]) -> object:
        """The value that a flag was `given`, or else that of the variable, or else the default."""
        if given is not None:
            return self._converted(given, self.flag, is_shown=True)
        text = environment.get(self.variable, "")
        if text:
            texts = [text] if self.collection is None else [part.strip() for part in text.split(",")]
            # Variables often hold credentials.
            return self._converted(texts, f"the environment variable {self.variable}", is_shown=False)
        if self.is_required:
            described = f": {self.description}" if self.description else ""
            raise OptionError(f"{self.flag} (or the environment variable {self.variable}) is required{described}")
        return self.default

    def _converted(self, texts: Sequence[str], source: str, *, is_shown: bool) -> object:
        values = []
        for text in texts:
            try:
                values.append(_value(text, self.item))
            except ValueError as error:
                expected = f"expected one of {', '.join(self.choices)}" if self.choices else _expected(error)
                found = f', found "{text}"' if is_shown else ""
                raise OptionError(f"{source}: {expected}{found}") from None
        return values[-1] if self.collection is None else self.collection(values)


class OptionFlags(Generic[Options]):
    """The flags and variables of one type of options. TypeError for one that cannot be given on a command line."""

    def __init__(self, options: type[Options], program: str) -> None:
        given: object = options
        if not (inspect.isclass(given) and issubclass(given, Struct)):
            raise TypeError(f"options={given!r}: expected a class that derives from kubewright.Model")
        self._options = options
        prefix = re.sub(r"[^A-Z0-9]+", "_", program.upper())
        self.all = [_option(options, info, prefix) for info in msgspec.structs.fields(options)]

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags to a parser, as a group of their own."""
        description = inspect.cleandoc(self._options.__doc__ or "").partition("\n\n")[0] or None
        group = parser.add_argument_group(f"options of {parser.prog}", description)
        for option in self.all:
            # As with Go's flags, `--dry-run` is `--dry-run=true`.
            is_switch = _bare(option.item) is bool
            try:
                group.add_argument(
                    option.flag,
                    dest=f"option {option.field}",
                    metavar=option.metavar,
                    action="append",
                    help=option.help.replace("%", "%%"),
                    **({"nargs": "?", "const": "true"} if is_switch else {}),  # type: ignore[arg-type]  # not in the stubs
                )
            except argparse.ArgumentError:
                raise TypeError(
                    f"{self._options.__name__}.{option.field}: every operator has a flag {option.flag}; "
                    "rename the field"
                ) from None

    def read(self, parsed: argparse.Namespace, environment: Mapping[str, str]) -> Options:
        """The options, from parsed flags and the environment. Raises `OptionError`."""
        given = vars(parsed)
        values = {option.field: option.read(given[f"option {option.field}"], environment) for option in self.all}
        try:
            return self._options(**values)
        except ValueError as error:  # of a __post_init__
            raise OptionError(str(error)) from None


def _option(options: type[Struct], info: msgspec.structs.FieldInfo, prefix: str) -> Option:
    item, collection = info.type, None
    origin = get_origin(_bare(item))
    if origin in _COLLECTIONS or _bare(item) in _COLLECTIONS:
        collection = _COLLECTIONS[origin or _bare(item)]
        item = (get_args(_bare(item)) or (str,))[0]
    base = _bare(item)
    if base not in _METAVARS and get_origin(base) is not Literal and not isinstance(base, enum.EnumMeta):
        raise TypeError(
            f"{options.__name__}.{info.name}: {getattr(base, '__name__', base)} cannot be a flag: expected str, int, "
            "float, bool, Path, timedelta, a Literal, an Enum, or a list of one of these"
        )
    default = info.default if info.default_factory is NODEFAULT else info.default_factory()
    return Option(
        field=info.name,
        flag=f"--{info.name.replace('_', '-')}",
        variable=f"{prefix}_{info.name.upper()}",
        item=item,
        collection=collection,
        description=next((meta.description for meta in _metas(info.type) if meta.description), ""),
        default=default,
        is_required=info.required,
    )


def _bare(type_: object) -> object:
    """The type without constraints, and without None."""
    if get_origin(type_) is Annotated:
        return _bare(get_args(type_)[0])
    if get_origin(type_) in (Union, UnionType):
        others = [each for each in get_args(type_) if each is not NoneType]
        return _bare(others[0]) if len(others) == 1 else type_
    return type_


def _metas(type_: object) -> Iterable[Meta]:
    if get_origin(type_) is Annotated:
        inner, *extras = get_args(type_)
        yield from (extra for extra in extras if isinstance(extra, Meta))
        yield from _metas(inner)


def _value(text: str, type_: object) -> object:
    """The value of a text. ValueError when it has none."""
    base = _bare(type_)
    if base is Path:
        return Path(text)
    if base is timedelta:
        return parse_duration(text)
    return msgspec.convert(text, type_, strict=False)


def _expected(error: ValueError) -> str:
    """The message of msgspec without its quotes, and without the found type, which is always str."""
    text = str(error).replace("`", "").partition(", got ")[0]
    return text[:1].lower() + text[1:]


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case enum.Enum():
            return str(value.value)
        case timedelta():
            return duration_text(value)
        case list() | tuple() | set() | frozenset():
            return ",".join(map(_shown, value))
    return str(value)
