"""The errors of a value that a schema refuses, as the real server reports them.

The real server runs eight validators over every value and keeps a count of the checks that passed; of the alternatives
of `anyOf` and `oneOf` it reports the one with the highest count. So the count is kept here too.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import printed_number
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    invalid_value,
    not_supported,
    required,
    shown,
    wrong_type,
)
from kubewright.controlplane.embedded.schema.acceptance import SchemaNode
from kubewright.controlplane.embedded.schema.constraints import (
    Constraints,
    correlated,
    is_multiple,
    is_whole,
    json_type_of,
    native,
    truncated,
)


class _Uncorrelated(Enum):
    UNCORRELATED = "no earlier value"


UNCORRELATED: Final = _Uncorrelated.UNCORRELATED
Old: TypeAlias = JSONValue | Literal[_Uncorrelated.UNCORRELATED]
"""The earlier value of the same field, when an update has one."""

NOWHERE = "<nil>"
"""How Go prints the path of the root."""
_META = ("apiVersion", "kind")


class Findings:
    """Errors, each once, and the number of checks that passed."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.errors: list[FieldError] = []
        self.passed = 0

    def field(self, path: str) -> str:
        """A path within the value as the field of an error."""
        name = path.removeprefix(".")
        if not name:
            return self.at or NOWHERE
        return f"{self.at}.{name}" if self.at else name

    def add(self, error: FieldError) -> None:
        """Note an error."""
        if error not in self.errors:
            self.errors.append(error)

    def general(self, message: str) -> None:
        """Note an error that the real server reports about the whole value."""
        self.add(invalid_value(self.at or NOWHERE, "", message))

    def merge(self, other: Findings) -> None:
        """Take over everything another one found."""
        for error in other.errors:
            self.add(error)
        self.passed += other.passed


def explain(node: SchemaNode, value: JSONValue, findings: Findings, path: str, old: Old) -> Findings:
    """Add what is wrong with `value`, at `path`. Errors of a value that is as it was are dropped."""
    found = Findings(findings.at)
    _explain(node, value, found, path, old)
    if found.errors and old is not UNCORRELATED and _same(node, value, old):
        found.errors.clear()
    findings.merge(found)
    return findings


def _explain(node: SchemaNode, value: JSONValue, found: Findings, path: str, old: Old) -> None:
    demands = node.demands
    if isinstance(value, int) and not isinstance(value, bool):
        value = native(value)
    if value is None:
        _explain_type(demands, value, found, path)
        _explain_enum(demands, value, found, path)
        return
    if demands.types or demands.format:
        _explain_type(demands, value, found, path)
        found.passed += 1
    _explain_junctions(node, value, found, path)
    found.passed += 2
    if isinstance(value, str):
        _explain_text(demands, value, found, path)
        found.passed += 1
        if demands.check_format is not None:
            if not demands.check_format(value):
                found.add(_wrong_type(found, path, demands.format, value))
            found.passed += 1
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _explain_number(demands, value, found, path)
        found.passed += 2
    elif isinstance(value, list):
        _explain_list(node, value, found, path, old)
        found.passed += 2
    _explain_enum(demands, value, found, path)
    found.passed += 1
    if isinstance(value, dict):
        _explain_object(node, value, found, path, old)
        found.passed += 1
    found.passed += 1


def _wrong_type(found: Findings, path: str, expected: str, actual: str) -> FieldError:
    detail = f"{path} in body must be of type {expected}: {shown(actual)}"
    return wrong_type(found.field(path), actual, detail)


def _explain_type(demands: Constraints, value: JSONValue, found: Findings, path: str) -> None:
    types = demands.types
    if value is None:
        if types and not demands.nullable:
            found.add(_wrong_type(found, path, ",".join(types), "null"))
        else:
            found.passed += 1
        return
    kind = json_type_of(value)
    matches = kind in types or (kind == "integer" and "number" in types)
    if isinstance(value, float) and "integer" in types and is_whole(value):
        matches = True
    if demands.format and not matches and not isinstance(value, str | list):
        formats = {"integer": "int64", "number": "float64"}
        found.add(_wrong_type(found, path, demands.format, formats.get(kind, "")))
    elif demands.format and isinstance(value, str | list) and not {"number", "integer"} & set(types):
        found.passed += 1
    elif not matches:
        found.add(_wrong_type(found, path, ",".join(types), kind))
    else:
        found.passed += 1


