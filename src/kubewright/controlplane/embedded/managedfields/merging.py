"""Values made from values: a configuration merged into an object, and an object without some of its fields.

The results share parts with what they were made from.
"""

from __future__ import annotations

from typing import cast

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.managedfields.fieldset import FieldSet, as_member, is_member, ordered
from kubewright.controlplane.embedded.managedfields.shape import MergeShape


def merged(live: JSONObject, configuration: JSONObject, shape: MergeShape) -> JSONObject:
    """`live` with `configuration` merged in. Nothing is removed."""
    return cast(JSONObject, _merged(live, configuration, shape))


def _merged(live: JSONValue, configuration: JSONValue, shape: MergeShape) -> JSONValue:
    if shape.is_leaf:
        return configuration
    if shape.holds_items:
        if isinstance(live, list) and live and isinstance(configuration, list | None):
            return _merged_items(live, configuration or [], shape)
        return configuration
    if isinstance(live, dict) and live and isinstance(configuration, dict | None):
        result = dict(live)
        for name, value in (configuration or {}).items():
            result[name] = _merged(live[name], value, shape.field(name)) if name in live else value
        return result
    return configuration


def _merged_items(live: list[JSONValue], configuration: list[JSONValue], shape: MergeShape) -> list[JSONValue]:
    """Items of both, in the order of the configuration, with the others where they were between them."""
    ours, theirs = [shape.item_element(item) for item in configuration], [shape.item_element(item) for item in live]
    wanted = dict(zip(ours, configuration, strict=True))
    present: dict[str, JSONValue] = {}
    for element, item in zip(theirs, live, strict=True):
        # Of items that are there twice none can be merged with the wanted one, which replaces them.
        present[element] = None if element in present else item
    shared = iter([element for element in ours if element in present])
    next_shared = next(shared, None)
    done: set[str] = set()
    result: list[JSONValue] = []

    def take(element: str) -> None:
        done.add(element)
        old = present.get(element)
        result.append(wanted[element] if old is None else _merged(old, wanted[element], shape.element))

    left = right = 0
    while left < len(theirs) or right < len(ours):
        if left < len(theirs) and right < len(ours):
            element = theirs[left]
            if element == ours[right]:
                take(element)
                left, right = left + 1, right + 1
                next_shared = next(shared, None)
                continue
            if element in wanted and next_shared is not None and element != next_shared:
                left += 1
                continue
        if left < len(theirs):
            element = theirs[left]
            if element not in wanted:
                result.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(ours):
            element = ours[right]
            take(element)
            right += 1
            if element == next_shared:
                next_shared = next(shared, None)
    return result


def removed(value: JSONObject, fields: FieldSet, shape: MergeShape) -> JSONObject:
    """`value` without these fields. What has nothing left is null, as far as it is not one of the fields itself."""
    result = _removed(value, fields, shape)
    return result if isinstance(result, dict) else {}


def _removed(value: JSONValue, fields: FieldSet, shape: MergeShape) -> JSONValue:
    if isinstance(value, dict):
        if shape.is_leaf or shape.holds_items:
            return None
        names: JSONObject = {}
        for name, nested in value.items():
            node = fields.get(f"f:{name}")
            if node is None:
                names[name] = nested
            elif not is_member(node):
                names[name] = _removed(nested, node, shape.field(name))
        return names or None
    if isinstance(value, list):
        if shape.is_leaf or not shape.holds_items:
            return None
        kept: list[JSONValue] = []
        for item in value:
            node = fields.get(shape.item_element(item))
            if node is None:
                kept.append(item)
            elif not is_member(node):
                kept.append(_removed(item, node, shape.element))
        return kept or None
    return value


def with_named_fields(fields: FieldSet, shape: MergeShape) -> FieldSet:
    """The set, and every field of a struct that is on the way to one of its fields. Keys of maps are not."""
    result: FieldSet = {}
    for element, node in fields.items():
        below = node
        if any(nested != "." for nested in node):
            if element.startswith("f:"):
                name = element[2:]
                below = with_named_fields(node, shape.field(name))
                if shape.is_named(name):
                    below = as_member(below)
            else:
                below = with_named_fields(node, shape.element)
        result[element] = below
    return ordered(result)
