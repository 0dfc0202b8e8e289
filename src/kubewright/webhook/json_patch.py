"""The difference of two JSON documents as a JSON patch (RFC 6902).

Only what differs is named: an object is descended into, and of a list the items at its beginning and at its end that
are equal are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import same


def json_patch(before: JSONValue, after: JSONValue) -> list[JSONObject]:
    """The operations that turn one document into the other; none when they are equal."""
    return list(_operations(before, after, ""))


def _operations(before: JSONValue, after: JSONValue, path: str) -> Iterator[JSONObject]:
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_fields(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_items(before, after, path)
    else:
        yield {"op": "replace", "path": path, "value": after}


def _of_fields(before: JSONObject, after: JSONObject, path: str) -> Iterator[JSONObject]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in after.items():
        if name in before:
            yield from _operations(before[name], value, f"{path}/{_escaped(name)}")
        else:
            yield {"op": "add", "path": f"{path}/{_escaped(name)}", "value": value}


def _of_items(before: list[JSONValue], after: list[JSONValue], path: str) -> Iterator[JSONObject]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and same(before[start], after[start]):
        start += 1
    equal_at_end = 0
    while equal_at_end < shorter - start and same(before[-1 - equal_at_end], after[-1 - equal_at_end]):
        equal_at_end += 1
    old_end, new_end = len(before) - equal_at_end, len(after) - equal_at_end
    both = min(old_end, new_end)
    for index in range(start, both):
        yield from _operations(before[index], after[index], f"{path}/{index}")
    # From behind, so that no removal moves what the next one names.
    for index in range(old_end - 1, both - 1, -1):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for index in range(both, new_end):
        yield {"op": "add", "path": f"{path}/{index}", "value": after[index]}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
