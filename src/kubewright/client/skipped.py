"""Objects that are left out because they cannot be decoded: one of them must not make all others unreadable.

Lists leave them out; reading such an object by its name raises the `DecodeError`. They are counted each time, and each
of them is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Raw

from kubewright.api.codec import decode
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object

T = TypeVar("T", bound=Object)

_MAX_NAMED = 1000
"""How many objects are remembered as logged, the newest of them."""

_log = logging.getLogger("kubewright.client")


class Skipped:
    """The objects that one client has left out."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._named: dict[tuple[str, ObjectKey | None], None] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """How often objects were left out, by kind."""
        return self._counts

    def note(self, error: DecodeError) -> bool:
        """The object that `error` is about is left out. Returns whether that is new, and was logged."""
        self._counts[error.kind] = self._counts.get(error.kind, 0) + 1
        named = (error.kind, error.key)
        if named in self._named:
            return False
        if len(self._named) >= _MAX_NAMED:
            del self._named[next(iter(self._named))]
        self._named[named] = None
        _log.warning("%s; lists leave it out, and reading it fails", error)
        return True

    def decoded(self, kind: type[T], raws: Iterable[bytes | Raw]) -> list[T]:
        """The objects of which these are the JSON, without those that cannot be decoded."""
        objects: list[T] = []
        for raw in raws:
            try:
                objects.append(decode(kind, raw))
            except DecodeError as error:
                self.note(error)
        return objects
