"""`CachedClient`: a client that reads what is watched from the copy, and shows the program its own writes at once.

Reading a kind that nothing watches asks the server, as any client does. `consistency` says for one read how fresh the
answer must be. A list that names no namespace is about the namespaces of the cache, watched or not; a namespace that is
named is read wherever it is, and the program's permissions say whether it may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias, TypeVar

import msgspec

from kubewright.api.codec import NOT_JSON, decode
from kubewright.api.dynamic import PartialObject
from kubewright.api.header import Header
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.meta import DeleteOptions, ListMeta, ObjectMeta
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.cache.author import Author, author, author_of
from kubewright.cache.cache import Cache, selected
from kubewright.cache.entry import Entry, revision_of
from kubewright.cache.informer import Informer
from kubewright.cache.overlay import Removal
from kubewright.cache.selection import matcher, simple_fields
from kubewright.client import Client, Listing
from kubewright.client.client import PAGE_SIZE
from kubewright.client.errors import DecodeError, NotFound, Status, StatusDetails
from kubewright.client.http.transport import Response
from kubewright.client.listing import Page, page_of_several
from kubewright.client.operations import Asked, Operations, Place, WriteOptions, decoded
from kubewright.client.paths import Named
from kubewright.client.selectors import Fields, Labels, field_selector, label_selector
from kubewright.client.skipped import Skipped

T = TypeVar("T", bound=Object)

Consistency: TypeAlias = Literal["cached", "own-writes", "live"]
"""cached: the copy as the watch left it; own-writes: with this program's writes over it; live: ask the server."""

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_AT_A_TIME = 256  # objects decoded before others get their turn


