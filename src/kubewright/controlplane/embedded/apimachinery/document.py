"""Objects as the server handles them: plain JSON.

Stored objects are shared and never changed in place: changes are made to a copy (`copied`).
"""

from __future__ import annotations

from typing import cast

from kubewright.api.markers import JSONObject, JSONValue


def copied(value: JSONValue) -> JSONValue:
    """A copy that shares nothing mutable with the original."""
    if isinstance(value, dict):
        return {name: copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def copied_object(value: JSONObject) -> JSONObject:
    """`copied` of an object."""
    return cast(JSONObject, copied(value))


def at(value: JSONValue, *path: str) -> JSONValue:
    """The value at a path of field names; None when any step is absent."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text(value: JSONValue, *path: str) -> str:
    """The string at a path; empty when there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def mapping(value: JSONValue, *path: str) -> JSONObject:
    """The object at a path; an empty one, not part of `value`, when there is none."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def items(value: JSONValue, *path: str) -> list[JSONValue]:
    """The list at a path; an empty one, not part of `value`, when there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def inside(value: JSONObject, *path: str) -> JSONObject:
    """The object at a path, put there empty (instead of null or anything else that is no object) when needed."""
    for name in path:
        nested = value.get(name)
        if not isinstance(nested, dict):
            nested = {}
            value[name] = nested
        value = nested
    return value
