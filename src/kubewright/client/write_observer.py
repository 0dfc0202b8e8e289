"""Observing the writes of a client: an observer is notified of each one that the server has carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from kubewright.api.resources import Object, ResourceInfo
    from kubewright.client.endpoint import Endpoint
    from kubewright.client.http.transport import Response

DeletionEnd: TypeAlias = "Callable[[Response | None], None]"
"""Called once when a deletion has ended: with its response, or with None when it failed."""


class WriteObserver(Protocol):
    """Notified synchronously, in the task that wrote, before the caller gets the response. Dry runs are no writes."""

    def needs_whole(self, info: ResourceInfo) -> bool:
        """Whether a patch of metadata alone is to be answered with the whole object all the same."""

    def updating(self, endpoint: Endpoint, obj: Object) -> None:
        """An object is about to be replaced by `obj`. Raises ValueError when that has only a part of it."""

    def written(
        self, method: str, endpoint: Endpoint, sent: bytes, response: Response, obj: Object | None, base: str | None
    ) -> None:
        """A write succeeded; `obj` is the resulting object, None when it was not decoded.

        `base` is the resourceVersion in what was sent, empty for none; None when it is not known.
        """

    def deleting(self, endpoint: Endpoint) -> DeletionEnd:
        """A deletion is about to be sent. Without a name in `endpoint` it is of a collection."""
