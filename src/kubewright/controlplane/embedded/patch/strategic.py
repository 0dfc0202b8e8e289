"""Strategic merge patches: merge patches that know from the kind's structure which lists to merge, and by which key.

Besides values a patch has directives: `$patch` in an object (replace or delete it) or in an item of a list,
`$retainKeys` (only these fields stay), `$setElementOrder/<list>` and `$deleteFromPrimitiveList/<list>`.

The result may hold nulls and directives where kube-apiserver leaves them too (in items new to a list, below `$patch:
replace`): what decodes it treats nulls as absent and directives as unknown fields.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import formatted, formatted_as_string, json_kind
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.patch.ordering import arranged, identities, identity, key_of
from kubewright.controlplane.embedded.patch.result import DoesNotApply, failure, wrong_type

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"


def apply_strategic_patch(document: JSONObject, patch: JSONValue, structure: Structure) -> JSONObject:
    """The document with the patch merged in; neither is changed, and what the patch does not name is shared."""
    if patch is None:
        return document
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}")
    return _merged(document, patch, structure)


def _merged(document: JSONObject, patch: JSONObject, structure: Structure) -> JSONObject:
    if _PATCH in patch:
        return _replacement(patch)
    merged = dict(document)
    if _RETAIN_KEYS in patch:
        patch = _retain_keys(merged, patch)
    ordered = _merge_ordered_lists(merged, patch, structure)
    for name, value in patch.items():
        if name in ordered:
            continue
        deletes = name.startswith(_DELETE)
        target = (_list_name(name, _DELETE) or name) if deletes else name
        current = merged.get(target)
        if value is None:
            merged.pop(target, None)
        elif type(current) is not type(value):
            if not deletes:
                _set(merged, target, value)
        elif isinstance(current, dict) and isinstance(value, dict):
            merged[target] = _merged(current, value, _field(structure, target))
        elif isinstance(current, list) and isinstance(value, list):
            merged[target] = _merged_list(current, value, _list_field(structure, target), deletes=deletes)
        else:
            merged[target] = value
    return merged


def _replacement(patch: JSONObject) -> JSONObject:
    match patch[_PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _PATCH}
        case "delete":
            return {}
    raise _unknown_directive(patch)


def _retain_keys(merged: JSONObject, patch: JSONObject) -> JSONObject:
    """Drops the fields that are not to be retained; returns the patch without the directive."""
    retained = patch[_RETAIN_KEYS]
    patch = {name: value for name, value in patch.items() if name != _RETAIN_KEYS}
    names = {name for name in retained if isinstance(name, str)} if isinstance(retained, list) else None
    if names is None or any(
        value is not None and name not in names and not name.startswith((_DELETE, _ORDER))
        for name, value in patch.items()
    ):
        raise bad_request("invalid patch format of retainKeys")
    for name in merged.keys() - names:
        del merged[name]
    return patch


def _merge_ordered_lists(merged: JSONObject, patch: JSONObject, structure: Structure) -> set[str]:
    """Merges the lists whose order is given; returns the names in the patch that are done by that."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        done.add(directive)
        if not isinstance(order, list):
            raise wrong_type([], order)
        name = _list_name(directive, _ORDER)
        current, given = _list_at(merged, name), _list_at(patch, name)
        field = _list_field(structure, name)
        if given is not None:
            _require_order(given, order, field.merge_key)
        if current is not None and given is not None:
            items = _merged_list(current, given, field)
        elif given is not None:
            items = [_without_directives(item, nulls=True) for item in given if not _is_directive(item, nulls=True)]
        elif current is not None:
            items = current
        else:
            continue
        _item_type(current or [], given or [])
        server = _server_order(current or [], given or [], field.merge_key)
        merged[name] = arranged(items, order, server, field.merge_key)
        done.add(name)
    return done


def _server_order(current: list[JSONValue], given: list[JSONValue], key: str) -> Sequence[JSONValue]:
    """The order that the server's items count as having when the patch gives one for its own.

    New items count as the server's as far as there are deleted ones to take the place of: in kube-apiserver's lists
    they end up in the same memory.
    """
    directives = [item[_PATCH] for item in _objects(given) if _PATCH in item]
    if not current or not key or "delete" not in directives or "replace" in directives:
        return current
    objects, changes = _without_special_items(_objects(current), _objects(given), key)
    known = set(identities(objects, key))
    added = [change for change in changes if identity(change[key]) not in known]
    return [*objects, *added][: len(current)]


def _list_at(value: JSONObject, name: str) -> list[JSONValue] | None:
    if name not in value:
        return None
    found = value[name]
    if not isinstance(found, list):
        raise wrong_type([], found)
    return found


def _require_order(given: list[JSONValue], order: list[JSONValue], key: str) -> None:
    """The items of the patch must be in the order, and follow each other as there; deletions may be anywhere."""
    if not given or not order:
        return
    if key and (strangers := [item for item in given if not isinstance(item, dict)]):
        raise wrong_type({}, strangers[0])
    waiting = [item for item in given if not (isinstance(item, dict) and key and item.get(_PATCH) == "delete")]
    position = 0
    for candidate in order:
        while position < len(waiting) and _is_directive(waiting[position], nulls=True):
            position += 1
        if position == len(waiting):
            return
        position += _same(waiting[position], candidate, key)
    if position < len(waiting):
        lists = formatted(given), formatted(order)
        raise failure(f"The order in patch list:\n{lists[0]}\n doesn't match {_ORDER} list:\n{lists[1]}\n")


