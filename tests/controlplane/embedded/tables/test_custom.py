from __future__ import annotations

import pytest

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.tables.custom import cell_text, custom_printer


def widgets(*columns: JSONObject, version: str = "v1") -> ResourceType:
    versions: list[JSONValue] = [
        {"name": "v1", "additionalPrinterColumns": list(columns)},
        {"name": "v1alpha1"},
    ]
    return ResourceType(
        gvk=GroupVersionKind("example.com", version, "Widget"),
        plural="widgets",
        singular="widget",
        namespaced=True,
        list_kind="WidgetList",
        custom=True,
        definition={"spec": {"versions": versions}},
    )


def cell(type_: str, value: JSONValue) -> JSONValue:
    printer = custom_printer(widgets({"name": "X", "type": type_, "jsonPath": ".spec.value"}))
    return printer.cells({"metadata": {"name": "w"}, "spec": {"value": value}}, 100.0)[1]


def test_without_columns_there_are_name_and_age() -> None:
    printer = custom_printer(widgets(version="v1alpha1"))
    assert [(column.name, column.type) for column in printer.columns] == [("Name", "string"), ("Age", "date")]
    obj: JSONObject = {"metadata": {"name": "w", "creationTimestamp": "1970-01-01T00:00:00Z"}}
    assert printer.cells(obj, 100.0) == ["w", "100s"]


def test_columns_are_those_of_the_version() -> None:
    column: JSONObject = {"name": "Size", "type": "integer", "format": "int32", "jsonPath": ".spec.size", "priority": 1}
    printer = custom_printer(widgets(column))
    size = printer.columns[1]
    assert (size.name, size.type, size.format, size.priority) == ("Size", "integer", "int32", 1)
    assert size.description == "Custom resource definition column (in JSONPath format): .spec.size"


def test_a_column_that_cannot_be_read_ends_the_row() -> None:
    good: JSONObject = {"name": "A", "type": "string", "jsonPath": ".a"}
    bad: JSONObject = {"name": "B", "type": "string", "jsonPath": ".b["}
    printer = custom_printer(widgets(good, bad, good))
    assert [column.name for column in printer.columns] == ["Name", "A"]
    assert printer.cells({"metadata": {"name": "w"}, "a": "x"}, 0.0) == ["w", "x"]


def test_paths_see_the_kind_of_the_object() -> None:
    printer = custom_printer(widgets({"name": "Kind", "type": "string", "jsonPath": ".kind"}))
    assert printer.cells({"metadata": {"name": "w"}}, 0.0) == ["w", "Widget"]


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("integer", 5, 5),
        ("integer", 5.9, 5),
        ("integer", "5", None),
        ("integer", True, None),
        ("integer", 1e30, -(2**63)),
        ("number", 5, 5),
        ("number", 5.5, 5.5),
        ("number", "5", None),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "1970-01-01T00:00:00Z", "100s"),
        ("date", "yesterday", "<invalid>"),
        ("date", "", "<unknown>"),
        ("date", 5, None),
        ("string", 5, "5"),
        ("other", "x", None),
    ],
)
def test_a_value_is_shown_when_it_is_of_the_type_of_the_column(
    type_: str, value: JSONValue, expected: JSONValue
) -> None:
    found = cell(type_, value)
    assert (found, type(found)) == (expected, type(expected))


def test_an_absent_field_is_an_empty_cell() -> None:
    printer = custom_printer(widgets({"name": "X", "type": "string", "jsonPath": ".spec.list[0]"}))
    assert printer.cells({"metadata": {"name": "w"}, "spec": {"list": []}}, 0.0) == ["w", None]
    assert printer.cells({"metadata": {"name": "w"}}, 0.0) == ["w", None]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "<no value>"),
        (False, "false"),
        (12, "12"),
        (1.25, "1.25"),
        (-0.0001, "-0.0001"),
        (0.00001, "1e-05"),
        (1234567.5, "1.2345675e+06"),
        (1.5e30, "1.5e+30"),
        ({"b": 1, "a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e","b":1}'),
        ([1234567.5, None, "é"], '[1234567.5,null,"é"]'),
    ],
)
def test_values_are_printed_as_go_prints_them(value: JSONValue, expected: str) -> None:
    assert cell_text(value) == expected
