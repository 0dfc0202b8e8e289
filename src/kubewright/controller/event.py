"""An event: an object was added, updated or deleted. Predicates filter it, handlers map it to keys."""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, TypeVar

from kubewright.api.codec import decode
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache.entry import CacheEntry
from kubewright.cache.write_origin import WriteOrigin

T_co = TypeVar("T_co", bound=Object, covariant=True)
Verb: TypeAlias = Literal["added", "updated", "deleted"]


class Event(Generic[T_co]):
    """The entry before and the entry after; one of them may be None. Objects are decoded when they are read."""

    __slots__ = ("_new_object", "_old_object", "initial", "kind", "new", "old", "write_origin")

    def __init__(
        self,
        kind: type[T_co],
        old: CacheEntry | None,
        new: CacheEntry | None,
        initial: bool,
        write_origin: WriteOrigin | None,
    ) -> None:
        self.kind = kind
        self.old = old
        self.new = new
        self.initial = initial
        """True for an object that existed when the watch began."""
        self.write_origin = write_origin
        """The write of this program that it seems to come from; None when it is another program's, as far as known."""
        self._old_object: T_co | None = None
        self._new_object: T_co | None = None

    @property
    def own(self) -> bool:
        """True when it is known to be the echo of a write of this program."""
        return self.write_origin is not None and self.write_origin.made(self.old, self.new)

    @property
    def verb(self) -> Verb:
        """What happened."""
        if self.new is None:
            return "deleted"
        return "added" if self.old is None else "updated"

    @property
    def entry(self) -> CacheEntry:
        """The newest known state of the object."""
        entry = self.new if self.new is not None else self.old
        if entry is None:
            raise ValueError("an event is about an object")
        return entry

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return self.entry.key

    @property
    def old_object(self) -> T_co | None:
        """The object before. Raises `DecodeError` when it does not fit its type."""
        if self._old_object is None and self.old is not None:
            self._old_object = decode(self.kind, self.old.body)
        return self._old_object

    @property
    def new_object(self) -> T_co | None:
        """The object after. Raises `DecodeError` when it does not fit its type."""
        if self._new_object is None and self.new is not None:
            self._new_object = decode(self.kind, self.new.body)
        return self._new_object

    def __repr__(self) -> str:
        return f"<Event {self.kind.__name__} {self.key} {self.verb}>"
