"""The names of fields and structures in Python.

A field has the name that `kubewright.api.naming` gives its JSON name. A structure is called by its kind and the field
that holds it, `WidgetTemplate`; where two structures of a kind would be called the same, by as many of the fields
around it as it takes, `WidgetBackupTemplate`. So a name depends on the definition only, not on the order of its fields.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Final, TypeAlias

from kubewright.api.naming import json_name, python_name

Path: TypeAlias = tuple[str, ...]

# What annotations and defaults of the same class refer to; and what every object has already.
_RESERVED_FIELDS: Final = frozenset({"bool", "datetime", "dict", "field", "float", "int", "list", "self", "str"})
_OF_OBJECTS: Final = frozenset({"key", "as_owner"})


def field_names(json_names: Iterable[str], *, of_object: bool = False) -> dict[str, str]:
    """The Python name of each field of a structure or an object, all different."""
    reserved = _RESERVED_FIELDS | _OF_OBJECTS if of_object else _RESERVED_FIELDS
    names: dict[str, str] = {}
    taken: set[str] = set()
    for name in json_names:
        python = python_name(name) if name.isascii() else ""
        if not python or not python.isidentifier():
            python = f"field_{python}" if python else "field_"
        if python in reserved:
            python = f"{python}_"
        names[name] = _unique(python, taken)
        taken.add(names[name])
    return names


def needs_json_name(python: str, name: str) -> bool:
    """Whether the JSON name has to be given, as the spelling rule does not lead to it."""
    return json_name(python) != name


def camel(name: str) -> str:
    """A name as part of the name of a class: `x-y` is XY, `dnsNames` is DnsNames."""
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^0-9A-Za-z]+", name))


def class_names(kind: str, paths: Mapping[str, Path], taken: Container[str]) -> dict[str, str]:
    """The name of each structure of a kind, by the fields that lead to it. The kind's own class is `kind`."""
    depth = dict.fromkeys(paths, 1)
    while True:
        names = {key: kind + "".join(map(camel, path[-depth[key] :])) for key, path in paths.items()}
        count = Counter(names.values())
        growing = [key for key, path in paths.items() if count[names[key]] > 1 and depth[key] < len(path)]
        if not growing:
            break
        for key in growing:
            depth[key] += 1
    unique: dict[str, str] = {}
    used = {kind}
    for key, name in names.items():
        unique[key] = _unique(name, used, taken)
        used.add(unique[key])
    return unique


def kind_name(kind: str, taken: Container[str]) -> str:
    """The name of the class of a kind: the kind itself, unless that is no identifier or means something else here."""
    name = camel(kind)
    if not name.isidentifier() or name in taken or hasattr(builtins, name):
        name = f"{name}Kind"
    return _unique(name, (), taken)


def _unique(name: str, *taken: Container[str]) -> str:
    candidate, number = name, 1
    while any(candidate in names for names in taken):
        number += 1
        candidate = f"{name}{number}" if not name.endswith("_") else f"{name}{number}_"
    return candidate
