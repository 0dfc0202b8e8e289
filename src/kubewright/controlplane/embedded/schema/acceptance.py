"""Whether a value is valid: yes or no, fast.

A schema becomes a tree of nodes. Each node knows, per JSON type, whether every such value is valid, none is, or which
test decides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping
from kubewright.controlplane.embedded.schema.constraints import Constraints, is_multiple, is_whole, native, truncated

_Test = Callable[[JSONValue], bool]
# True and False are verdicts by type alone.
_Verdict = _Test | bool
_KINDS: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


class SchemaNode:
    """One node of a schema: what it demands of a value, and the nodes below."""

    __slots__ = ("all_of", "any_of", "demands", "extra", "item", "one_of", "properties", "refused", "verdicts")

    def __init__(self, schema: JSONObject) -> None:
        self.demands = Constraints(schema)
        self.all_of = _nodes(schema, "allOf")
        self.any_of = _nodes(schema, "anyOf")
        self.one_of = _nodes(schema, "oneOf")
        self.refused = _node(schema.get("not"))
        self.properties = {
            name: SchemaNode(inner) for name, inner in mapping(schema, "properties").items() if isinstance(inner, dict)
        }
        self.extra = _node(schema.get("additionalProperties"))
        self.item = _node(schema.get("items"))
        self.verdicts: dict[type, _Verdict] = {kind: self._verdict(kind) for kind in _KINDS}

    def accepts(self, value: JSONValue) -> bool:
        """Whether the value is valid."""
        verdict = self.verdicts[type(value)]
        return verdict is True or (verdict is not False and verdict(value))

    def _verdict(self, kind: type) -> _Verdict:
        of_type = self._of_type(kind)
        if of_type is False:
            return False
        tests: list[_Test] = [] if of_type is True else [of_type]
        demands = self.demands
        if kind is type(None):
            return not demands.enum
        if demands.enum:
            tests.append(_one_of_listed(demands) if kind is str else demands.listed)
        tests += self._junctions()
        if kind is str:
            tests += _text_tests(demands)
        elif kind in (int, float):
            tests += _number_tests(demands, kind)
        elif kind is list:
            tests += _list_tests(demands, self.item)
        elif kind is dict:
            tests += _object_tests(demands, self.properties, self.extra)
        return reduce(_both, tests) if tests else True

    def _of_type(self, kind: type) -> _Verdict:
        demands = self.demands
        types = demands.types
        if kind is type(None):
            return demands.nullable or not types
        name = _KINDS[kind]
        if demands.format and kind in (str, list) and not {"number", "integer"} & set(types):
            # A string format accepts lists, whatever the type, as in the real server.
            return True
        if not types:
            return not demands.format
        if kind is int and "number" not in types:
            return "integer" in types and _is_64_bit
        if name in types or kind is int:
            return True
        if kind is float and "integer" in types:
            return _whole
        return False

    def _junctions(self) -> list[_Test]:
        tests: list[_Test] = [node.accepts for node in self.all_of]
        if self.any_of:
            any_of = self.any_of
            tests.append(lambda value: any(node.accepts(value) for node in any_of))
        if self.one_of:
            one_of = self.one_of
            tests.append(lambda value: sum(node.accepts(value) for node in one_of) == 1)
        if self.refused is not None:
            refused = self.refused
            tests.append(lambda value: not refused.accepts(value))
        return tests


def _node(schema: JSONValue) -> SchemaNode | None:
    return SchemaNode(schema) if isinstance(schema, dict) else None


def _nodes(schema: JSONObject, name: str) -> tuple[SchemaNode, ...]:
    return tuple(SchemaNode(inner) for inner in items(schema, name) if isinstance(inner, dict))


def _both(first: _Test, second: _Test) -> _Test:
    return lambda value: first(value) and second(value)


def _is_64_bit(value: JSONValue) -> bool:
    # Beyond 64 bits an integer is a double in the real server, and too large for one that counts as whole.
    return isinstance(value, int) and native(value) is value


def _whole(value: JSONValue) -> bool:
    return isinstance(value, float) and is_whole(value)


def _one_of_listed(demands: Constraints) -> _Test:
    listed = frozenset(value for value in demands.enum if isinstance(value, str))
    return lambda value: value in listed


def _text_tests(demands: Constraints) -> list[_Test]:
    tests: list[_Test] = []
    minimum_size, maximum_size = demands.min_length or 0, demands.max_length
    if maximum_size is not None:
        tests.append(lambda value: isinstance(value, str) and minimum_size <= len(value) <= maximum_size)
    elif minimum_size:
        tests.append(lambda value: isinstance(value, str) and len(value) >= minimum_size)
    if demands.matches is not None:
        matches = demands.matches
        tests.append(lambda value: isinstance(value, str) and matches(value))
    if demands.check_format is not None:
        check = demands.check_format
        tests.append(lambda value: isinstance(value, str) and check(value))
    return tests


def _number_tests(demands: Constraints, kind: type) -> list[_Test]:
    bounds = [bound for bound in (demands.minimum, demands.maximum, demands.multiple_of) if bound is not None]
    if any(not demands.fits(bound, demands.number_type) for bound in bounds):
        return [lambda value: False]
    if not bounds and (demands.number_format in ("", "int64") if kind is int else not demands.number_type):
        return []

    def test(value: JSONValue) -> bool:
        if not isinstance(value, int | float):
            return False
        number = native(value)
        return demands.fits(number, demands.number_type) and _within(number, demands)

    return [test]


def _within(value: float, demands: Constraints) -> bool:
    minimum_size, maximum_size, factor = demands.minimum, demands.maximum, demands.multiple_of
    if isinstance(value, int):
        minimum_size = None if minimum_size is None else truncated(minimum_size)
        maximum_size = None if maximum_size is None else truncated(maximum_size)
        factor = None if factor is None else truncated(factor)
    if minimum_size is not None and (value < minimum_size or (demands.exclusive_minimum and value == minimum_size)):
        return False
    if maximum_size is not None and (value > maximum_size or (demands.exclusive_maximum and value == maximum_size)):
        return False
    return factor is None or (factor > 0 and is_multiple(value, factor))


def _list_tests(demands: Constraints, item: SchemaNode | None) -> list[_Test]:
    tests: list[_Test] = []
    minimum_size, maximum_size = demands.min_items, demands.max_items
    if minimum_size is not None:
        tests.append(lambda value: isinstance(value, list) and len(value) >= minimum_size)
    if maximum_size is not None:
        tests.append(lambda value: isinstance(value, list) and len(value) <= maximum_size)
    if item is not None:
        verdicts = item.verdicts

        def test(value: JSONValue) -> bool:
            if isinstance(value, list):
                for entry in value:
                    verdict = verdicts[type(entry)]
                    if verdict is not True and (verdict is False or not verdict(entry)):
                        return False
            return True

        tests.append(test)
    return tests


def _object_tests(demands: Constraints, properties: dict[str, SchemaNode], extra: SchemaNode | None) -> list[_Test]:
    tests: list[_Test] = []
    minimum_size, maximum_size = demands.min_properties, demands.max_properties
    if minimum_size is not None:
        tests.append(lambda value: isinstance(value, dict) and len(value) >= minimum_size)
    if maximum_size is not None:
        tests.append(lambda value: isinstance(value, dict) and len(value) <= maximum_size)
    if demands.required:
        required = frozenset(demands.required)
        tests.append(lambda value: isinstance(value, dict) and required <= value.keys())
    if demands.closed:
        known = demands.known_properties
        tests.append(lambda value: isinstance(value, dict) and value.keys() <= known)
    if properties or extra is not None:
        verdicts_of = {name: node.verdicts for name, node in properties.items()}
        otherwise = extra.verdicts if extra is not None else None

        def test(value: JSONValue) -> bool:
            if isinstance(value, dict):
                for name, entry in value.items():
                    verdicts = verdicts_of.get(name, otherwise)
                    if verdicts is not None:
                        verdict = verdicts[type(entry)]
                        if verdict is not True and (verdict is False or not verdict(entry)):
                            return False
            return True

        tests.append(test)
    return tests
