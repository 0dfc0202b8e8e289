"""One conversion, between a hub and a spoke: content by the methods of the spoke, and all else by the framework.

Guarantees: metadata is as it was, but for labels and annotations. What the other version cannot express, fields that
the type does not know included, is stashed in an annotation, and what it could not express earlier is taken from it. An
object of which something would be lost is not converted for being stored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, cast

from kubewright.api.codec import decode, decode_model, encode, to_json
from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.shape import SCALAR, Shape
from kubewright.manager.log import summary
from kubewright.webhook.stash import (
    ANNOTATION,
    HEAD,
    MAX_ANNOTATIONS_SIZE,
    BrokenStash,
    Restoration,
    Stash,
    Stashes,
    read_stashes,
    stashed,
    write_stashes,
)

_CONVERTED = ("labels", "annotations")

_log = logging.getLogger(__name__)


class ConversionError(KubernetesError):
    """An object cannot be converted; the message names it and says why. What a converter raised is its cause."""


class Converter(NamedTuple):
    """A method of a spoke: `PodManagerV1Beta1.from_hub`."""

    source: type[Object]
    target: type[Object]
    function: Callable[[Object], object]
    name: str

    def __call__(self, obj: Object) -> Object:
        """The object that the method returns. Raises `ConversionError`."""
        try:
            made = self.function(obj)
        except Exception as error:
            raise ConversionError(f"{self.name} failed: {summary(error)}") from error
        if type(made) is not self.target:
            raise ConversionError(f"{self.name} returned {made!r}: expected an object of {self.target.__name__}")
        return made


class ConversionStep(NamedTuple):
    """A conversion; `back` is the opposite one, which shows what is lost."""

    forth: Converter
    back: Converter
    is_stored: bool
    """Whether the result is for being stored, in the version of the hub."""

    def convert(self, obj: JSONObject) -> JSONObject:
        """The object in the other version. Raises `ConversionError`."""
        try:
            return self._converted(obj)
        except DecodeError as error:
            raise ConversionError(f"{described(obj)} cannot be read: {error}") from None
        except ConversionError as error:
            raise ConversionError(f"{described(obj)}: {error}") from error.__cause__

    def _converted(self, obj: JSONObject) -> JSONObject:
        metadata, carried = _taken(_mapping(obj.get("metadata")))
        given = self._given({**obj, "metadata": metadata})
        before = _everything(given, obj)
        made = self.forth(given)
        metadata = _converted_metadata(metadata, made.metadata, self.forth.name)
        result: JSONObject = {**_names(self.forth.target), "metadata": metadata, **_content(made)}
        if self.is_stored:
            made = self._fitting(result)
        stashes = self._stashes(carried, obj)
        stash = stashes.pop(_version(self.forth.target), None) if stashes is not None else None
        restored = self._restored(result, stash, obj) if stash is not None else None
        result, back = restored or (result, self.back(made))
        if stash is not None and restored is None and stashes is not None:
            stashes[_version(self.forth.target)] = stash  # which has the next write refused
        lost = stashed(_content(back), before)
        annotation = carried if stashes is None else self._annotation(stashes, lost, metadata)
        if annotation:
            annotations = _mapping(metadata.get("annotations"))
            result["metadata"] = {**metadata, "annotations": {**annotations, ANNOTATION: annotation}}
        return result

    def _given(self, obj: JSONObject) -> Object:
        try:
            return decode(self.forth.source, encode(obj))
        except DecodeError as error:
            # Rarely needed. Objects that are stored were validated by the schema, which requires what the type does.
            from kubewright.webhook.partial_objects import completed

            with suppress(DecodeError):
                return decode(self.forth.source, encode(completed(obj, self.forth.source)))
            raise error from None

    def _fitting(self, result: JSONObject) -> Object:
        try:
            return decode(self.forth.target, encode(result))
        except DecodeError as error:
            raise ConversionError(f"what {self.forth.name} returned is not valid: {error}") from None

    def _stashes(self, carried: str, obj: JSONObject) -> Stashes | None:
        """What the annotation has; None when it is broken, and has to stay as it is."""
        try:
            stashes = read_stashes(carried) if carried else {}
        except BrokenStash as error:
            self._refuse_stash(str(error), obj)
            return None
        if self.is_stored and (source := _version(self.forth.source)) in stashes:
            self._refuse_stash(f"it has a part of {source} itself, which was not valid when the object was read", obj)
        return stashes

    def _restored(self, result: JSONObject, stash: Stash, obj: JSONObject) -> tuple[JSONObject, Object] | None:
        """The object with what it could not express in the other version, there and back; None if that does not fit."""
        if stash.omitted:
            self._refuse_stash(f"there was no room for {stash.omitted} bytes in the annotations", obj)
            return None
        restoration = Restoration(_without_head(result), stash, _shape(self.forth.target))
        restored = {**{name: result[name] for name in HEAD}, **restoration.content}
        try:
            back = self.back(decode(self.forth.target, encode(restored)))
        except (DecodeError, ConversionError) as error:
            if self.is_stored and isinstance(error, ConversionError):
                raise
            self._refuse_stash(str(error), obj)
            return None
        for path in restoration.guessed:
            _log.warning(
                "the list %s was changed in %s, and has in %s what that cannot express: its items were found by "
                "equality and position",
                path,
                _version(self.forth.source),
                _version(self.forth.target),
                extra={"object": described(obj)},
            )
        return restored, back

    def _refuse_stash(self, reason: str, obj: JSONObject) -> None:
        """Nothing is stored without what was stashed; but an object that is read shows what there is."""
        source, target = _version(self.forth.source), _version(self.forth.target)
        if self.is_stored:
            raise ConversionError(
                f"its annotation {ANNOTATION}, with what {target} has and {source} cannot express, cannot be used: "
                f"{reason}; change the object in {target}, or remove the annotation to do without"
            )
        _log.warning(
            "the annotation %s cannot be used, so that the object lacks in %s what %s cannot express: %s",
            ANNOTATION,
            target,
            source,
            reason,
            extra={"object": described(obj)},
        )

    def _annotation(self, stashes: Stashes, lost: Stash | None, metadata: JSONObject) -> str:
        """The annotation for what the result cannot express, and what other versions could not; empty for none."""
        version = _version(self.forth.source)
        stashes.pop(version, None)
        if lost is not None:
            stashes[version] = lost
        if not stashes:
            return ""
        text = write_stashes(stashes)
        others = _mapping(metadata.get("annotations")).items()
        size = sum(len(name.encode()) + len(str(value).encode()) for name, value in others)
        if lost is None or size + len(ANNOTATION) + len(text.encode()) <= MAX_ANNOTATIONS_SIZE:
            return text
        if self.is_stored:
            raise ConversionError(
                f"{_version(self.forth.target)} cannot express {len(text)} bytes of it, and there is no room for them "
                f"in its annotations, which may have {MAX_ANNOTATIONS_SIZE} bytes in total"
            )
        stashes[version] = Stash(omitted=len(text))
        return write_stashes(stashes)


def described(obj: JSONObject) -> str:
    """An object for messages: `PodManager shop/web`."""
    metadata = _mapping(obj.get("metadata"))
    key = ObjectKey(
        str(metadata.get("namespace") or ""), str(metadata.get("name") or metadata.get("generateName") or "")
    )
    return f"{obj.get('kind')} {key}"


def _names(cls: type[Object]) -> JSONObject:
    gvk = resource_info(cls).gvk
    return {"apiVersion": gvk.api_version, "kind": gvk.kind}


def _version(cls: type[Object]) -> str:
    return resource_info(cls).gvk.version


def _shape(cls: type[Object]) -> Shape:
    return Shape("model", model=cls)


def _mapping(value: JSONValue) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _without_head(obj: JSONObject) -> JSONObject:
    return {name: value for name, value in obj.items() if name not in HEAD}


def _content(obj: Object) -> JSONObject:
    """All but its names and its metadata."""
    return _without_head(_mapping(to_json(obj)))


def _taken(metadata: JSONObject) -> tuple[JSONObject, str]:
    """The metadata without our annotation, and the annotation: converters do not see it."""
    annotations = _mapping(metadata.get("annotations"))
    if ANNOTATION not in annotations:
        return metadata, ""
    others: JSONObject = {name: value for name, value in annotations.items() if name != ANNOTATION}
    rest = {**metadata, "annotations": others}
    if not others:
        del rest["annotations"]
    return rest, str(annotations[ANNOTATION])


def _converted_metadata(metadata: JSONObject, made: ObjectMeta, converter: str) -> JSONObject:
    """The metadata as it was; if the converter returned some, with the labels and annotations of that."""
    if made == ObjectMeta():
        return metadata
    given = decode_model(ObjectMeta, encode(metadata))
    for name in ObjectMeta.__struct_fields__:
        if name not in _CONVERTED and getattr(made, name) != getattr(given, name):
            raise ConversionError(
                f"{converter} returned an object with another metadata.{name}: only labels and annotations may be "
                "converted; leave out metadata= to keep all as it is"
            )
    rest = {name: value for name, value in metadata.items() if name not in _CONVERTED}
    changed = cast(JSONObject, {"labels": made.labels, "annotations": made.annotations})
    return rest | {name: value for name, value in changed.items() if value}


def _everything(given: Object, obj: JSONObject) -> JSONObject:
    """The content of an object as its type reads it, with the fields that the type does not know."""
    return _mapping(_with_unknown(_content(given), _without_head(obj), _shape(type(given))))


def _with_unknown(known: JSONValue, raw: JSONValue, shape: Shape) -> JSONValue:
    if isinstance(known, dict) and isinstance(raw, dict):
        fields = shape.fields
        result = {
            name: _with_unknown(value, raw[name], fields.get(name, shape.item or SCALAR)) if name in raw else value
            for name, value in known.items()
        }
        if shape.form == "model":
            result |= {name: value for name, value in raw.items() if name not in known and name not in fields}
        return result
    if isinstance(known, list) and isinstance(raw, list) and len(known) == len(raw):
        return [_with_unknown(one, other, shape.item or SCALAR) for one, other in zip(known, raw, strict=True)]
    return known
