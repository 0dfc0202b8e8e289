"""Writing an object back without losing what its Python type does not know.

An object remembers the JSON it was decoded from. `merged` puts the changes made in Python into that JSON and touches
nothing else: a field the type does not know survives, also inside the items of a list, and an unchanged field is
sent as it was read. `merge_patch` is the difference alone.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias, get_type_hints

import msgspec

from kubewright.api.codec import decode_json, decode_model, encode, encode_scalar, origin, remembered
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.resources import Object
from kubewright.api.shape import SCALAR, Shape

Parts: TypeAlias = dict[str, msgspec.Raw]
"""An object in JSON, as its fields: `metadata`, `spec` and so on. Most of them are never decoded."""

_parts = msgspec.json.Decoder(Parts)
_values = msgspec.json.Encoder(enc_hook=encode_scalar)


def merged(obj: Object, names: tuple[str, ...] = ()) -> Parts:
    """The JSON to write: what the object was decoded from, with what changed since. Guarantee: nothing else differs.

    With the `names` of fields, only changes in those count: the rest is not compared.
    """
    raw = remembered(obj)
    if raw is None:
        return parts_of(encode(obj))
    original, fields = parts_of(raw), Shape("model", model=type(obj)).fields
    before, after = _compared(obj, raw, original, names)
    result = {name: value for name, value in original.items() if name in after or name not in before}
    for name, value in after.items():
        if name in before and bytes(before[name]) == bytes(value):
            continue
        if name in before and name in original:
            known = decode_json(original[name])
            changed = merged_value(known, decode_json(before[name]), decode_json(value), fields.get(name, SCALAR))
            result[name] = msgspec.Raw(encode(changed))
        else:
            result[name] = value
    return result


def changes(obj: Object, snapshot: bytes) -> tuple[JSONObject, JSONObject]:
    """The fields that changed since an object was `encode`d as `snapshot`, as they were read and as `merged` has them.

    What is the same inside of them is the same Python value, so that to compare the two costs little.
    """
    now = encode(obj)
    if now == snapshot:
        return {}, {}
    original, fields = parts_of(remembered(obj) or snapshot), Shape("model", model=type(obj)).fields
    before, after = parts_of(snapshot), parts_of(now)
    touched = [name for name in before | after if bytes(before.get(name, b"")) != bytes(after.get(name, b""))]
    old = {name: decode_json(original[name]) for name in touched if name in original}
    new = {name: decode_json(after[name]) for name in touched if name in after}
    for name in touched:
        if name in old and name in before and name in new:
            new[name] = merged_value(old[name], decode_json(before[name]), new[name], fields.get(name, SCALAR))
    return old, new


def parts_of(raw: bytes) -> Parts:
    """The fields of an object in JSON."""
    return _parts.decode(raw)


def joined(parts: Parts) -> bytes:
    """The JSON of an object from its fields."""
    return msgspec.json.encode(parts)


def _compared(obj: Object, raw: bytes, original: Parts, names: tuple[str, ...]) -> tuple[Parts, Parts]:
    """The fields in which changes count, as they were read and as they are now."""
    kind = type(obj)
    if not names or issubclass(kind, Dynamic):
        return parts_of(encode(decode_model(kind, raw))), parts_of(encode(obj))
    view = _view_of(kind, names)
    before = decode_model(view, joined({name: original[name] for name in names if name in original}))
    # Metadata is nearly always the same, and to see that costs a tenth of encoding both.
    compared = tuple(
        [name for name in view.__struct_fields__ if name != "metadata" or getattr(before, name) != obj.metadata]
    )
    view = _view_of(kind, compared)
    one, other = [view(**{name: getattr(each, name) for name in compared}) for each in (before, obj)]
    return parts_of(encode(one)), parts_of(encode(other))


@cache
def _view_of(kind: type[Object], names: tuple[str, ...]) -> type[msgspec.Struct]:
    """A structure with some of the fields of a kind, which are decoded and encoded as those of the kind are."""
    hints = get_type_hints(kind, include_extras=True)
    chosen = [field for field in msgspec.structs.fields(kind) if field.name in names]
    return msgspec.defstruct(
        kind.__name__,
        [
            (
                field.name,
                hints[field.name],
                msgspec.field(default=field.default)
                if field.default_factory is msgspec.NODEFAULT
                else msgspec.field(default_factory=field.default_factory),
            )
            for field in chosen
        ],
        rename={field.name: field.encode_name for field in chosen},
        omit_defaults=True,
        kw_only=True,
    )


def as_read(obj: Object) -> Parts | None:
    """The JSON that a server sent an object as; None for manifests and for objects made in Python."""
    raw = origin(obj)
    return None if raw is None else parts_of(raw)


def patch_between(before: Parts, after: Parts) -> JSONObject:
    """The smallest JSON merge patch (RFC 7386) that turns one object into the other; empty when they are equal."""
    unequal = [name for name in after if name not in before or bytes(before[name]) != bytes(after[name])]
    return merge_patch(
        {name: decode_json(value) for name, value in before.items() if name not in after or name in unequal},
        {name: decode_json(after[name]) for name in unequal},
    )


def merge_patch(before: JSONValue, after: JSONValue) -> JSONObject:
    """The smallest JSON merge patch (RFC 7386) that turns one JSON object into the other; empty when they are equal."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        raise TypeError("a merge patch is between two JSON objects")
    patch: JSONObject = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if nested := merge_patch(old, value):
                patch[name] = nested
        elif not same(old, value) or name not in before:
            patch[name] = value
    return patch


