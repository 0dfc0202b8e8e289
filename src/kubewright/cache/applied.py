"""Whether a server-side apply would change anything, decided from what the cache has.

It changes nothing when the fields of the configuration are exactly those that we own already, by managedFields, and
each has the applied value: a field that is no longer applied must be released, a new one must be claimed. The
tree of owned fields shows how lists merge, so that no schema is needed: an owned leaf is replaced whole, `k:{...}` is a
list item by its keys, `v:...` one by its value.

Values that differ may still be the result of the same apply: the server fills in defaults, and webhooks may change
anything. Where that is so is known after an apply that left them as they were (`SettledApplies`), so that such an
object costs one request more. In doubt an apply is sent.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Hashable, Sequence
from datetime import datetime
from functools import cache
from typing import TypeAlias

import msgspec

from kubewright.api.codec import NOT_JSON, decode_json, remembered
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.model import Default
from kubewright.api.origin import same
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, resource_info
from kubewright.api.shape import SCALAR, Shape
from kubewright.cache.entry import CacheEntry, applied_marker, parse_entry

_NOT_OWNED = ("apiVersion", "kind")
_METADATA_NOT_OWNED = ("name", "namespace")
_DEFAULT_KEYS: JSONObject = {"protocol": "TCP", "name": ""}
"""The keys of list items that built-in kinds fill in: of container and service ports, and of imagePullSecrets."""

_SECRET = GroupVersionKind("", "v1", "Secret")
_MAX_SETTLED = 10_000

_Id: TypeAlias = tuple[GroupVersionKind, ObjectKey, str]


class SettledApplies:
    """Decides whether an apply would change anything; remembers those that the server answers with other values."""

    def __init__(self, field_manager: str) -> None:
        self._marker = applied_marker(field_manager)
        self._settled: dict[_Id, int] = {}  # of what was sent, and the values that it led to

    def is_settled(self, kind: type[Object], sent: bytes, entry: CacheEntry, subresource: str = "") -> bool:
        """Whether sending this configuration of an object, or of its subresource, would change nothing."""
        found = _differing(kind, sent, entry, subresource)
        if not found:
            return found is not None
        return self._settled.get(_id(kind, entry, subresource)) == _hash(sent, found)

    def answered(
        self, kind: type[Object], sent: bytes, before: CacheEntry, answer: Object, subresource: str = ""
    ) -> None:
        """An apply was answered: values that differ in its answer, as they did before, are what the server makes of it.

        One answer is not enough: an empty map that is applied over null leaves null at first, and replaces it once we
        own the field.
        """
        entry = parse_entry(remembered(answer) or b"{}", self._marker)
        found, identity = _differing(kind, sent, entry, subresource), _id(kind, entry, subresource)
        self._settled.pop(identity, None)
        if found and found == _differing(kind, sent, before, subresource):
            if len(self._settled) >= _MAX_SETTLED:
                del self._settled[next(iter(self._settled))]  # the oldest, whose object may be gone
            self._settled[identity] = _hash(sent, found)


def _id(kind: type[Object], entry: CacheEntry, subresource: str) -> _Id:
    return resource_info(kind).gvk, entry.key, subresource


def _hash(sent: bytes, values: Sequence[JSONValue]) -> int:
    return hash((sent, msgspec.json.encode(values)))


def _differing(kind: type[Object], sent: bytes, entry: CacheEntry, subresource: str) -> list[JSONValue] | None:
    """The values we own that differ from those sent; None when other fields are owned than were sent."""
    version, fields = entry.applied_to(subresource) or ("", b"")
    if version != resource_info(kind).gvk.api_version:
        return None
    try:
        config, owned, live = decode_json(sent), decode_json(fields), decode_json(entry.body)
        if not isinstance(config, dict) or not isinstance(owned, dict):
            return None
        if resource_info(kind).gvk == _SECRET and isinstance(live, dict):
            live["stringData"] = _string_data(config.get("stringData"), live.get("data"))
        comparison = _Comparison("." not in resource_info(kind).gvk.group)
        is_owned = comparison.matches(_ownable(config), owned, live, Shape("model", model=kind))
    except NOT_JSON:  # nested too deeply, for instance
        return None
    return comparison.differing if is_owned else None


def _ownable(config: JSONObject) -> JSONObject:
    """The configuration without the fields that have no owner."""
    content = {name: value for name, value in config.items() if name not in _NOT_OWNED}
    metadata = content.pop("metadata", None)
    if isinstance(metadata, dict):
        content["metadata"] = {name: value for name, value in metadata.items() if name not in _METADATA_NOT_OWNED}
    return content if content.get("metadata") else {name: content[name] for name in content if name != "metadata"}


def _string_data(written: JSONValue, data: JSONValue) -> JSONObject:
    """The values of a Secret that were written as stringData, which the server turns into data."""
    if not isinstance(written, dict) or not isinstance(data, dict):
        return {}
    encoded = {name: b64encode(str(text).encode()).decode() for name, text in written.items()}
    return {name: text if data.get(name) == encoded[name] else None for name, text in written.items()}


class _Comparison:
    """Compares a configuration with the owned fields and the object. `differing` are values that are not as applied."""

    def __init__(self, is_built_in: bool) -> None:
        self._default_keys = _DEFAULT_KEYS if is_built_in else {}
        self.differing: list[JSONValue] = []

    def matches(self, config: JSONValue, owned: JSONObject, live: JSONValue, shape: Shape) -> bool:
        """Whether exactly the fields in `config` are owned."""
        children = {path: node for path, node in owned.items() if path != "."}
        match config:
            case _ if not children:
                return self._matches_leaf(config, live, shape)
            case dict() if all(path.startswith("f:") for path in children):
                return self._matches_fields(config, children, live, shape)
            case list() if all(path.startswith("k:") for path in children):
                return self._matches_items(config, children, live, shape)
            case list() if all(path.startswith("v:") for path in children):
                return self._matches_set(config, children, live)
        return False

    def _matches_leaf(self, config: JSONValue, live: JSONValue, shape: Shape) -> bool:
        if isinstance(config, list) and config and (shape.keys or shape.is_set):
            return False  # it was null
        # A map that was empty is owned like one that is replaced whole.
        is_clear = shape.is_atomic or not (isinstance(config, dict) and config)
        if not is_clear or not _equal(config, live, shape):
            self.differing.append(live)
        return True

    def _matches_fields(self, config: JSONObject, owned: JSONObject, live: JSONValue, shape: Shape) -> bool:
        if not isinstance(live, dict) or any(path[2:] not in config for path in owned):
            return False
        for name, value in config.items():
            field = shape.fields.get(name, shape.item or SCALAR)
            node = owned.get(f"f:{name}")
            if node is None:
                if not self._claims_nothing(value, live.get(name), field):
                    return False
            elif node == {} and name not in live:
                self.differing.append(None)  # built-in kinds drop what is empty
            elif not isinstance(node, dict) or not self.matches(value, node, live.get(name), field):
                return False
        return True

    def _claims_nothing(self, config: JSONValue, live: JSONValue, shape: Shape) -> bool:
        """Whether applying an unowned field claims nothing: empty lists that merge, and structures of them."""
        if isinstance(config, dict) and config:
            return self._matches_fields(config, {}, live if isinstance(live, dict) else {}, shape)
        if not isinstance(live, list):
            self.differing.append(live)
        return config == [] and bool(shape.keys or shape.is_set)

    def _matches_items(self, config: list[JSONValue], owned: JSONObject, live: JSONValue, shape: Shape) -> bool:
        nodes = {path: decode_json(path[2:].encode()) for path in owned}
        names = next(iter(nodes.values()))
        if not isinstance(names, dict) or not isinstance(live, list) or len(config) != len(owned):
            return False
        defaults = {**self._default_keys, **_declared_defaults(shape.item or SCALAR)}
        paths = {_key(key, tuple(names), {}): path for path, key in nodes.items()}
        there = {_key(item, tuple(names), defaults): number for number, item in enumerate(live)}
        keys = [_key(item, tuple(names), defaults) for item in config]
        if len(there) != len(live) or not _in_order(keys, paths, there):
            return False
        for key, item in zip(keys, config, strict=True):
            node = owned[paths[key]]
            if not isinstance(node, dict) or (node and "." not in node):
                return False
            if not self.matches(item, node, live[there[key]], shape.item or SCALAR):
                return False
        return True

    def _matches_set(self, config: list[JSONValue], owned: JSONObject, live: JSONValue) -> bool:
        if not isinstance(live, list) or len(config) != len(owned):
            return False
        values = {_scalar(decode_json(path[2:].encode())) for path in owned}
        there = {_scalar(item): number for number, item in enumerate(live)}
        return len(there) == len(live) and _in_order([_scalar(item) for item in config], values, there)


@cache
def _declared_defaults(item: Shape) -> JSONObject:
    """The scalars that the server fills in where an item leaves them out, by JSON name; in a union, where all do."""
    models = item.members or ((item.model,) if item.model is not None else ())
    first, *others = [_defaults_of(model) for model in models] or [{}]
    return {name: value for name, value in first.items() if all(each.get(name) == value for each in others)}


def _defaults_of(model: type[msgspec.Struct]) -> dict[str, str | int]:
    defaults = {each.encode_name: each.default_factory for each in msgspec.structs.fields(model)}
    return {
        name: default.value
        for name, default in defaults.items()
        if isinstance(default, Default) and isinstance(default.value, str | int)
    }


def _in_order(keys: Sequence[Hashable], owned: Container[Hashable], there: dict[Hashable, int]) -> bool:
    """Whether these are distinct, owned and present, in this order: an apply puts items into its own order."""
    if None in keys or len(set(keys)) != len(keys) or any(key not in owned or key not in there for key in keys):
        return False
    positions = [there[key] for key in keys]
    return positions == sorted(positions)


def _key(item: JSONValue, names: tuple[str, ...], defaults: JSONObject) -> Hashable:
    """The key of an item; None when a part of it is not known."""
    if not isinstance(item, dict) or any(name not in item and name not in defaults for name in names):
        return None
    return tuple(_scalar(item[name] if name in item else defaults[name]) for name in names)


def _scalar(value: JSONValue) -> Hashable:
    return isinstance(value, bool), value if not isinstance(value, dict | list) else msgspec.json.encode(value)


def _equal(one: JSONValue, other: JSONValue, shape: Shape) -> bool:
    """Whether two values mean the same: quantities and times can be written in several ways."""
    if same(one, other):
        return True
    match one, other:
        case dict(), dict():
            return one.keys() == other.keys() and all(
                _equal(value, other[name], shape.fields.get(name, shape.item or SCALAR)) for name, value in one.items()
            )
        case list(), list():
            return len(one) == len(other) and all(
                _equal(value, there, shape.item or SCALAR) for value, there in zip(one, other, strict=True)
            )
    if shape.scalar is None:
        return False
    return _is_same_scalar(one, other, shape.scalar)


def _is_same_scalar(one: JSONValue, other: JSONValue, type_: type[Quantity | datetime]) -> bool:
    try:
        if issubclass(type_, Quantity):
            return Quantity(str(one)) == Quantity(str(other))
        return datetime.fromisoformat(str(one)) == datetime.fromisoformat(str(other))
    except (ValueError, TypeError):
        return False
