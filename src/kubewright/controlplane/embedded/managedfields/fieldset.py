"""Sets of fields, in the form in which `managedFields` carries them.

A set is the JSON of `FieldsV1` itself: nested objects keyed by path elements (`f:name`, `k:{"name":"x"}`, `v:"value"`,
`i:0`). A field belongs to the set when its object is empty or holds `.`; otherwise only fields below it do. So what is
stored needs no decoding. Elements are canonical, which makes equal elements equal strings, and are in the order of Go's
structured-merge-diff. Sets are shared and never changed in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

import msgspec

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.apimachinery.remembered import remembered

FieldSet: TypeAlias = "dict[str, FieldSet]"
Path: TypeAlias = tuple[str, ...]

_MAX_DIGITS = 40
LEAF: FieldSet = {}
"""A field that belongs to the set, with nothing below it; as a whole set: the empty one."""


class MalformedFields(ValueError):
    """What a client sent is no FieldsV1."""


def is_member(node: FieldSet) -> bool:
    """Whether the field itself belongs to the set it was found in."""
    return not node or "." in node


def as_member(node: FieldSet | None) -> FieldSet:
    """The same fields below, and the field itself."""
    if not node:
        return LEAF
    return node if "." in node else {".": LEAF, **node}


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Every field of either set."""
    if not other:
        return one
    if not one:
        return other
    result = dict(one)
    grown = False
    for element, node in other.items():
        mine = result.get(element)
        if mine is None:
            result[element] = node
            grown = True
        elif mine is not node:
            result[element] = _joined(mine, node)
    return ordered(result) if grown else result


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        return as_member(other)
    if not other:
        return as_member(one)
    return union(one, other)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """The fields of both sets."""
    result: FieldSet = {}
    for element, node in one.items():
        other_node = other.get(element)
        if other_node is None or element == ".":
            continue
        below = intersection(node, other_node)
        if is_member(node) and is_member(other_node):
            result[element] = as_member(below)
        elif below:
            result[element] = below
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """The fields of `one` that are not in `other`. The membership of a field does not include what is below it."""
    return _difference(one, other, recursive=False)


def without(one: FieldSet, other: FieldSet) -> FieldSet:
    """The fields of `one` that are neither in `other` nor below a field of it."""
    return _difference(one, other, recursive=True) if other else one


def _difference(one: FieldSet, other: FieldSet, *, recursive: bool) -> FieldSet:
    if not other or not one:
        return one
    result: FieldSet = {}
    for element, node in one.items():
        other_node = other.get(element)
        if element == ".":
            continue
        if other_node is None:
            result[element] = node
            continue
        taken = is_member(other_node)
        if taken and recursive:
            continue
        below = _difference(node, other_node, recursive=recursive) if node else LEAF
        if not below or "." in below:
            below = {nested: fields for nested, fields in below.items() if nested != "."}
        if is_member(node) and not taken:
            result[element] = as_member(below)
        elif below:
            result[element] = below
    return result


def has(fields: FieldSet, path: Path) -> bool:
    """Whether the field at `path` belongs to the set."""
    node = fields
    for element in path:
        found = node.get(element)
        if found is None:
            return False
        node = found
    return bool(path) and is_member(node)


def of_paths(paths: Iterable[Path]) -> FieldSet:
    """The set of these fields."""
    result: FieldSet = {}
    for path in paths:
        node = LEAF
        for element in reversed(path):
            node = {element: node}
        result = union(result, node)
    return result


def paths(fields: FieldSet) -> Iterator[Path]:
    """Every field of the set: those of one level before those below them."""
    # The order of the elements may have been lost on the way through a client or a store.
    fields = ordered(fields)
    for element, node in fields.items():
        if element != "." and is_member(node):
            yield (element,)
    for element, node in fields.items():
        for path in paths(node):
            yield (element, *path)