def _explain_enum(demands: Constraints, value: JSONValue, found: Findings, path: str) -> None:
    if demands.enum and not demands.listed(value):
        supported = [listed if isinstance(listed, str) else shown(listed) for listed in demands.enum]
        found.add(not_supported(found.field(path), value, supported))


def _explain_junctions(node: SchemaNode, value: JSONValue, found: Findings, path: str) -> None:
    # What is below a junction is never compared with an earlier value.
    if node.any_of:
        results = []
        for alternative in node.any_of:
            results.append(explain(alternative, value, Findings(found.at), path, UNCORRELATED))
            if not results[-1].errors:
                break
        if results[-1].errors:
            found.general(f"{shown(path)} must validate at least one schema (anyOf)")
            found.merge(max(results, key=lambda result: result.passed))
        else:
            found.merge(results[-1])
    if node.one_of:
        results = [explain(one, value, Findings(found.at), path, UNCORRELATED) for one in node.one_of]
        valid = [result for result in results if not result.errors]
        if len(valid) == 1:
            found.merge(valid[0])
        elif valid:
            many = f"Found {len(valid)} valid alternatives"
            found.general(f"{shown(path)} must validate one and only one schema (oneOf). {many}")
        else:
            found.general(f"{shown(path)} must validate one and only one schema (oneOf). Found none valid")
            found.merge(max(results, key=lambda result: result.passed))
    if node.all_of:
        results = [explain(one, value, Findings(found.at), path, UNCORRELATED) for one in node.all_of]
        for result in results:
            found.merge(result)
        if any(result.errors for result in results):
            none = "" if any(not result.errors for result in results) else ". None validated"
            found.general(f"{shown(path)} must validate all the schemas (allOf){none}")
    if node.refused is not None and node.refused.accepts(value):
        found.general(f"{shown(path)} must not validate the schema (not)")


def _explain_text(demands: Constraints, value: str, found: Findings, path: str) -> None:
    field = found.field(path)
    if demands.max_length is not None and len(value) > demands.max_length:
        found.add(_too_long(field, demands.max_length))
    elif demands.min_length is not None and len(value) < demands.min_length:
        detail = f"{path} in body should be at least {demands.min_length} chars long"
        found.add(invalid_value(field, value, detail))
    elif demands.matches is not None and not demands.matches(value):
        found.add(invalid_value(field, value, f"{path} in body should match '{demands.pattern}'"))


def _too_long(field: str, most: int) -> FieldError:
    detail = f"may not be more than {most} byte{'' if most == 1 else 's'}" if most >= 0 else "value is too long"
    return FieldError("FieldValueTooLong", field, None, detail)


def _too_many(field: str, count: int, most: int) -> FieldError:
    return FieldError("FieldValueTooMany", field, count, f"must have at most {most} item{'' if most == 1 else 's'}")


def _explain_number(demands: Constraints, value: float, found: Findings, path: str) -> None:
    if not demands.fits(value, demands.number_type):
        found.general(_out_of_range(demands, "Checked", path))
    if demands.multiple_of is not None:
        _explain_multiple(demands, value, demands.multiple_of, found, path)
    if demands.minimum is not None:
        bound = _bound(demands, value, demands.minimum, "Minimum boundary", found, path)
        if value < bound or (demands.exclusive_minimum and value == bound):
            words = "greater than" if demands.exclusive_minimum else "greater than or equal to"
            found.add(_not_within(found, path, value, words, bound))
    if demands.maximum is not None:
        bound = _bound(demands, value, demands.maximum, "Maximum boundary", found, path)
        if value > bound or (demands.exclusive_maximum and value == bound):
            words = "less than" if demands.exclusive_maximum else "less than or equal to"
            found.add(_not_within(found, path, value, words, bound))


