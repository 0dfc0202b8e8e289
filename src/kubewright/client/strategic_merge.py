"""Turns a merge patch into a strategic merge patch, which Kubernetes' own kinds accept as well.

Lists that have a merge key change item by item: what others have added to them meanwhile survives without a lock, and
so do values of sets such as finalizers. The keys are those of the generated types.
"""

from __future__ import annotations

from kubewright.api.builtin import MODULES
from kubewright.api.codec import encode
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import merge_patch, same
from kubewright.api.resources import Object, resource_info
from kubewright.api.shape import SCALAR, Shape


def check_strategic(kind: type[Object]) -> None:
    """Raise a TypeError for kinds that take no strategic merge patch."""
    gvk = resource_info(kind).gvk
    if gvk.api_version not in MODULES:
        raise TypeError(
            f"strategic=True is for Kubernetes' own kinds: {gvk.kind} of {gvk.api_version} is a custom resource, which "
            "takes merge patches only; leave it out"
        )


def strategic_merge(patch: JSONObject, before: JSONObject, shape: Shape) -> tuple[JSONObject, bool]:
    """The strategic merge patch that does what the merge patch `patch` does to `before`.

    The second is whether it replaces a list whole, so that what others put there is lost.
    """
    result: JSONObject = {}
    replaces = False
    for name, value in patch.items():
        field = shape.fields.get(name, shape.item or SCALAR)
        old = before.get(name)
        if isinstance(value, dict):
            result[name], nested = strategic_merge(value, old if isinstance(old, dict) else {}, field)
            replaces |= nested
        elif value is None and field.form == "map" and isinstance(old, dict):
            result[name] = dict.fromkeys(old)
        elif field.strategic is not None and isinstance(value or old, list):
            news, olds = _sequence(value), _sequence(old)
            key = field.strategic.key
            changes, nested = _items(name, news, olds, key, field.item or SCALAR) if key else _values(name, news, olds)
            result |= changes
            replaces |= nested
        else:
            result[name] = value
            replaces |= isinstance(value, list) or (value is None and isinstance(old, list))
    return result, replaces


def _items(
    name: str, news: list[JSONValue], olds: list[JSONValue], key: str, item_shape: Shape
) -> tuple[JSONObject, bool]:
    """The changes to the items of a list; the whole list where keys are ambiguous, as with ports of two protocols."""
    new, old = _by_key(news, key), _by_key(olds, key)
    if new is None or old is None:
        return {name: [{"$patch": "replace"}, *news]}, True
    items: list[JSONValue] = []
    replaces = False
    for identity, item in new.items():
        if identity not in old:
            items.append(item)
        elif not same(old[identity], item):
            change, within = strategic_merge(merge_patch(old[identity], item), old[identity], item_shape)
            items.append({**change, key: item[key]})
            replaces |= within
    items += [{"$patch": "delete", key: item[key]} for identity, item in old.items() if identity not in new]
    order: list[JSONValue] = [{key: item[key]} for item in new.values()]
    return {name: items, f"$setElementOrder/{name}": order}, replaces


def _values(name: str, news: list[JSONValue], olds: list[JSONValue]) -> tuple[JSONObject, bool]:
    added = [value for value in news if value not in olds]
    removed = [value for value in olds if value not in news]
    changes: JSONObject = {f"$setElementOrder/{name}": news}
    if added:
        changes[name] = added
    if removed:
        changes[f"$deleteFromPrimitiveList/{name}"] = removed
    return changes, False


def _by_key(items: list[JSONValue], key: str) -> dict[bytes, JSONObject] | None:
    found = {encode(item[key]): item for item in items if isinstance(item, dict) and key in item}
    return found if len(found) == len(items) else None


def _sequence(value: JSONValue) -> list[JSONValue]:
    return value if isinstance(value, list) else []
