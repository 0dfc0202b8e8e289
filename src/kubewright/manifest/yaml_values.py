"""The values of YAML as Go reads it for Kubernetes: only what JSON can express.

Which plain text is a number, a boolean or null is decided by Go's rules, not by PyYAML's: `1e3` and `08` are numbers,
`12:30` is text. The names of fields are text, whatever they look like. Nothing here recurses, and nothing takes longer
than in proportion to what is read.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Final, TypeAlias, cast

import yaml

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

PLAIN: Final = "?"
"""The tag of a plain scalar that was given none: it is what it looks like."""

_TAGS: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_RESOLVED: Final = frozenset({PLAIN, *(_TAGS + name for name in ("bool", "int", "float", "null", "timestamp"))})
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-(?:0?[1-9]|1[0-2])-(?:0?[1-9]|[12][0-9]|3[01])(?:[Tt \t].*)?")
# Hexadecimal digits of the largest number are 16, binary ones 64: whatever is longer is no integer, and not converted.
_MAX_INTEGER_DIGITS: Final = 3 + 64


def _spellings(*words: str) -> Iterator[str]:
    for word in words:
        yield from (word, word.capitalize(), word.upper())


_WORDS: Final[dict[str, Value]] = {
    "": None,
    "~": None,
    **dict.fromkeys(_spellings("null"), None),
    **dict.fromkeys(_spellings("y", "yes", "true", "on"), True),
    **dict.fromkeys(_spellings("n", "no", "false", "off"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((sign + word for sign in ("", "+") for word in (".inf", ".Inf", ".INF")), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}


def value_of(root: yaml.Node) -> Value:
    """The value of a composed document. Raises `yaml.constructor.ConstructorError` with Go's message."""
    built: dict[int, Value] = {}  # by node: by aliases, one can be in many places
    rest: list[yaml.CollectionNode] = []

    def begun(node: yaml.Node) -> Value:
        """The value of a node; a collection is filled later."""
        if id(node) not in built:
            if isinstance(node, yaml.ScalarNode):
                built[id(node)] = _in_json(node)
            else:
                built[id(node)] = {} if isinstance(node, yaml.MappingNode) else []
                rest.append(cast(yaml.CollectionNode, node))
        return built[id(node)]

    value = begun(root)
    while rest:
        node = rest.pop()
        if isinstance(node, yaml.MappingNode):
            fields = cast("dict[str, Value]", built[id(node)])
            for key, member in _fields(node):
                fields[_name(key)] = begun(member)
        else:
            cast("list[Value]", built[id(node)]).extend(begun(item) for item in node.value)
    return value


def _fields(mapping: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """The fields of a mapping after those that it merges; of a name that is there more than once, the last counts."""
    merged: list[yaml.MappingNode] = []  # what counts most is first
    rest = [mapping]
    while rest:
        current = rest.pop()
        merged.append(current)
        for key, value in current.value:
            if _merges(key):
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                if not all(isinstance(source, yaml.MappingNode) for source in sources):
                    raise _refused(value, "map merge requires map or sequence of maps as the value")
                rest += reversed(sources)
    for current in reversed(merged):
        yield from ((key, value) for key, value in current.value if not _merges(key))


def _merges(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == _MERGE and key.tag in (PLAIN, f"{_TAGS}merge")


def _name(key: yaml.Node) -> str:
    if not isinstance(key, yaml.ScalarNode):
        raise _refused(key, "invalid map key: " + ("a map" if isinstance(key, yaml.MappingNode) else "a list"))
    value = _scalar(key)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or (isinstance(value, int) and value >= 2**63):
        raise _refused(key, f"unsupported map key: {key.value or 'null'}")
    if isinstance(value, float):
        return f".{value}".replace(".-", "-.") if not math.isfinite(value) else f"{value:.7g}"
    return str(value)


def _in_json(node: yaml.ScalarNode) -> Value:
    """A scalar as it is after Go wrote it as JSON: without a fraction a number is an integer."""
    value = _scalar(node)
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise _refused(
            node, f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}"
        )
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _scalar(node: yaml.ScalarNode) -> Value:
    text = cast(str, node.value)
    if node.tag == f"{_TAGS}binary":
        try:
            return base64.b64decode(text, validate=True).decode(errors="replace")
        except ValueError:
            raise _refused(node, "!!binary value contains invalid base64 data") from None
    if node.tag not in _RESOLVED:
        return text
    value = _resolved(text)
    tag = node.tag.removeprefix(_TAGS)
    found = _kind(value)
    if node.tag == PLAIN or tag == found:
        return value
    if tag == "float" and found == "int":
        return float(cast(int, value))
    if tag == "timestamp" and _DATE.fullmatch(text):
        return text
    raise _refused(node, f"cannot decode !!{found} `{text}` as a !!{tag}")


def _kind(value: Value) -> str:
    return "null" if value is None else type(value).__name__


def _resolved(text: str) -> Value:
    """What a plain scalar stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    number = text if text[0] == "." else text.replace("_", "")
    if _INTEGER.fullmatch(number) and len(number) <= _MAX_INTEGER_DIGITS:
        # Zeros in front are of octal numbers; Python needs a prefix for them.
        octal = re.fullmatch(r"([-+]?)0([0-7]+)", number)
        integer = int(f"{octal[1]}0o{octal[2]}" if octal else number, 0)
        if -(2**63) <= integer < (2**63 if number[0] in "+-" else 2**64):
            return integer
    if _FLOAT.fullmatch(number) and math.isfinite(decimal := float(number)):
        return decimal
    return text


def _refused(node: yaml.Node, problem: str) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