def same(one: JSONValue, other: JSONValue) -> bool:
    """Equality as JSON has it: true is not 1."""
    if one is other:
        return True
    if isinstance(one, bool) or isinstance(other, bool) or one != other:
        return False
    if not isinstance(one, dict | list):
        return True
    # Equal to Python, which takes true for 1. Equal JSON is certain, and found without a walk through all values.
    return _values.encode(one) == _values.encode(other) or _same_inside(one, other)


def _same_inside(one: JSONValue, other: JSONValue) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(value, other[name]) for name, value in one.items())
    return isinstance(one, list) and isinstance(other, list) and all(map(same, one, other))


def merged_value(original: JSONValue, before: JSONValue, after: JSONValue, shape: Shape) -> JSONValue:
    """`original` with the changes from `before` to `after`, which are views of it that may know less."""
    return original if same(before, after) else _merged(original, before, after, shape)


def _merged(original: JSONValue, before: JSONValue, after: JSONValue, shape: Shape) -> JSONValue:
    """The same of values that are known to differ."""
    if not shape.is_one_member(before, after):
        return after  # with nothing of what the other member had, known to the type or not
    if isinstance(original, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merge_fields(original, before, after, shape)
    if isinstance(original, list) and isinstance(before, list) and isinstance(after, list):
        return _merge_items(original, before, after, shape)
    return after


def _merge_fields(original: JSONObject, before: JSONObject, after: JSONObject, shape: Shape) -> JSONObject:
    result = {name: value for name, value in original.items() if name in after or name not in before}
    fields = shape.fields
    for name, value in after.items():
        if name not in before:
            result[name] = value
        elif not same(before[name], value):
            result[name] = _merged(original.get(name), before[name], value, fields.get(name, shape.item or SCALAR))
    return result


def _merge_items(original: list[JSONValue], before: list[JSONValue], after: list[JSONValue], shape: Shape) -> JSONValue:
    """Each new item finds the old one it came from: by key, else the equal one, else (same length) by position."""
    if len(original) != len(before):
        return after
    item_shape = shape.item or SCALAR
    unused = dict(enumerate(before))
    sources: list[int | None] = [_take(unused, item, shape.keys) for item in after]
    if not shape.keys and len(after) == len(before):
        sources = [index if source is None and index in unused else source for index, source in enumerate(sources)]
    return [
        item if source is None else merged_value(original[source], before[source], item, item_shape)
        for item, source in zip(after, sources, strict=True)
    ]


def _take(unused: dict[int, JSONValue], item: JSONValue, keys: tuple[str, ...]) -> int | None:
    """The index of the old item that `item` continues, removed from `unused`."""
    for index, old in unused.items():
        if _same_item(old, item, keys):
            del unused[index]
            return index
    return None


def _same_item(old: JSONValue, new: JSONValue, keys: tuple[str, ...]) -> bool:
    if keys and isinstance(old, dict) and isinstance(new, dict):
        return all(same(old.get(key), new.get(key)) for key in keys)
    return same(old, new)
