"""Puts the responses to the program's writes into the overlays of the watches they affect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from kubewright.api.codec import NOT_JSON, origin
from kubewright.api.header import Header
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object, ResourceInfo
from kubewright.cache.entry import revision_of
from kubewright.cache.informer import Informer
from kubewright.cache.overlay import Removal
from kubewright.cache.write_context import write_count
from kubewright.cache.write_origin import WriteOrigin, base_of, origin_of
from kubewright.client.endpoint import Endpoint
from kubewright.client.http.transport import Response
from kubewright.client.write_observer import DeletionEnd

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_MAX_ANSWERED = 10_000


class _Informers(Protocol):
    """The part of `Cache` that writes need."""

    def informers(self, gvk: GroupVersionKind) -> Sequence[Informer]: ...


class OwnWrites:
    """The `WriteObserver` of a program: counts its writes and makes them visible to the next read.

    A write that changed nothing does not count, as far as that is known: it was sent with the revision that it is
    answered with, or an earlier write was answered with the same.
    """

    def __init__(self, cache: _Informers) -> None:
        self._cache = cache
        self._answered: dict[str, str] = {}  # the last revision, by uid, for writes that were sent without one

    def needs_whole(self, info: ResourceInfo) -> bool:
        """See `WriteObserver`: the response is laid over whole objects where they are watched."""
        return not all(informer.scope.metadata_only for informer in self._cache.informers(info.gvk))

    def updating(self, endpoint: Endpoint, obj: Object) -> None:
        """See `WriteObserver`: what a transform has dropped would be removed from the server."""
        key = ObjectKey(endpoint.namespace, endpoint.name)
        for informer in self._cache.informers(endpoint.info.gvk):
            entry = informer.find(key) if informer.scope.transform is not None else None
            # One of an earlier revision than the cache has is refused by the server.
            if entry is not None and entry.body == origin(obj):
                raise ValueError(
                    f"{obj.kind} {obj.key} was read from a watch with a transform, and an update would remove what "
                    'that dropped: use patch(obj), or read it with consistency="live"'
                )

    def written(
        self, method: str, endpoint: Endpoint, sent: bytes, response: Response, obj: Object | None, base: str | None
    ) -> None:
        """See `WriteObserver`."""
        is_created = method == "POST" or response.status == 201
        informers = self._cache.informers(endpoint.info.gvk)
        answer = obj or (_read(response) if informers or not is_created else None)
        if base is None and not is_created:
            base = base_of(sent)
        count = write_count.get()
        count.sent += 1
        if is_created or answer is None or self._is_change(base, answer.metadata):
            count.value += 1
        if informers and answer is not None:
            revision = answer.metadata.resource_version
            origin = origin_of(method, sent, base, revision=revision, is_created=is_created)
            _note_write(informers, endpoint, answer, response.body, origin)

    def _is_change(self, base: str | None, answered: Header | ObjectMeta) -> bool:
        """Whether a write changed the object, as far as its answer shows."""
        revision = answered.resource_version
        if base:
            return base != revision
        if self._answered.get(answered.uid) == revision:
            return False
        self._answered.pop(answered.uid, None)
        if len(self._answered) >= _MAX_ANSWERED:
            del self._answered[next(iter(self._answered))]  # the oldest, whose object may be gone
        self._answered[answered.uid] = revision
        return True

    def deleting(self, endpoint: Endpoint) -> DeletionEnd:
        """See `WriteObserver`."""
        key = ObjectKey(endpoint.namespace, endpoint.name)
        # While the response is awaited, the watch may already bring the deletion of the object.
        informers = self._cache.informers(endpoint.info.gvk) if key.name else ()
        removals = {informer: informer.removal_begins(key) for informer in informers}

        def ended(response: Response | None) -> None:
            try:
                if response is not None:
                    count = write_count.get()
                    count.sent += 1
                    count.value += 1
                    if removals and (answer := _read(response)) is not None:
                        _note_deletion(
                            removals, self._cache.informers(endpoint.info.gvk), endpoint, answer, response.body
                        )
            finally:
                for informer, removal in removals.items():
                    informer.removal_ends(removal)

        return ended


class _AnsweredHeader(Header):
    deletion_grace_period_seconds: int | None = None


class _Details(msgspec.Struct):
    uid: str = ""


class _Answer(msgspec.Struct):
    """An object, or the Status that says it is gone."""

    kind: str = ""
    metadata: _AnsweredHeader = msgspec.field(default_factory=_AnsweredHeader)
    details: _Details | None = None


_answer = msgspec.json.Decoder(_Answer)


def _read(response: Response) -> _Answer | None:
    try:
        return _answer.decode(response.body)
    except NOT_JSON:
        return None  # the caller gets the error


def _note_write(
    informers: Sequence[Informer],
    endpoint: Endpoint,
    answer: _Answer | Object,
    body: bytes,
    origin: WriteOrigin | None = None,
) -> None:
    if answer.kind == "PartialObjectMetadata":
        informers = [informer for informer in informers if informer.scope.metadata_only]
    elif answer.kind != endpoint.info.gvk.kind:
        return  # scales, tokens, evictions
    metadata = answer.metadata
    key = ObjectKey(metadata.namespace, metadata.name)
    # The write that takes the last finalizer away takes the object with it, and is answered with the revision before.
    is_gone = metadata.deletion_timestamp is not None and _holds_nothing(endpoint, metadata)
    revision = revision_of(metadata)
    for informer in informers:
        if is_gone:
            informer.removed(key, metadata.uid, is_new=revision > informer.revision)
        else:
            informer.written(key, revision, body, origin)


def _note_deletion(
    removals: Mapping[Informer, Removal],
    informers: Sequence[Informer],
    endpoint: Endpoint,
    answer: _Answer,
    body: bytes,
) -> None:
    header = answer.metadata
    if answer.kind == endpoint.info.gvk.kind and not _holds_nothing(endpoint, header):
        _note_write(informers, endpoint, answer, body)
        return
    uid = header.uid or (answer.details.uid if answer.details is not None else "")
    for informer in informers:
        removal = removals.get(informer)
        is_new = removal is not None and removal.is_unseen(uid)
        informer.removed(ObjectKey(endpoint.namespace, endpoint.name), uid, is_new=is_new)


def _holds_nothing(endpoint: Endpoint, header: _AnsweredHeader | ObjectMeta) -> bool:
    """Whether nothing keeps an object that is being deleted. Namespaces have finalizers in their spec, too."""
    return not (header.finalizers or header.deletion_grace_period_seconds or endpoint.info.gvk == _NAMESPACE)