def _out_of_range(demands: Constraints, what: str, path: str) -> str:
    format_ = f" with format {demands.number_format}" if demands.number_format else " (default format)"
    return f"{what} value must be of type {demands.number_type}{format_} in {path}"


def _bound(demands: Constraints, value: float, bound: float, what: str, found: Findings, path: str) -> float:
    """The bound in the type of the value, unless it is none of the schema's type, which is an error of its own."""
    if not demands.fits(bound, demands.number_type):
        found.general(_out_of_range(demands, what, path))
        return bound
    return truncated(bound) if isinstance(value, int) else bound


def _not_within(found: Findings, path: str, value: float, words: str, bound: float) -> FieldError:
    return invalid_value(found.field(path), value, f"{path} in body should be {words} {printed_number(bound)}")


def _explain_multiple(demands: Constraints, value: float, of: float, found: Findings, path: str) -> None:
    factor = _bound(demands, value, of, "MultipleOf", found, path)
    number = value if isinstance(factor, int) else float(value)
    if factor <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {printed_number(factor)}"
        found.add(invalid_value(found.field(path), factor, detail))
    elif not is_multiple(number, factor):
        detail = f"{path} in body should be a multiple of {printed_number(factor)}"
        found.add(invalid_value(found.field(path), number, detail))


def _explain_list(node: SchemaNode, value: list[JSONValue], found: Findings, path: str, old: Old) -> None:
    demands = node.demands
    if node.item is not None:
        associative = demands.list_type == "map" and isinstance(old, list)
        for index, item in enumerate(value):
            before = correlated(old, item, demands.list_keys) if associative and isinstance(old, list) else None
            explain(node.item, item, found, f"{path}[{index}]", UNCORRELATED if before is None else before)
    if demands.min_items is not None and len(value) < demands.min_items:
        detail = f"{path} in body should have at least {demands.min_items} items"
        found.add(invalid_value(found.field(path), len(value), detail))
    if demands.max_items is not None and len(value) > demands.max_items:
        found.add(_too_many(found.field(path), len(value), demands.max_items))


def _explain_object(node: SchemaNode, value: JSONObject, found: Findings, path: str, old: Old) -> None:
    demands = node.demands
    if demands.min_properties is not None and len(value) < demands.min_properties:
        detail = f"{path} in body should have at least {demands.min_properties} properties"
        found.add(invalid_value(found.field(path), len(value), detail))
    if demands.max_properties is not None and len(value) > demands.max_properties:
        found.add(_too_many(found.field(path), len(value), demands.max_properties))
    if demands.closed:
        for name in value:
            if name not in node.properties:
                detail = f"{path}.{name} in body is a forbidden property"
                found.add(invalid_value(found.field(path), name, detail))
    for name, item in value.items():
        inner = node.properties.get(name)
        if inner is not None:
            where = f"{path}.{name}" if path else name
            explain(inner, item, found, where, _earlier(old, name, path))
        elif node.extra is not None:
            explain(node.extra, item, found, f"{path}.{name}", _earlier(old, name, path))
    for name in demands.required:
        if name not in value:
            found.add(required(found.field(f"{path}.{name}")))


def _earlier(old: Old, name: str, path: str) -> Old:
    # Both versions of an object were converted to one type, so a change of these would not be seen.
    if not isinstance(old, dict) or name not in old or (not path and name in _META):
        return UNCORRELATED
    return old[name]


def _same(node: SchemaNode, value: JSONValue, old: JSONValue) -> bool:
    """Whether nothing changed. Fields without a schema make an object differ; associative lists have no order."""
    if isinstance(value, dict) and isinstance(old, dict):
        if len(value) != len(old):
            return False
        for name, item in value.items():
            inner = node.properties.get(name) or node.extra
            if inner is None or name not in old or not _same(inner, item, old[name]):
                return False
        return True
    if isinstance(value, list) and isinstance(old, list):
        demands = node.demands
        if len(value) != len(old):
            return False
        if demands.list_type != "map" or node.item is None:
            return value == old
        for item in value:
            before = correlated(old, item, demands.list_keys)
            if before is None or not _same(node.item, item, before):
                return False
        return True
    return type(value) is type(old) and value == old
