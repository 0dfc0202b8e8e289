"""The keywords of one schema node, read once and ready to be checked.

Numbers in schemas are doubles in the real server, and so are they here: a bound that an integer cannot have is an
error of every value, as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.schema.formats import FORMATS, FormatCheck, recognized
from kubewright.controlplane.embedded.schema.patterns import InvalidPattern, go_pattern

_MAX_INTEGER = 2**63 - 1
_MIN_INTEGER = -(2**63)
_MAX_SAFE = 2**53 - 1
_MAX_FLOAT = 3.4028235677973366e38
_EPSILON = 1e-9


class Constraints:
    """What one node demands of a value, besides what it demands of the parts of the value."""

    def __init__(self, schema: JSONObject) -> None:
        type_ = text(schema, "type")
        is_int_or_string = schema.get("x-kubernetes-int-or-string") is True
        self.types: tuple[str, ...] = ("integer", "string") if is_int_or_string else (type_,) if type_ else ()
        single = self.types[0] if len(self.types) == 1 else ""
        format_ = text(schema, "format")
        self.format = format_ if recognized(format_, single) else ""
        self.check_format: FormatCheck | None = FORMATS.get(self.format.replace("-", ""))
        self.number_type = single if single in ("integer", "number") else ""
        self.number_format = self.format if self.number_type else ""
        self.nullable = schema.get("nullable") is True
        self.enum = [_decoded(value) for value in items(schema, "enum")]
        self.required = tuple(name for name in items(schema, "required") if isinstance(name, str))
        self.minimum = _double(schema, "minimum")
        self.maximum = _double(schema, "maximum")
        self.exclusive_minimum = schema.get("exclusiveMinimum") is True
        self.exclusive_maximum = schema.get("exclusiveMaximum") is True
        self.multiple_of = _double(schema, "multipleOf")
        self.min_length = _count(schema, "minLength")
        self.max_length = _count(schema, "maxLength")
        self.min_items = _count(schema, "minItems")
        self.max_items = _count(schema, "maxItems")
        self.min_properties = _count(schema, "minProperties")
        self.max_properties = _count(schema, "maxProperties")
        self.pattern = text(schema, "pattern")
        self.matches: FormatCheck | None = None
        if self.pattern:
            try:
                self.matches = go_pattern(self.pattern).matches
            except InvalidPattern as error:
                # Such a definition is refused; should one be stored, no value matches.
                self.matches = _never
                self.pattern += f", but pattern is invalid: {error}"
        self.list_type = text(schema, "x-kubernetes-list-type")
        self.list_keys = tuple(name for name in items(schema, "x-kubernetes-list-map-keys") if isinstance(name, str))
        self.closed = schema.get("additionalProperties") is False
        self.known_properties = frozenset(mapping(schema, "properties"))

    def listed(self, value: JSONValue) -> bool:
        """Whether a value is in `enum`. Numbers are converted to the listed one's type first; null never is in it."""
        decoded = _decoded(value)
        return any(_converts_to(decoded, listed) for listed in self.enum)

    def fits(self, value: float, number_type: str) -> bool:
        """Whether a number is within the range of the type and format."""
        if number_type == "integer":
            if not (isinstance(value, int) or value.is_integer()):
                return False
            if self.number_format == "int32":
                return -(2**31) <= value < 2**31
            return _MIN_INTEGER <= value <= _MAX_INTEGER
        if self.number_format == "float":
            return abs(value) < _MAX_FLOAT
        return True


def _never(text: str) -> bool:
    return False


def native(value: float) -> float:
    """A number as Go's decoder has it: integers beyond 64 bits are doubles."""
    if isinstance(value, int) and not _MIN_INTEGER <= value <= _MAX_INTEGER:
        return float(value)
    return value


def truncated(bound: float) -> int:
    """A bound as an integer. One that 64 bits cannot hold becomes the smallest integer, as on Go's usual machines."""
    return int(bound) if _MIN_INTEGER <= bound < _MAX_INTEGER else _MIN_INTEGER


def is_whole(value: float) -> bool:
    """Whether a double counts as an integer: whole and safe in JSON, within a tolerance of one in a billion."""
    if math.isnan(value) or not -_MAX_SAFE <= value <= _MAX_SAFE:
        return False
    whole = float(math.trunc(value))
    if value == whole:
        return True
    return value != 0 and whole != 0 and abs(value - whole) / (abs(value) + abs(whole)) < _EPSILON


def is_multiple(value: float, factor: float) -> bool:
    """Whether a number is a multiple; integers are divided as integers."""
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    return is_whole(1 / factor * value if factor < 1 else value / factor)


def json_type_of(value: JSONValue) -> str:
    """The JSON type of a value that is not null."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def correlated(old: Sequence[JSONValue], item: JSONValue, keys: Sequence[str]) -> JSONValue:
    """The item of an associative list that has the keys of `item`; None when there is none."""
    wanted = _key(item, keys)
    return None if wanted is None else next((other for other in old if _key(other, keys) == wanted), None)


def _key(item: JSONValue, keys: Sequence[str]) -> list[tuple[type, JSONValue]] | None:
    if not isinstance(item, dict) or any(isinstance(item.get(key), dict | list | None) for key in keys):
        return None
    return [(type(item[key]), item[key]) for key in keys]


def _decoded(value: JSONValue) -> JSONValue:
    return native(value) if isinstance(value, int) else value


def _converts_to(value: JSONValue, listed: JSONValue) -> bool:
    if value is None or listed is None:
        return False
    numeric = (int, float)
    if isinstance(value, numeric) and isinstance(listed, numeric) and bool not in (type(value), type(listed)):
        return int(value) == listed if isinstance(listed, int) else float(value) == listed
    return type(value) is type(listed) and value == listed


def _double(schema: JSONObject, name: str) -> float | None:
    value = schema.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(schema: JSONObject, name: str) -> int | None:
    value = schema.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
