"""Secondary indexes: from a value to the objects that have it.

An index is a function from an entry to the values it is found under. `field_values` makes one from the path of a
field, decoding only the fields on that path.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import msgspec

from kubewright.api.field_path import FieldPath
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.resources import Object
from kubewright.cache.entry import CacheEntry
from kubewright.client.skipped import Skipped

T = TypeVar("T", bound=Object)
Values: TypeAlias = Callable[[CacheEntry], Iterable[str]]

_log = logging.getLogger(__name__)

_NOTHING: Mapping[ObjectKey, CacheEntry] = {}

_NAMED_OTHERWISE: Mapping[tuple[GroupVersionKind, str], tuple[str, str]] = {
    (GroupVersionKind("", "v1", "Node"), "spec.unschedulable"): ("spec.unschedulable", "false"),
    (GroupVersionKind("", "v1", "Pod"), "spec.hostNetwork"): ("spec.hostNetwork", "false"),
    (GroupVersionKind("", "v1", "Pod"), "spec.host"): ("spec.nodeName", ""),
    (GroupVersionKind("batch", "v1", "Job"), "status.successful"): ("status.succeeded", "0"),
}
"""Fields that the server selects by under another path than they have, or with another text when they are absent."""


class Index:
    """One index. It remembers under which values it put an entry, so an impure function cannot leave any behind."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._entries: dict[str, dict[ObjectKey, CacheEntry]] = {}
        self._under: dict[ObjectKey, tuple[str, ...]] = {}

    def values(self, entry: CacheEntry) -> tuple[str, ...]:
        """What an entry is found under; nothing when the function fails for it."""
        try:
            return tuple(dict.fromkeys(self._values(entry)))
        except Exception:
            # One object that the function fails for must not stop the watch.
            _log.exception("an index function failed for %s", entry.key)
            return ()

    def put(self, entry: CacheEntry) -> None:
        """Find the entry under its values, and no longer under those of its predecessor."""
        key, values = entry.key, self.values(entry)
        before = self._under.get(key, ())
        for value in before:
            if value not in values:
                self._leave(value, key)
        for value in values:
            self._entries.setdefault(value, {})[key] = entry
        if values:
            self._under[key] = values
        elif before:
            del self._under[key]

    def remove(self, key: ObjectKey) -> None:
        """Find the entry no longer."""
        for value in self._under.pop(key, ()):
            self._leave(value, key)

    def find(self, value: str) -> Mapping[ObjectKey, CacheEntry]:
        """The entries found under a value."""
        return self._entries.get(value, _NOTHING)

    def _leave(self, value: str, key: ObjectKey) -> None:
        entries = self._entries[value]
        entries.pop(key, None)
        if not entries:
            del self._entries[value]


def object_values(kind: type[T], function: Callable[[T], Iterable[str]], skipped: Skipped) -> Values:
    """The values that a function gives for the decoded object; none for one that cannot be decoded."""
    return lambda entry: [value for obj in skipped.decoded(kind, (entry.body,)) for value in function(obj)]


def field_values(path: str, gvk: GroupVersionKind | None = None) -> Values:
    """The value of the field at a path such as `spec.nodeName`, as field selectors write it; the absent field is ""."""
    read = field_reader(path, gvk)
    return lambda entry: (read(entry),)


def field_reader(path: str, gvk: GroupVersionKind | None = None) -> Callable[[CacheEntry], str]:
    """Reads one field as text, the way the server selects by it if the kind is known."""
    if gvk is not None and (named := _NAMED_OTHERWISE.get((gvk, path.removeprefix(".")))) is not None:
        own_path, absent = named
        read_own = field_reader(own_path)
        return lambda entry: read_own(entry) or absent
    steps = FieldPath(path).names
    if steps == ("metadata", "name"):
        return lambda entry: entry.name
    if steps == ("metadata", "namespace"):
        return lambda entry: entry.namespace
    decoder = msgspec.json.Decoder(_way(steps))

    def read(entry: CacheEntry) -> str:
        try:
            value: object = decoder.decode(entry.body)
        except (msgspec.ValidationError, RecursionError):
            return ""  # something on the path is not an object, or something beside it is nested too deeply
        for _ in steps:
            if value is None:
                return ""
            value = value.step  # type: ignore[attr-defined]  # made by _way
        return _as_text(value)

    return read


def _way(steps: Sequence[str]) -> type[msgspec.Struct]:
    """A structure with only the fields on the path, which is all that is then decoded."""
    inner: object = object
    for step in reversed(steps):
        inner = msgspec.defstruct(
            "Way",
            [("step", inner | None if isinstance(inner, type) and inner is not object else inner, None)],
            rename={"step": step},
        )
    if not isinstance(inner, type):
        raise TypeError("a path has at least one step")
    return inner


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)