def _same(one: JSONValue, other: JSONValue, key: str) -> bool:
    return identity(key_of(one, key) if key else one) == identity(key_of(other, key) if key else other)


def _merged_list(
    current: list[JSONValue], patch: list[JSONValue], structure: Structure, *, deletes: bool = False
) -> list[JSONValue]:
    if not structure.merge_list and not deletes:
        return patch
    if not current and not patch:
        return current
    key = structure.merge_key
    if _item_type(current, patch) is not dict:
        if deletes:
            removed = {identity(item) for item in patch}
            return [item for item in current if identity(item) not in removed]
        both = [*current, *patch]
        distinct = dict(zip(identities(both, ""), both, strict=True))
        return arranged(list(distinct.values()), patch, current, key)
    if not key:
        raise failure("cannot merge lists without merge key for string")
    objects, changes = _objects(current), _objects(patch)
    if any(_PATCH in change for change in changes):
        objects, changes = _without_special_items(objects, changes, key)
    return arranged(_merged_objects(objects, changes, key, structure.item), changes, objects, key)


def _merged_objects(
    current: list[JSONObject], changes: list[JSONObject], key: str, structure: Structure
) -> list[JSONObject]:
    """Every change merged into the first item that has its key, or appended."""
    merged = list(current)
    positions = {identity(item[key]): position for position, item in reversed(list(enumerate(merged))) if key in item}
    for change in changes:
        name = identity(key_of(change, key))
        position = positions.get(name)
        if position is None:
            positions[name] = len(merged)
            merged.append(change)
        else:
            merged[position] = _merged(merged[position], change, structure)
    return merged


def _without_special_items(
    current: list[JSONObject], changes: list[JSONObject], key: str
) -> tuple[list[JSONObject], list[JSONObject]]:
    """Carries out the items that are directives: the list as it is then, and the items that are to be merged."""
    removed = set()
    replace = False
    for change in changes:
        match change.get(_PATCH):
            case None if _PATCH not in change:
                pass
            case "delete":
                removed.add(identity(key_of(change, key)))
            case "replace":
                replace = True
            case "merge":
                raise failure("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_directive(change)
    changes = [change for change in changes if _PATCH not in change]
    if replace:
        return changes, []
    return [item for item in current if key not in item or identity(item[key]) not in removed], changes


def _item_type(*lists: list[JSONValue]) -> type:
    """The one type all items have."""
    found = {type(item): item for items in lists for item in items}
    if not found:
        raise failure("no elements in any of the given slices")
    first = next(item for items in lists for item in items)
    if first is None:
        # kube-apiserver panics here: null has no type.
        raise bad_request("invalid JSON document")
    if isinstance(first, list):
        raise DoesNotApply()
    if len(found) > 1:
        raise failure(f"list element types are not identical: {formatted([*lists])}")
    return type(first)


def _objects(items: list[JSONValue]) -> list[JSONObject]:
    return [item for item in items if isinstance(item, dict)]


def _set(merged: JSONObject, name: str, value: JSONValue) -> None:
    """Puts in a value that has nothing to be merged with."""
    if _is_directive(value):
        merged.pop(name, None)
    else:
        merged[name] = _without_directives(value)


def _is_directive(value: JSONValue, *, nulls: bool = False) -> bool:
    return isinstance(value, dict) and _PATCH in value and (nulls or value[_PATCH] is not None)


def _without_directives(value: JSONValue, *, nulls: bool = False) -> JSONValue:
    """Without what has a `$patch` at any depth and, unless `nulls` are kept, without null fields."""
    if isinstance(value, dict):
        return {
            name: _without_directives(item, nulls=nulls)
            for name, item in value.items()
            if (nulls or item is not None) and not _is_directive(item, nulls=nulls)
        }
    if isinstance(value, list):
        return [_without_directives(item, nulls=nulls) for item in value if not _is_directive(item, nulls=nulls)]
    return value


def _list_name(directive: str, prefix: str) -> str:
    """The list that a directive refers to."""
    found, slash, name = directive.partition("/")
    if found != prefix or not slash:
        what = "primitive list" if prefix == _DELETE else "setElementOrder list"
        raise bad_request(f"invalid patch format of {what}")
    return name


def _field(structure: Structure, name: str) -> Structure:
    if structure.form == "map":
        raise failure("merging an object in json but data type is not struct, instead is: map")
    field = None if structure.form == "untyped" else structure.field(name)
    if field is None:
        raise failure(f'unable to find api field in struct for the json field "{name}"')
    return field


def _list_field(structure: Structure, name: str) -> Structure:
    field = _field(structure, name)
    if field.form not in ("list", "untyped"):
        raise failure("expected slice or array type, but got: struct")
    return field


def _unknown_directive(patch: JSONObject) -> StatusError:
    return failure(f"unknown patch type: {formatted_as_string(patch[_PATCH])} in map: {formatted(patch)}")
