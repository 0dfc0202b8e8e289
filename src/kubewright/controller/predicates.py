"""Predicates: which events lead to a reconcile.

    controller_for(manager, Widget, where=generation_changed | annotations_changed)

    @predicate
    def became_ready(old: Pod | None, new: Pod | None) -> bool: ...

    image_changed = changed(lambda entry: ...)

A predicate that compares is one line: `changed(property)` holds when the property differs between before and after, and
always for objects that appear or go. They combine with `&`, `|` and `~`. They keep events from the queue, not objects
from the cache: for that, give the watch a selector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec
from msgspec.json import encode

from kubewright.api.codec import NOT_JSON
from kubewright.api.errors import refusing
from kubewright.api.resources import Object
from kubewright.api.selectors import Labels
from kubewright.api.shallow import members
from kubewright.cache.entry import CacheEntry
from kubewright.cache.selection import matcher
from kubewright.controller.arguments import check_function
from kubewright.controller.event import Event

# `Pod | None`, for instance. A type variable for Pod alone is more than mypy infers from a function's parameters.
MaybeObject = TypeVar("MaybeObject")


class Predicate:
    """A test of events, with a description for log lines."""

    __slots__ = ("_test", "description")

    def __init__(self, description: str, test: Callable[[Event[Object]], bool]) -> None:
        check_function(test, "the test of a Predicate", "event")
        self.description = description
        self._test = test

    def __call__(self, event: Event[Object]) -> bool:
        """Whether the event leads to a reconcile."""
        return self._test(event)

    def __and__(self, other: Predicate) -> Predicate:
        _check(other)
        return Predicate(f"({self.description} and {other.description})", lambda event: self(event) and other(event))

    def __or__(self, other: Predicate) -> Predicate:
        _check(other)
        return Predicate(f"({self.description} or {other.description})", lambda event: self(event) or other(event))

    def __invert__(self) -> Predicate:
        return Predicate(f"not {self.description}", lambda event: not self(event))

    if not TYPE_CHECKING:
        __bool__ = refusing("predicates are combined with &, | and ~, not with and, or and not")

    def __repr__(self) -> str:
        return f"Predicate({self.description})"


def checked_predicate(where: Predicate | None) -> Predicate | None:
    """What was given as `where`. Raises TypeError saying how a function becomes a predicate."""
    return where if where is None else _check(where)


def _check(where: object) -> Predicate:
    if not isinstance(where, Predicate):
        raise TypeError(
            f"{where!r} is not a predicate: mark a function of the object before and the object after with @predicate, "
            "or give one such as generation_changed"
        )
    return where


def predicate(function: Callable[[MaybeObject, MaybeObject], bool]) -> Predicate:
    """A predicate of the objects before and after. Both are decoded for each event: prefer `changed` where it does."""
    check_function(function, "a predicate", "old", "new")

    def test(event: Event[Object]) -> bool:
        return function(cast(MaybeObject, event.old_object), cast(MaybeObject, event.new_object))

    return Predicate(getattr(function, "__name__", "function"), test)


def changed(property_: Callable[[CacheEntry], object], description: str = "changed") -> Predicate:
    """That something about an object is not as it was; true for objects that appear or go."""
    check_function(property_, "a property", "entry")

    def test(event: Event[Object]) -> bool:
        return event.old is None or event.new is None or property_(event.old) != property_(event.new)

    return Predicate(description, test)


# Kinds without a generation, such as ConfigMap, have nothing but their revision to see a change by.
generation_changed = changed(lambda entry: entry.generation or entry.revision, "generation changed")
"""Leaves out changes of status and metadata alone."""

resource_version_changed = changed(lambda entry: entry.revision, "resourceVersion changed")
"""Leaves out nothing that changes: with it, a controller's own kind is watched with its status."""

labels_changed = changed(lambda entry: entry.labels, "labels changed")
annotations_changed = changed(lambda entry: entry.header.annotations, "annotations changed")
finalizers_changed = changed(lambda entry: entry.header.finalizers, "finalizers changed")


class _Status(msgspec.Struct, gc=False):
    status: msgspec.Raw = msgspec.Raw(b"")


_LAST_STATUS = b',"status":{'
_status = msgspec.json.Decoder(_Status)
_value = msgspec.json.Decoder(msgspec.Raw)


def _at_any_revision(entry: CacheEntry, generation: int) -> bytes:
    """The JSON of an object without its revision and with that generation: cut out, not decoded.

    Kinds without a status subresource count changes of their status as generations. Wherever another revision or
    generation is cut out, because the JSON is not as servers send it, the rest is not equal to that of any other state.
    """
    body = entry.body.replace(b'"resourceVersion":"%d"' % entry.revision, b"", 1)
    if entry.generation != generation:
        body = body.replace(b'"generation":%d' % entry.generation, b'"generation":%d' % generation, 1)
    return body


def _without_status(body: bytes) -> bytes:
    start = body.rfind(_LAST_STATUS)
    if start < 0:
        return _rebuilt_without_status(body) if b'"status":' in body else body
    try:
        # Behind a key of the object itself, and there alone, one value and the closing bracket make up the rest.
        _value.decode(body[start + len(_LAST_STATUS) - 1 : -1])
    except NOT_JSON:
        return _rebuilt_without_status(body)
    return body[:start] + b"}"


def _rebuilt_without_status(body: bytes) -> bytes:
    """For objects with fields that come after the status, or with the like of it within."""
    try:
        status = bytes(_status.decode(body).status)
    except NOT_JSON:  # nested too deeply to be decoded
        status = members(body).get("status", b"")
    if not status:
        return body
    last = b',"status":%b}' % status
    if body.endswith(last):
        return body[: -len(last)] + b"}"
    others = (b"%b:%b" % (encode(name), value) for name, value in members(body).items() if name != "status")
    return b"{%b}" % b",".join(others)


def _is_more_than_status(event: Event[Object]) -> bool:
    old, new = event.old, event.new
    if old is None or new is None:
        return True
    if old.label_values != new.label_values or old.label_names != new.label_names:
        return True
    was, now = _at_any_revision(old, new.generation), _without_status(_at_any_revision(new, new.generation))
    # It mostly had no status before, and to see that takes longer than to compare the two.
    return was != now and _without_status(was) != now


beyond_status = Predicate("more than the status changed", _is_more_than_status)
"""Leaves out changes of the status alone; those of spec, labels, annotations, finalizers, deletionTimestamp and any
other field are left in. This is how a controller watches its own kind by default."""


def has_labels(labels: Labels) -> Predicate:
    """That a label selector matches the object before or after: one that leaves it is reconciled once more."""
    matches = matcher(labels) or (lambda entry: True)
    return Predicate(f"labels {labels}", lambda event: _any(event, matches))


def in_namespaces(*namespaces: str) -> Predicate:
    """That the object is in one of these namespaces."""
    return Predicate(f"in {', '.join(namespaces)}", lambda event: event.entry.namespace in namespaces)


foreign_write = Predicate("not an own write", lambda event: not event.own)
"""Leaves out the echoes of this program's own writes, as far as they are known as such.

Use it only where one reconcile does everything: level-triggered code may depend on the next one.
"""


def _any(event: Event[Object], matches: Callable[[CacheEntry], bool]) -> bool:
    return (event.new is not None and matches(event.new)) or (event.old is not None and matches(event.old))
