"""What one version of an object cannot express, kept in an annotation for the way back.

`kubewright.dev/conversion-data` holds, by version, what an object of that version has and loses by being converted to
the version it is in now: `lost`, next to what it would have there without, `kept`. A value that was changed meanwhile
is no longer as `kept` has it, and is left as it is: what was stashed never overrides a change.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

import msgspec

from kubewright.api.codec import NOT_JSON
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.origin import merged_value, same
from kubewright.api.rebase import MergeClash, rebased
from kubewright.api.shape import SCALAR, Shape

ANNOTATION = "kubewright.dev/conversion-data"
HEAD = ("apiVersion", "kind", "metadata")
"""The fields of an object that are never stashed."""
MAX_ANNOTATIONS_SIZE = 256 * 1024
"""Bytes of all annotations of an object, names and values, that an API server takes."""

_Value: TypeAlias = JSONValue | msgspec.UnsetType  # UNSET: there is none, which in a nullable field is not null


class BrokenStash(KubernetesError):
    """The annotation does not hold what was written to it; the message says what is wrong."""


class Stash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a version lost. Where both have an object, it is cut down to what differs."""

    lost: dict[str, JSONValue] = {}
    kept: dict[str, JSONValue] = {}
    omitted: int = 0
    """The bytes it would have had, when there was no room for it in the annotations."""


Stashes: TypeAlias = dict[str, Stash]

_stashes = msgspec.json.Decoder(Stashes)
# Sorted, so that the same object always gives the same annotation.
_sorted = msgspec.json.Encoder(order="sorted")


def read_stashes(text: str) -> Stashes:
    """The stashes of an annotation, by version. Raises `BrokenStash`."""
    try:
        stashes = _stashes.decode(text)
    except NOT_JSON as error:
        raise BrokenStash(str(error)) from None
    for stash in stashes.values():
        for name in HEAD:
            if name in stash.lost or name in stash.kept:
                raise BrokenStash(f"it has {name}, which is never stashed")
    return stashes


def write_stashes(stashes: Stashes) -> str:
    """The annotation for some stashes."""
    shown = {version: _fields(each) for version, each in stashes.items()}
    return _sorted.encode(shown).decode()


def _fields(stash: Stash) -> dict[str, object]:
    return {"omitted": stash.omitted} if stash.omitted else {"lost": stash.lost, "kept": stash.kept}


def stashed(kept: JSONObject, lost: JSONObject) -> Stash | None:
    """What it takes to make `lost` of `kept`; None when they are equal."""
    less, more = _difference(kept, lost)
    return Stash(lost=more, kept=less) if less or more else None


def _difference(kept: JSONObject, lost: JSONObject) -> tuple[JSONObject, JSONObject]:
    less: JSONObject = {}
    more: JSONObject = {}
    for name in kept | lost:
        if name not in lost:
            less[name] = kept[name]
        elif name not in kept:
            more[name] = lost[name]
        elif not same(kept[name], lost[name]):
            one, other = kept[name], lost[name]
            if isinstance(one, dict) and isinstance(other, dict):
                one, other = _difference(one, other)
            less[name], more[name] = one, other
    return less, more


class Restoration:
    """The content of an object with what a stash has of it.

    Items of a list that was changed meanwhile are restored one by one: by the keys of the type, and where there are
    none by equality and position. The lists of which this may have lost something are in `guessed`.
    """

    def __init__(self, content: JSONObject, stash: Stash, shape: Shape) -> None:
        self.guessed: list[str] = []
        self.content = self._fields(content, stash.kept, stash.lost, shape, "")

    def _fields(self, now: JSONObject, kept: JSONObject, lost: JSONObject, shape: Shape, path: str) -> JSONObject:
        result = dict(now)
        for name in kept | lost:
            if shape.excludes(now, name):
                continue  # a union that is another member now
            inner = shape.fields.get(name, shape.item or SCALAR)
            absent = msgspec.UNSET
            values = now.get(name, absent), kept.get(name, absent), lost.get(name, absent)
            value = self._value(*values, inner, f"{path}.{name}" if path else name)
            if isinstance(value, msgspec.UnsetType):
                result.pop(name, None)
            else:
                result[name] = value
        return result

    def _value(self, now: _Value, kept: _Value, lost: _Value, shape: Shape, path: str) -> _Value:
        if isinstance(kept, dict) and isinstance(lost, dict):
            return self._fields(now, kept, lost, shape, path) if isinstance(now, dict) else now
        if isinstance(now, msgspec.UnsetType) or isinstance(kept, msgspec.UnsetType):
            return lost if now is kept else now
        if same(now, kept):
            return lost
        if isinstance(now, list) and isinstance(kept, list) and isinstance(lost, list):
            return self._items(now, kept, lost, shape, path)
        return now

    def _items(
        self, now: list[JSONValue], kept: list[JSONValue], lost: list[JSONValue], shape: Shape, path: str
    ) -> JSONValue:
        try:
            return _rebased_list(now, kept, lost, shape)
        except MergeClash:
            if not now and len(kept) == len(lost):
                return now
            self.guessed.append(path)
        if len(kept) != len(lost) and all(any(same(each, other) for other in lost) for each in kept):
            # The items are as they were, but there are fewer: those that are not shown stay where they are.
            with suppress(MergeClash):
                return _rebased_list(now, kept, lost, Shape("list", item=shape.item, is_set=True))
        return merged_value(lost, kept, now, shape)


def _rebased_list(now: list[JSONValue], kept: list[JSONValue], lost: list[JSONValue], shape: Shape) -> JSONValue:
    return rebased({"": kept}, {"": now}, {"": lost}, Shape("map", item=shape)).get("", [])
