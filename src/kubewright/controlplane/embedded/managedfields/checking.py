"""Whether an applied configuration can be merged at all: fields that exist, values of the right form, items only once.

Values are not judged here beyond their type; that is the task of validation, which every write is subject to.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import type_name
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.structure import ScalarType
from kubewright.controlplane.embedded.managedfields.fieldset import element_text
from kubewright.controlplane.embedded.managedfields.shape import MergeShape, Untrackable


def complaint(configuration: JSONObject, shape: MergeShape) -> str:
    """The error of structured-merge-diff; empty when there is none."""
    found = _check(configuration, shape)
    if not found:
        return ""
    messages = [f"{path}: {message}" if path else message for path, message in found]
    return messages[0] if len(messages) == 1 else "\n  ".join(["errors:", *messages])


def fits(obj: JSONObject, shape: MergeShape) -> bool:
    """Whether the fields of an object can be distinguished; repeated items are allowed."""
    return all(message.startswith(_DUPLICATE) for _, message in _check(obj, shape))


_DUPLICATE = "duplicate entries for key "
_Complaints = list[tuple[str, str]]


def _check(value: JSONValue, shape: MergeShape) -> _Complaints:
    if value is None:
        return []
    if shape.holds_names or (shape.is_untyped and isinstance(value, dict)):
        if not isinstance(value, dict):
            return [("", f"expected map, got &{{{_go(value)}}}")]
        return _check_names(value, shape)
    if shape.holds_items:
        if not isinstance(value, list):
            return [("", f"expected list, got &{{{_go(value)}}}")]
        return _check_items(value, shape)
    return [] if shape.is_untyped else _check_scalar(value, shape.scalar_type)


def _check_scalar(value: JSONValue, scalar_type: ScalarType) -> _Complaints:
    if scalar_type == "string" and not isinstance(value, str):
        return [("", f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}")]
    if scalar_type == "numeric" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return [("", f"expected numeric (int or float), got {type_name(value)}")]
    if scalar_type == "boolean" and not isinstance(value, bool):
        return [("", f"expected boolean, got &{{{_go(value)}}}")]
    if isinstance(value, dict | list):
        return [("", f"expected any scalar, got &{{{_go(value)}}}")]
    return []


def _check_names(value: JSONObject, shape: MergeShape) -> _Complaints:
    found: _Complaints = []
    for name, nested in value.items():
        if not shape.allows(name):
            found.append((f".{name}", "field not declared in schema"))
            break
        found += [(f".{name}{path}", message) for path, message in _check(nested, shape.field(name))]
    return found


def _check_items(value: list[JSONValue], shape: MergeShape) -> _Complaints:
    found: _Complaints = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        prefix = f"[{index}]"
        if not shape.is_leaf:
            try:
                element = shape.item_element(item)
            except Untrackable as error:
                return [*found, ("", f"element {index}: {error}")]
            prefix = element_text(element)
            if element in seen:
                found.append(("", f"{_DUPLICATE}{prefix}"))
            seen.add(element)
        found += [(f"{prefix}{path}", message) for path, message in _check(item, shape.element)]
    return found


def _go(value: JSONValue) -> str:
    """A value as Go's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go, value))}]"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _go_syntax(value: JSONValue) -> str:
    """A value as Go's %#v prints it."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        entries = ", ".join(f"{quoted(name)}:{_go_syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{entries}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    return "interface {}(nil)" if value is None else _go(value)
