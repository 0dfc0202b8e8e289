"""Rows of custom resources: the columns of their definition, or name and age."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.tables.durations import UNKNOWN, human_duration, instant
from kubewright.controlplane.embedded.tables.jsonpath import JSONPath, JSONPathError, compile_path
from kubewright.controlplane.embedded.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    PrinterColumn,
    aged,
    name_of,
    number,
)

_AGED = Printer((NAME, PrinterColumn("Age", "date", AGE.format)), aged)


def custom_printer(resource: ResourceType) -> Printer:
    """The printer of a version of a custom resource."""
    definitions = _additional_columns(resource)
    if not definitions:
        return _AGED
    columns: list[PrinterColumn] = [NAME]
    paths: list[JSONPath] = []
    for definition in definitions:
        source = text(definition, "jsonPath")
        try:
            paths.append(compile_path(source))
        except JSONPathError:
            break  # as the real server, which shows what comes before
        columns.append(
            PrinterColumn(
                text(definition, "name"),
                text(definition, "type"),
                text(definition, "format"),
                text(definition, "description") or f"Custom resource definition column (in JSONPath format): {source}",
                number(definition, "priority"),
            )
        )
    kind: JSONObject = {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}

    def cells(obj: JSONObject, now: float) -> Cells:
        whole: JSONObject = {**kind, **obj}
        found = (_cell(path, whole, column.type, now) for path, column in zip(paths, columns[1:], strict=True))
        return [name_of(obj), *found]

    return Printer(columns, cells)


def _additional_columns(resource: ResourceType) -> list[JSONValue]:
    for version in items(resource.definition, "spec", "versions"):
        if text(version, "name") == resource.gvk.version:
            return items(version, "additionalPrinterColumns")
    return []


def _cell(path: JSONPath, obj: JSONObject, type_: str, now: float) -> JSONValue:
    """The first thing a path leads to, if it is of the column's type."""
    try:
        found = path.find(obj)
    except JSONPathError:
        return None
    if not found:
        return None
    value = found[0]
    match type_:
        case "string":
            return cell_text(value)
        case "date" if isinstance(value, str):
            return _date(value, now)
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" if isinstance(value, (int, float)) and not isinstance(value, bool):
            # What is out of range is the least number, as Go converts it on most machines.
            return int(value) if abs(value) < 2**63 else -(2**63)
        case "number" if isinstance(value, (int, float)) and not isinstance(value, bool):
            return int(value) if abs(value) < 2**53 and value == int(value) else value
    return None


def _date(value: str, now: float) -> str:
    if not value:
        return UNKNOWN
    then = instant(value)
    return "<invalid>" if then is None else human_duration(now - then)


def cell_text(value: JSONValue) -> str:
    """Any value as text, as Go prints it; structures as JSON."""
    if value is None:
        return "<no value>"
    if isinstance(value, float):
        return _float_text(value, 6)
    return value if isinstance(value, str) else _json_text(value)


def _json_text(value: object) -> str:
    match value:
        case dict():
            fields = (f"{_json_text(name)}:{_json_text(item)}" for name, item in sorted(value.items()))
            return f"{{{','.join(fields)}}}"
        case list():
            return f"[{','.join(map(_json_text, value))}]"
        case float():
            return _float_text(value, 21)
        case str():
            return re.sub("[<>&\u2028\u2029]", _escaped, json.dumps(value, ensure_ascii=False))
        case msgspec.Raw():  # too deep to be taken apart
            return bytes(value).decode()
        case _:
            return json.dumps(value)


def _escaped(found: re.Match[str]) -> str:
    """Go escapes what would mean something in HTML or JavaScript."""
    return f"\\u{ord(found[0]):04x}"


def _float_text(value: float, large: int) -> str:
    """The shortest text that means `value`; with an exponent when that is at least `large`, or less than -4."""
    sign, digits, scale = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(scale) - 1
    if -5 < exponent < large:
        return format(Decimal((sign, digits, int(scale))), "f")
    mantissa = "".join(map(str, digits))
    fraction = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{'-' if sign else ''}{mantissa[0]}{fraction}e{exponent:+03d}"