def ordered(fields: FieldSet) -> FieldSet:
    """The same set, its elements (of this level) in canonical order."""
    if len(fields) < 2:
        return fields
    elements = list(fields)
    if all(element[0] in "f." for element in elements):
        elements.sort()
    else:
        elements.sort(key=_rank)
    return {element: fields[element] for element in elements}


@remembered(8192)
def _rank(element: str) -> tuple[int, tuple[tuple[str, int, float | str], ...]]:
    """Names, then keys, then values, then indexes; numbers by size."""
    kind, rest = element[0], element[2:]
    if kind == "k":
        key = msgspec.json.decode(rest, type=dict[str, object])
        return 1, tuple((name, *_rank_of_value(value)) for name, value in key.items())
    if kind == "v":
        return 2, (("", *_rank_of_value(msgspec.json.decode(rest))),)
    if kind == "i":
        return 3, (("", 0, bounded_integer(rest)),)
    return 0, ((rest, 0, 0),)


def _rank_of_value(value: object) -> tuple[int, float | str]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    rank = 3 if isinstance(value, list) else 4 if isinstance(value, dict) else 5
    return rank, msgspec.json.encode(value).decode()


@remembered(8192)
def quoted(string: str) -> str:
    """A string as Go's JSON encoder writes it, which escapes what HTML would mind."""
    text = msgspec.json.encode(string).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def canonical(value: JSONValue) -> str:
    """The JSON of a value within a path element; the same text for all ways to write a number."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, dict):
        return f"{{{','.join(f'{quoted(name)}:{canonical(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    return msgspec.json.encode(value).decode()


def parsed(value: JSONValue) -> FieldSet:
    """The set in a FieldsV1 that a client wrote, made canonical. Elements of kinds unknown today are left out."""
    try:
        fields = _parsed(value)
    except RecursionError:
        raise MalformedFields("it is nested too deeply") from None
    return {element: node for element, node in fields.items() if element != "."}


def _parsed(value: JSONValue | msgspec.Raw) -> FieldSet:
    if isinstance(value, msgspec.Raw):
        # A set nests a little deeper than the object it is of, of which it is a part.
        value = cast(JSONValue, msgspec.json.decode(value))
    if not isinstance(value, dict):
        raise MalformedFields("an object is expected")
    result: FieldSet = {}
    for element, nested in value.items():
        if element == ".":
            result["."] = LEAF
            continue
        known = _canonical_element(element)
        if known is not None:
            result[known] = _parsed(nested)
    return LEAF if len(result) == 1 and "." in result else ordered(result)


def _canonical_element(element: str) -> str | None:
    kind, rest = element[:2], element[2:]
    try:
        if kind == "f:":
            return element
        if kind == "v:":
            return f"v:{canonical(msgspec.json.decode(rest))}"
        if kind == "k:":
            return f"k:{canonical(msgspec.json.decode(rest, type=dict))}"
        if kind == "i:":
            return f"i:{_index(rest)}"
    except (ValueError, RecursionError) as error:
        raise MalformedFields(f"{element!r} is no path element") from error
    if len(kind) < 2 or kind[1] != ":":
        raise MalformedFields(f"{element!r} is no path element")
    return None


def _index(text: str) -> int:
    """The number of a path element. Raises ValueError when it is none, or out of range."""
    if len(text) > _MAX_DIGITS or not -(2**63) <= (index := int(text)) < 2**63:
        raise ValueError(text)
    return index


def path_text(path: Path) -> str:
    """A path as messages show it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """One element as messages show it."""
    kind, rest = element[0], element[2:]
    if kind == "k":
        key = msgspec.json.decode(rest, type=dict[str, object])
        return f"[{','.join(f'{name}={_shown(value)}' for name, value in key.items())}]"
    if kind == "v":
        return f"[={_shown(msgspec.json.decode(rest))}]"
    return f"[{rest}]" if kind == "i" else f".{rest}"


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()
