"""Making a change again on an object that another client has changed meanwhile.

`rebased` is a three-way merge of JSON: what changed from `before` to `after` is done to `live`, and nothing else there
is touched. A field that both changed is as `after` has it. Lists are merged item by item where items are identifiable:
by the keys of the type, in a set by value, and conditions by their type wherever they are. Any other list can only be
replaced whole, and so can a union that becomes another member; they are, unless the other client has changed them as
well: `MergeClash` then names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubewright.api.codec import encode
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import same
from kubewright.api.shape import SCALAR, Shape

# Keys of list items that a server fills in. Kubernetes has this one, in the ports of containers and services.
_DEFAULTS: Mapping[str, JSONValue] = {"protocol": "TCP"}


class MergeClash(Exception):
    """A field that is replaced whole was changed on both sides; the message is its path, such as `spec.args`."""


def rebased(before: JSONObject, after: JSONObject, live: JSONObject, shape: Shape) -> JSONObject:
    """`live` with the changes from `before` to `after`. Raises `MergeClash` where the two exclude each other.

    Guarantee: without changes it is `live`, on an unchanged object it is `after`, and doing it twice is doing it once.
    Null and absent are the same here, as they are in merge patches.
    """
    return _fields(before, after, live, shape, "")


def replaces_whole(patch: JSONObject, before: JSONObject, shape: Shape) -> bool:
    """Whether a merge patch of `before` writes a list, removes a list or map, or makes a union another member.

    What others put there is lost, or left beside what does not go with it.
    """
    return any(_replaces(value, before.get(name), _field(shape, name)) for name, value in patch.items())


def _replaces(value: JSONValue, before: JSONValue, shape: Shape) -> bool:
    if isinstance(value, dict):
        old = _mapping(before)
        return not shape.is_one_member(old, {**old, **value}) or replaces_whole(value, old, shape)
    return isinstance(value, list) or (value is None and (isinstance(before, list) or shape.form == "map"))


def _field(shape: Shape, name: str) -> Shape:
    return shape.fields.get(name, shape.item or SCALAR)


def _rebased(before: JSONValue, after: JSONValue, live: JSONValue, shape: Shape, path: str) -> JSONValue:
    """The same for any value; None is an absent one."""
    if same(live, before):
        return after
    if same(live, after):
        return live
    if isinstance(after, dict) and not shape.is_one_member(before, after, live):
        raise MergeClash(path)
    # An absent map or list is one that lost all entries it had; what others have put into it was not among them.
    is_map = isinstance(after, dict) or (after is None and shape.form == "map")
    is_list = isinstance(after, list) or (after is None and isinstance(before, list))
    merged: JSONObject | list[JSONValue]
    if is_map and isinstance(live, dict | None):
        merged = _fields(_mapping(before), _mapping(after), _mapping(live), shape, path)
    elif is_list and isinstance(live, list | None):
        merged = _items(_sequence(before), _sequence(after), _sequence(live), shape, path)
    else:
        return after
    return None if not merged and (after is None or live is None) else merged


def _mapping(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _sequence(value: JSONValue) -> list[JSONValue]:
    return value if isinstance(value, list) else []


def _fields(before: JSONObject, after: JSONObject, live: JSONObject, shape: Shape, path: str) -> JSONObject:
    result = dict(live)
    for name in before | after:
        old, new = before.get(name), after.get(name)
        if same(old, new):
            continue
        value = _rebased(old, new, live.get(name), _field(shape, name), f"{path}.{name}" if path else name)
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def _items(
    before: list[JSONValue], after: list[JSONValue], live: list[JSONValue], shape: Shape, path: str
) -> list[JSONValue]:
    keys = shape.keys or (("type",) if all(map(_is_condition, [*before, *after, *live])) else ())
    if not keys and not shape.is_set:
        raise MergeClash(path)
    old, new, there = (_by_key(each, keys, path) for each in (before, after, live))
    result: dict[bytes, JSONValue] = {}
    for key in _order(old, new, there):
        if key in new and not same(old.get(key), new[key]):
            item = shape.item or SCALAR
            result[key] = _rebased(old.get(key), new[key], there[key], item, path) if key in there else new[key]
        elif key in there and (key in new or key not in old):
            result[key] = there[key]
    return list(result.values())


def _is_condition(item: JSONValue) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str) and isinstance(item.get("status"), str)


def _by_key(items: list[JSONValue], keys: tuple[str, ...], path: str) -> dict[bytes, JSONValue]:
    found = {_key(item, keys): item for item in items}
    if len(found) < len(items):
        raise MergeClash(path)  # which of two equals an item was made from is not known
    return found


def _key(item: JSONValue, keys: tuple[str, ...]) -> bytes:
    if not keys or not isinstance(item, dict):
        return encode(item)
    return encode([_DEFAULTS.get(key) if (value := item.get(key)) is None else value for key in keys])


def _order(old: Iterable[bytes], new: dict[bytes, JSONValue], there: dict[bytes, JSONValue]) -> list[bytes]:
    """All keys as in `there`, or as in `new` where we changed the order; the other's are behind their predecessors."""
    is_reordered = [key for key in new if key in old] != [key for key in old if key in new]
    first, second = (new, there) if is_reordered else (there, new)
    order = list(first)
    position = 0
    for key in second:
        if key in first:
            position = order.index(key) + 1
        else:
            order.insert(position, key)
            position += 1
    return order
