"""A three-way merge, as `kubectl apply` does: what we want is so, what we wanted before and no longer do is gone, and
everything else stays as others have made it. What we want also replaces its alternatives: an interface has one binding.

KubeVirt's lists are atomic to a server-side apply, which would take away every disk that was plugged in meanwhile. Here
their items are known by their names.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue

from .kubevirt import ALTERNATIVES


def merged(live: JSONValue, before: JSONValue, wanted: JSONValue) -> JSONValue:
    """`live` with what is `wanted`, and without what was wanted `before`."""
    if isinstance(wanted, dict):
        return merged_fields(_mapping(live), _mapping(before), wanted)
    if isinstance(wanted, list) and all(map(_is_named, wanted)):
        there, old, new = _by_name(live), _by_name(before), _by_name(wanted)
        return [
            merged(there.get(name), old.get(name), new[name]) if name in new else there[name]
            for name in there | new
            if name in new or name not in old
        ]
    return wanted


def merged_fields(live: JSONObject, before: JSONObject, wanted: JSONObject) -> JSONObject:
    """The same of structures."""
    result: JSONObject = {}
    replaced = {name for group in ALTERNATIVES if not group.isdisjoint(wanted) for name in group}
    for name in live | wanted:
        if name in wanted:
            result[name] = merged(live.get(name), before.get(name), wanted[name])
        elif name in replaced:
            continue
        elif name not in before:
            result[name] = live[name]
        elif remainder := _remainder(live[name], before[name]):
            result[name] = remainder
    return result


def _remainder(live: JSONValue, before: JSONValue) -> JSONValue:
    """What others have put into what we no longer want."""
    nothing: JSONValue = {} if isinstance(before, dict) else []
    return merged(live, before, nothing) if isinstance(before, dict | list) and isinstance(live, type(before)) else None


def _mapping(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _by_name(items: JSONValue) -> JSONObject:
    return {str(_mapping(item)["name"]): item for item in (items if isinstance(items, list) else []) if _is_named(item)}


def _is_named(item: JSONValue) -> bool:
    return isinstance(item, dict) and isinstance(item.get("name"), str)
