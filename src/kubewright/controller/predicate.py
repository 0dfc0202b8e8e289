"""Predicates: which events are worth a look.

    controller(manager, Widget, where=generation_changed | annotations_changed)

    @predicate
    def became_ready(old: Pod | None, new: Pod | None) -> bool: ...

    image_changed = changed(lambda entry: ...)

A predicate that compares is one line: `changed(property)` holds when the property differs between before and after, and
always for objects that appear or go. They combine with `&`, `|` and `~`. They keep events from the queue, not objects
from the cache: for that, give the watch a selector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from kubewright.api.resource import Object
from kubewright.cache.entry import Entry
from kubewright.cache.selection import matcher
from kubewright.client.selectors import Labels
from kubewright.controller.event import Event

# `Pod | None`, for instance. A type variable for Pod alone is more than mypy infers from a function's parameters.
MaybeObject = TypeVar("MaybeObject")


class Predicate:
    """A test of events, with words for it."""

    __slots__ = ("_test", "words")

    def __init__(self, words: str, test: Callable[[Event[Object]], bool]) -> None:
        self.words = words
        self._test = test

    def __call__(self, event: Event[Object]) -> bool:
        """Whether the event is worth a look."""
        return self._test(event)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(f"({self.words} and {other.words})", lambda event: self(event) and other(event))

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(f"({self.words} or {other.words})", lambda event: self(event) or other(event))

    def __invert__(self) -> Predicate:
        return Predicate(f"not {self.words}", lambda event: not self(event))

    def __repr__(self) -> str:
        return f"Predicate({self.words})"


def predicate(function: Callable[[MaybeObject, MaybeObject], bool]) -> Predicate:
    """A predicate of the objects before and after. Both are decoded for each event: prefer `changed` where it does."""

    def test(event: Event[Object]) -> bool:
        return function(cast(MaybeObject, event.old_object), cast(MaybeObject, event.new_object))

    return Predicate(getattr(function, "__name__", "function"), test)


def changed(property_: Callable[[Entry], object], words: str = "changed") -> Predicate:
    """That something about an object is not as it was; true for objects that appear or go."""

    def test(event: Event[Object]) -> bool:
        return event.old is None or event.new is None or property_(event.old) != property_(event.new)

    return Predicate(words, test)


# Kinds without a generation, such as ConfigMap, have nothing but their revision to tell a change by.
generation_changed = changed(lambda entry: entry.generation or entry.revision, "generation changed")
"""Leaves out changes of status and metadata alone."""

resource_version_changed = changed(lambda entry: entry.revision, "resourceVersion changed")
labels_changed = changed(lambda entry: entry.labels, "labels changed")
annotations_changed = changed(lambda entry: entry.header.annotations, "annotations changed")
finalizers_changed = changed(lambda entry: entry.header.finalizers, "finalizers changed")


def has_labels(labels: Labels) -> Predicate:
    """That a label selector matches the object before or after: one that leaves the selection is still looked at."""
    matches = matcher(labels) or (lambda entry: True)
    return Predicate(f"labels {labels}", lambda event: _any(event, matches))


def in_namespaces(*namespaces: str) -> Predicate:
    """That the object is in one of these namespaces."""
    return Predicate(f"in {', '.join(namespaces)}", lambda event: event.entry.namespace in namespaces)


foreign_write = Predicate("not an own write", lambda event: not event.own)
"""Leaves out the echoes of this program's own writes, as far as they are known as such.

Use it only where a pass does all it has to: level-triggered code may depend on the second look.
"""


def _any(event: Event[Object], matches: Callable[[Entry], bool]) -> bool:
    return (event.new is not None and matches(event.new)) or (event.old is not None and matches(event.old))
