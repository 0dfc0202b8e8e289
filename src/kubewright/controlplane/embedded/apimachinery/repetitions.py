"""Fields that appear twice in a body: complaints about them, in the order in which a reader comes upon them.

Bodies of that kind are rare: they are read again, name by name, only once it is known that something is repeated.
"""

from __future__ import annotations

import json

import yaml

from kubewright.controlplane.embedded.apimachinery.structure import SCALAR, Structure

_Pairs = list[tuple[str, object]]


class _Members(list[tuple[str, object]]):
    """A JSON object as it was written; a list is an array."""


def repeats_fields(body: bytes | str) -> bool:
    """Whether any object in a JSON document has a field twice."""
    found = False

    def check(pairs: _Pairs) -> None:
        nonlocal found
        found = found or len(dict(pairs)) != len(pairs)

    json.loads(body, object_pairs_hook=check)
    return found


def repeated_fields(body: bytes | str) -> list[str]:
    """The repeated fields of a JSON document of any form."""
    # Instead of a set, for its order: each is reported once.
    messages: dict[str, None] = {}
    _walk(_read(body), "", messages)
    return list(messages)


def unknown_and_repeated_fields(body: bytes | str, structure: Structure) -> list[str]:
    """The unknown and repeated fields of a JSON document of a known form; nothing inside of unknown fields."""
    messages: dict[str, None] = {}
    _walk_known(_read(body), structure, "", messages)
    return list(messages)


def _read(body: bytes | str) -> object:
    return json.loads(body, object_pairs_hook=_Members)


def _walk(value: object, path: str, messages: dict[str, None]) -> None:
    if isinstance(value, _Members):
        seen: set[str] = set()
        for name, member in value:
            nested = f"{path}.{name}" if path else name
            if name in seen:
                messages[_repeated(nested)] = None
            seen.add(name)
            _walk(member, nested, messages)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _walk(member, f"{path}[{index}]", messages)


def _walk_known(value: object, structure: Structure, path: str, messages: dict[str, None]) -> None:
    if isinstance(value, _Members) and structure.form in ("struct", "map"):
        seen: set[str] = set()
        for name, member in value:
            nested = f"{path}.{name}" if path else name
            field = SCALAR if nested in ("apiVersion", "kind") else structure.field(name)
            if field is None:
                messages[f'unknown field "{nested}"'] = None
                continue
            if name in seen:
                messages[_repeated(nested)] = None
            seen.add(name)
            _walk_known(member, field, nested, messages)
    elif isinstance(value, list) and structure.form == "list":
        for index, member in enumerate(value):
            _walk_known(member, structure.item, f"{path}[{index}]", messages)


def _repeated(path: str) -> str:
    return f'duplicate field "{path}"'


def repeated_keys(node: yaml.Node) -> list[str]:
    """The repeated keys of a YAML document; a key is named by the line of its value, after those within it."""
    found: list[str] = []
    visited: set[int] = set()
    # What is still to be visited or reported, the next one last: documents nest deeper than functions may.
    rest: list[yaml.Node | str] = [node]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            found.append(item)
        # By aliases, a node can be in many places.
        elif isinstance(item, yaml.CollectionNode) and id(item) not in visited:
            visited.add(id(item))
            rest += reversed(_keys_of(item) if isinstance(item, yaml.MappingNode) else item.value)
    return found


def _keys_of(mapping: yaml.MappingNode) -> list[yaml.Node | str]:
    """The values of a mapping, each followed by the complaint about its key."""
    messages: list[yaml.Node | str] = []
    seen: set[str] = set()
    for key, value in mapping.value:
        messages.append(value)
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                messages.append(f'line {value.start_mark.line + 1}: key "{key.value}" already set in map')
            seen.add(key.value)
    return messages
