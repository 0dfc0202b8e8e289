"""Walks over values: which fields a value sets, and which differ between two values.

The rules are those of Go's structured-merge-diff: absent, null and empty are three different things, atomic values are
one field, the items of associative lists are fields named by their keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import same
from kubewright.controlplane.embedded.managedfields.fieldset import LEAF, FieldSet, as_member, ordered, union, without
from kubewright.controlplane.embedded.managedfields.shape import MergeShape


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """The fields that went, that got another value, and that came."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def written(self) -> FieldSet:
        """The fields that have a value they did not have before."""
        return union(self.modified, self.added)

    def besides(self, ignored: FieldSet) -> FieldChanges:
        """The changes outside of `ignored` fields and what is below them."""
        if not ignored:
            return self
        return FieldChanges(
            without(self.removed, ignored), without(self.modified, ignored), without(self.added, ignored)
        )


def fields_of(value: JSONObject, shape: MergeShape) -> FieldSet:
    """The fields that an applied configuration claims: its leaves, and every item and key it mentions."""
    return _claimed(value, shape) or LEAF


def _claimed(value: JSONValue, shape: MergeShape) -> FieldSet | None:
    """The field's node, without the field itself when it is nothing but the way to others; None for no field at all."""
    if shape.is_leaf:
        return LEAF
    if isinstance(value, dict):
        if shape.holds_items:
            return LEAF
        node: FieldSet = {}
        for name in sorted(value):
            nested = value[name]
            below = _claimed(nested, shape.field(name))
            if nested is None or nested == {} or not shape.is_named(name):
                below = as_member(below)
            if below is not None:
                node[f"f:{name}"] = below
        return node or None
    if isinstance(value, list):
        return _claimed_items(value, shape) if shape.holds_items else LEAF
    return None if value is None else LEAF


def _claimed_items(value: list[JSONValue], shape: MergeShape) -> FieldSet | None:
    node: FieldSet = {}
    for item in value:
        element = shape.item_element(item)
        # Of items that are there twice nothing more is known than that they are.
        node[element] = LEAF if element in node else as_member(_claimed(item, shape.element))
    return ordered(node) or None


def changes(old: JSONObject, new: JSONObject, shape: MergeShape) -> FieldChanges:
    """How the fields of two objects differ. Untrackable when a list has items that nothing identifies."""
    removed: FieldSet = {}
    modified: FieldSet = {}
    added: FieldSet = {}
    _compare_names(old, new, shape, removed, modified, added)
    return FieldChanges(ordered(removed), ordered(modified), ordered(added))


def _all(value: JSONValue, shape: MergeShape) -> FieldSet:
    """Every field of a value that is only on one side, itself included."""
    if not value or shape.is_leaf:
        return LEAF
    if isinstance(value, dict):
        if shape.holds_items:
            return LEAF
        node: FieldSet = {".": LEAF}
        for name in sorted(value):
            node["f:" + name] = _all(value[name], shape.field(name))
        return node
    if isinstance(value, list) and shape.holds_items:
        return _all_items(value, shape)
    return LEAF


def _all_items(value: list[JSONValue], shape: MergeShape) -> FieldSet:
    node: FieldSet = {}
    for item in value:
        element = shape.item_element(item)
        node[element] = LEAF if element in node else _all(item, shape.element)
    return as_member(ordered(node))


def _compare_names(
    old: JSONObject, new: JSONObject, shape: MergeShape, removed: FieldSet, modified: FieldSet, added: FieldSet
) -> None:
    for name, value in old.items():
        if name not in new:
            removed["f:" + name] = _all(value, shape.field(name))
            continue
        other = new[name]
        if not _surely_same(value, other):
            _compare("f:" + name, value, other, shape.field(name), removed, modified, added)
    for name, value in new.items():
        if name not in old:
            added["f:" + name] = _all(value, shape.field(name))


def _surely_same(one: JSONValue, other: JSONValue) -> bool:
    """A quick answer: True only for equal values, False for most others and for a few equal ones."""
    if one is other:
        return True
    if one != other:
        return False
    # Python takes true for 1, JSON does not.
    if isinstance(one, dict | list):
        return msgspec.json.encode(one) == msgspec.json.encode(other)
    return type(one) is type(other)


def identical(one: JSONValue, other: JSONValue) -> bool:
    """Equality as JSON has it, quick where values are equal."""
    return _surely_same(one, other) or (one == other and same(one, other))


def _compare(
    element: str,
    old: JSONValue,
    new: JSONValue,
    shape: MergeShape,
    removed: FieldSet,
    modified: FieldSet,
    added: FieldSet,
) -> None:
    """Compare two values that are both there, null being one."""
    below: tuple[FieldSet, FieldSet, FieldSet] | None = None
    if not shape.is_leaf:
        if shape.holds_items:
            if (old or new) and isinstance(old, list | None) and isinstance(new, list | None):
                below = {}, {}, {}
                _compare_items(old or [], new or [], shape, *below)
        elif (old and isinstance(old, dict)) or (new and isinstance(new, dict)):
            below = {}, {}, {}
            _compare_names(old if isinstance(old, dict) else {}, new if isinstance(new, dict) else {}, shape, *below)
            if not isinstance(old, dict | None) or not isinstance(new, dict | None):
                modified[element] = LEAF
    if below is None:
        if not same(old, new):
            modified[element] = LEAF
        return
    for target, nested in zip((removed, modified, added), below, strict=True):
        if nested:
            target[element] = ordered(nested)


def _compare_items(
    old: list[JSONValue],
    new: list[JSONValue],
    shape: MergeShape,
    removed: FieldSet,
    modified: FieldSet,
    added: FieldSet,
) -> None:
    before, after = _grouped(old, shape), _grouped(new, shape)
    for element, values in before.items():
        others = after.get(element, ())
        if len(values) == 1 and len(others) == 1:
            _compare(element, values[0], others[0], shape.element, removed, modified, added)
        elif len(values) > 1 and len(others) > 1:
            if not same(list(values), list(others)):
                modified[element] = LEAF
        elif len(values) > 1:
            if others:
                added[element] = _all(others[0], shape.element)
            removed[element] = LEAF
        elif others:
            removed[element] = _all(values[0], shape.element)
            added[element] = LEAF
        else:
            removed[element] = _all(values[0], shape.element)
    for element, others in after.items():
        if element not in before:
            added[element] = LEAF if len(others) > 1 else _all(others[0], shape.element)


def _grouped(value: list[JSONValue], shape: MergeShape) -> dict[str, list[JSONValue]]:
    groups: dict[str, list[JSONValue]] = {}
    for item in value:
        groups.setdefault(shape.item_element(item), []).append(item)
    return groups