class CachedClient(Client):
    """A client on top of a cache. Everything else is as with `Client`.

    An object that is written must name its namespace, unless the client is a view of one: it is hardly ever that of the
    program.

    Writes that are answered as something else than the object (scale, eviction, binding, `delete_all`) are seen when
    the watch brings them.
    """

    def __init__(self, client: Client, cache: Cache) -> None:
        """A view of `client`: it shares the connections, and does not close them."""
        self._cache = cache
        self._operations: Operations = _Recording(**msgspec.structs.asdict(client._operations), cache=cache)

    def in_namespace(self, namespace: str) -> CachedClient:
        """A view of this client that stays in one namespace."""
        view = object.__new__(type(self))
        view._cache = self._cache
        view._operations = self._operations.scoped(namespace)
        return view

    async def get(
        self,
        kind: type[T],
        name: str | Named,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T:
        """The object of that name, from the copy where the kind is watched. Raises `NotFound` when there is none."""
        info = self._operations.mapper.known(kind) or await self._operations.mapper.info(kind)
        key = self._operations.key(info, name, namespace)
        if consistency == "live" or resource_version is not None:
            return await self._operations.get(kind, Place(info, *key), resource_version)
        is_known, entry = self._local(kind, info, key, consistency)
        if not is_known:
            return await self._operations.get(kind, Place(info, *key))
        if entry is None:
            raise _not_found(info, key.name, str(Place(info, *key).request("get")))
        return decode(kind, entry.body)

    async def find(
        self,
        kind: type[T],
        name: str | Named,
        *,
        namespace: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T | None:
        """The object of that name, or None, from the copy where the kind is watched."""
        if consistency != "live":
            info = self._operations.mapper.known(kind) or await self._operations.mapper.info(kind)
            is_known, entry = self._local(kind, info, self._operations.key(info, name, namespace), consistency)
            if is_known:
                return decode(kind, entry.body) if entry is not None else None
        return await super().find(kind, name, namespace=namespace)

    def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        page_size: int = PAGE_SIZE,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        index: tuple[str, str] | None = None,
        consistency: Consistency = "own-writes",
    ) -> Listing[T]:
        """The objects of a kind, from the copy where the kind is watched, ordered by namespace and name.

        Without `namespace` it is about the namespaces of the cache, from wherever it is read. `index` names an index of
        the cache and the value to look for; it needs the copy.
        """

        def live(where: str | None) -> Listing[T]:
            return super(CachedClient, self).list(
                kind,
                namespace=where,
                labels=labels,
                fields=fields,
                page_size=page_size,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            )

        async def fetch_live(place: Place, continue_: str, limit: int) -> Page[T]:
            confined = () if place.namespace or not place.info.namespaced else self._cache.namespaces
            if not confined:
                return await live(namespace).fetch(continue_, limit)
            return await page_of_several({each: live(each) for each in confined}, continue_, limit)

        async def fetch(continue_: str, limit: int) -> Page[T]:
            place = await self._operations.collection(kind, namespace)
            # What the server began it goes on with.
            if continue_ or consistency == "live" or resource_version is not None:
                return await fetch_live(place, continue_, limit)
            scope = place.namespace
            informers = self._copies(kind, scope, labels, fields)
            if not informers:
                if index is not None:
                    raise LookupError(f'{kind.__name__} is not watched, so the index "{index[0]}" knows nothing of it')
                return await fetch_live(place, continue_, limit)
            entries = _selected(informers, scope, labels, fields, index, consistency == "own-writes")
            revision = str(min(informer.revision for informer in informers))
            return Page(ListMeta(resource_version=revision), await _decoded(kind, entries, self.skipped))

        return Listing(fetch, page_size)

    def _local(
        self, kind: type[Object], info: ResourceInfo, key: ObjectKey, consistency: Consistency
    ) -> tuple[bool, Entry | None]:
        """Whether the copies know about the object, and what."""
        metadata_only = issubclass(kind, PartialObject)
        for informer in self._cache.informers(info.gvk):
            scope = informer.scope
            # A kind whose scope nobody knew may be watched "in" a namespace and yet have none.
            if (scope.namespace and key.namespace not in ("", scope.namespace)) or scope.transform is not None:
                continue
            if (scope.metadata_only and not metadata_only) or not informer.is_settled:
                continue
            entry = informer.find(key, own_writes=consistency == "own-writes")
            # What a selector keeps out of a copy may still exist, unless it selects just this name.
            if entry is not None or not (scope.labels or scope.fields not in ("", f"metadata.name={key.name}")):
                return True, entry
        return False, None

    def _copies(
        self, kind: type[Object], namespace: str, labels: Labels | None, fields: Fields | None
    ) -> Sequence[Informer]:
        """The watches that together have all objects a list is about; none when some may be missing."""
        wanted = {"", label_selector(labels) if labels is not None else ""}
        wanted_fields = {"", field_selector(fields) if fields is not None else ""}
        usable = {
            informer.scope.namespace: informer
            for informer in self._cache.informers(resource_info(kind).gvk)
            if informer.is_settled
            and informer.scope.transform is None
            and informer.scope.labels in wanted
            and informer.scope.fields in wanted_fields
            and (not informer.scope.metadata_only or issubclass(kind, PartialObject))
        }
        if "" in usable:
            return [usable[""]]
        if namespace:
            return [usable[namespace]] if namespace in usable else []
        # A program that is confined to some namespaces lists those.
        confined = self._cache.namespaces
        return [usable[each] for each in confined] if confined and usable.keys() >= set(confined) else []


def _selected(
    informers: Sequence[Informer],
    namespace: str,
    labels: Labels | None,
    fields: Fields | None,
    index: tuple[str, str] | None,
    own_writes: bool,
) -> list[Entry]:
    if index is None and fields is not None:
        named = simple_fields(fields).items()
        index = next((each for each in named if all(informer.has_index(each[0]) for informer in informers)), None)
    return selected(informers, namespace, matcher(labels, fields, informers[0].scope.gvk), index, own_writes=own_writes)


async def _decoded(kind: type[T], entries: list[Entry], skipped: Skipped) -> list[T]:
    objects: list[T] = []
    for start in range(0, len(entries), _AT_A_TIME):
        if start:
            await asyncio.sleep(0)
        objects += skipped.decoded(kind, (entry.body for entry in entries[start : start + _AT_A_TIME]))
    return objects


def _not_found(info: ResourceInfo, name: str, request: str) -> NotFound:
    resource = f"{info.plural}.{info.gvk.group}" if info.gvk.group else info.plural
    details = StatusDetails(name=name, group=info.gvk.group, kind=info.plural)
    status = Status(code=404, reason="NotFound", message=f'{resource} "{name}" not found', details=details)
    return NotFound(status, request)


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


class _Recording(Operations, frozen=True, kw_only=True):
    """Operations that lay the answers to writes over the copies."""

    cache: Cache

    async def _write(
        self,
        method: str,
        place: Place,
        kind: type[T],
        body: bytes,
        request: Asked,
        options: WriteOptions,
        content_type: str = "application/json",
        *,
        force: bool | None = None,
    ) -> T:
        # The answer to a patch of metadata is whole, where it is to be laid over whole objects.
        partial = issubclass(kind, PartialObject) and all(
            informer.scope.metadata_only for informer in self.cache.informers(place.info.gvk)
        )
        response = await self._send(method, place, partial, body, request, options, content_type, force=force)
        if self.dry_run(options):
            return decoded(kind, response, request)
        _count_write()
        try:
            obj = decoded(kind, response, request)
        except DecodeError:
            # It is written even so.
            _recorded(self.cache, place, response, _note_write)
            raise
        if informers := self.cache.informers(place.info.gvk):
            revision = obj.metadata.resource_version
            writer = author_of(method, body, revision=revision, is_created=response.status == 201)
            _note_write(informers, place, obj, response.body, writer)
        return obj

    def _assumed_namespace(self, obj: Object) -> str:
        # An operator works in the namespaces of others: what names none would end up in its own by mistake.
        raise ValueError(
            f"{obj.kind} {obj.metadata.name or obj.metadata.generate_name} names no namespace: set metadata.namespace, "
            f'or use client.in_namespace("{self.namespace}") where the namespace of this program is meant'
        )

    async def submit(self, obj: Object) -> None:
        """See `Operations.submit`: what is written is seen, here too."""
        await self.create(obj, WriteOptions())

    async def post(self, obj: T, place: Place, options: WriteOptions) -> T:
        """See `Operations.post`."""
        answer = await Operations.post(self, obj, place, options)
        if not self.dry_run(options):
            _count_write()
        return answer

    async def delete(self, place: Place, options: DeleteOptions, selection: str = "") -> Response:
        """See `Operations.delete`."""
        key = ObjectKey(place.namespace, place.name)
        # What the watch brings while the answer is awaited may be the end of the object already.
        informers = list(self.cache.informers(place.info.gvk)) if key.name and not options.dry_run else []
        removals = {informer: informer.removal_begins(key) for informer in informers}
        try:
            response = await Operations.delete(self, place, options, selection)
            if not options.dry_run:
                _count_write()
            if removals:
                _recorded(self.cache, place, response, partial(_note_deletion, removals))
        finally:
            for informer, removal in removals.items():
                informer.removal_ends(removal)
        return response


def _count_write() -> None:
    author.get().writes += 1


def _recorded(
    cache: Cache, place: Place, response: Response, note: Callable[[Sequence[Informer], Place, _Answer, bytes], None]
) -> None:
    informers = cache.informers(place.info.gvk)
    if not informers:
        return
    try:
        answer = _answer.decode(response.body)
    except NOT_JSON:
        return  # whoever asked is told
    note(informers, place, answer, response.body)


def _note_write(
    informers: Sequence[Informer], place: Place, answer: _Answer | Object, body: bytes, writer: Author | None = None
) -> None:
    if answer.kind == "PartialObjectMetadata":
        informers = [informer for informer in informers if informer.scope.metadata_only]
    elif answer.kind != place.info.gvk.kind:
        return  # scales, tokens, evictions
    metadata = answer.metadata
    key = ObjectKey(metadata.namespace, metadata.name)
    # The write that takes the last finalizer away takes the object with it, and is answered with the revision before.
    is_gone = metadata.deletion_timestamp is not None and _holds_nothing(place, metadata)
    revision = revision_of(metadata)
    for informer in informers:
        if is_gone:
            informer.removed(key, metadata.uid, is_new=revision > informer.revision)
        else:
            informer.written(key, revision, body, writer)


def _note_deletion(
    removals: Mapping[Informer, Removal], informers: Sequence[Informer], place: Place, answer: _Answer, body: bytes
) -> None:
    header = answer.metadata
    if answer.kind == place.info.gvk.kind and not _holds_nothing(place, header):
        _note_write(informers, place, answer, body)
        return
    uid = header.uid or (answer.details.uid if answer.details is not None else "")
    for informer in informers:
        removal = removals.get(informer)
        is_new = removal is not None and removal.is_unseen(uid)
        informer.removed(ObjectKey(place.namespace, place.name), uid, is_new=is_new)


def _holds_nothing(place: Place, header: _AnsweredHeader | ObjectMeta) -> bool:
    """Whether nothing keeps an object that is being deleted. Namespaces have finalizers in their spec, too."""
    return not (header.finalizers or header.deletion_grace_period_seconds or place.info.gvk == _NAMESPACE)
