"""`CachedClient`: a client that reads what is watched from the cache, and shows the program its own writes at once.

Reading an unwatched kind asks the server, as any client does. `consistency` says for one read how fresh the
answer must be. A list that names no namespace covers the namespaces of the cache, watched or not; a namespace that is
named is read wherever it is, and the program's permissions say whether it may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Literal, TypeAlias, TypeVar, get_args, overload

from msgspec.structs import replace

from kubewright.api.codec import decode, encode
from kubewright.api.dynamic import PartialObject
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ListMeta
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.api.selectors import Fields, Labels, field_selector, label_selector
from kubewright.cache.applied import SettledApplies
from kubewright.cache.cache import Cache, selected
from kubewright.cache.entry import CacheEntry
from kubewright.cache.informer import Informer
from kubewright.cache.own_writes import OwnWrites
from kubewright.cache.selection import matcher, simple_fields
from kubewright.client import Client, PagedList
from kubewright.client.arguments import check_kind, check_namespace, kind_and_name
from kubewright.client.endpoint import Endpoint
from kubewright.client.errors import NotFound, Status, StatusDetails
from kubewright.client.listing import Page, page_of_several
from kubewright.client.operations import WriteOptions
from kubewright.client.paths import FieldValidation, ObjectName
from kubewright.client.reader import PAGE_SIZE
from kubewright.client.request_body import for_apply
from kubewright.client.selector_parameters import check_selectors
from kubewright.client.skipped import Skipped
from kubewright.client.subresources import Subresource

T = TypeVar("T", bound=Object)

Consistency: TypeAlias = Literal["cached", "own-writes", "live"]
"""cached: what the watch has brought; own-writes: with this program's writes over it; live: ask the server."""

_AT_A_TIME = 256  # objects decoded before other tasks get their turn


class CachedClient(Client):
    """A client on top of a cache. Everything else is as with `Client`.

    An object that is written must name its namespace, unless the client is a view of one: it is rarely that of the
    program.

    Writes that are answered as something else than the object (scale, eviction, binding, `delete_all`) are seen when
    the watch brings them.
    """

    def __init__(self, client: Client, cache: Cache) -> None:
        """A view of `client`: it shares the connections, and does not close them."""
        self._cache = cache
        self._settled = SettledApplies(cache.field_manager)
        self._operations = replace(client._operations, observer=OwnWrites(cache), names_namespaces=True)

    def uncached(self) -> Client:
        """A view that reads from the server alone, and whose writes are this program's own."""
        view = object.__new__(Client)
        view._operations = replace(self._operations, names_namespaces=False)
        return view

    def in_namespace(self, namespace: str) -> CachedClient:
        """A view of this client that stays in one namespace."""
        view = object.__new__(type(self))
        view._cache = self._cache
        view._settled = self._settled
        view._operations = self._operations.scoped(namespace)
        return view

    @overload
    async def get(
        self, target: T, /, *, resource_version: str | None = None, consistency: Consistency = "own-writes"
    ) -> T: ...

    @overload
    async def get(
        self,
        target: type[T],
        /,
        name: ObjectName,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T: ...

    async def get(
        self,
        target: T | type[T],
        /,
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T:
        """See `Client.get`: from the cache where the kind is watched."""
        if consistency != "own-writes":
            _check_consistency(consistency)
        kind, name = kind_and_name(target, name)
        info = self._operations.mapper.known(kind) or await self._operations.mapper.info(kind)
        key = self._operations.key(info, name, namespace)
        if consistency == "live" or resource_version is not None:
            return await self._operations.get(kind, Endpoint(info, *key), resource_version)
        is_known, entry = self._local(kind, info, key, consistency)
        if not is_known and self._cache.is_strict and await self._settled_informers(kind, key.namespace):
            is_known, entry = self._local(kind, info, key, consistency)
        if not is_known:
            self._check_live_read(kind)
            return await self._operations.get(kind, Endpoint(info, *key))
        if entry is None:
            raise _not_found(info, key.name, str(Endpoint(info, *key).request("get")))
        return decode(kind, entry.body)

    @overload
    async def find(self, target: T, /, *, consistency: Consistency = "own-writes") -> T | None: ...

    @overload
    async def find(
        self,
        target: type[T],
        /,
        name: ObjectName,
        *,
        namespace: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T | None: ...

    async def find(
        self,
        target: T | type[T],
        /,
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
        consistency: Consistency = "own-writes",
    ) -> T | None:
        """See `Client.find`: from the cache where the kind is watched."""
        if consistency != "own-writes":
            _check_consistency(consistency)
        kind, name = kind_and_name(target, name)
        if consistency != "live":
            info = self._operations.mapper.known(kind) or await self._operations.mapper.info(kind)
            key = self._operations.key(info, name, namespace)
            is_known, entry = self._local(kind, info, key, consistency)
            if not is_known and self._cache.is_strict and await self._settled_informers(kind, key.namespace):
                is_known, entry = self._local(kind, info, key, consistency)
            if is_known:
                return decode(kind, entry.body) if entry is not None else None
            self._check_live_read(kind)
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
    ) -> PagedList[T]:
        """The objects of a kind, from the cache where the kind is watched, ordered by namespace and name.

        Without `namespace` it covers the namespaces of the cache, wherever the objects are read from. `index` names an
        index of the cache and the value to look for; it needs a watch, and waits until that has brought its objects.
        """
        check_kind(kind)
        if consistency != "own-writes":
            _check_consistency(consistency)
        if namespace:
            check_namespace(namespace, "namespace")
        if labels is not None or fields is not None:
            check_selectors(kind, labels, fields)

        def live(where: str | None) -> PagedList[T]:
            return super(CachedClient, self).list(
                kind,
                namespace=where,
                labels=labels,
                fields=fields,
                page_size=page_size,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
            )

        async def fetch_live(endpoint: Endpoint, continue_: str, limit: int) -> Page[T]:
            info = endpoint.info
            confined = () if endpoint.namespace or not info.namespaced else self._cache.namespaces_of(info.gvk)
            if not confined:
                return await live(namespace).fetch(continue_, limit)
            return await page_of_several({each: live(each) for each in confined}, continue_, limit)

        async def fetch(continue_: str, limit: int) -> Page[T]:
            endpoint = await self._operations.collection(kind, namespace)
            # A list that the server began is continued by the server.
            if continue_ or consistency == "live" or resource_version is not None:
                return await fetch_live(endpoint, continue_, limit)
            scope = endpoint.namespace
            informers = self._informers_for(kind, scope, labels, fields)
            if not informers and (index is not None or self._cache.is_strict):
                informers = await self._settled_informers(kind, scope, labels, fields)
            if not informers:
                if index is not None:
                    raise LookupError(f'{kind.__name__} is not watched, so the index "{index[0]}" has no objects of it')
                self._check_live_read(kind)
                return await fetch_live(endpoint, continue_, limit)
            entries = _selected(informers, scope, labels, fields, index, consistency == "own-writes")
            revision = str(min(informer.revision for informer in informers))
            return Page(ListMeta(resource_version=revision), await _decoded(kind, entries, self.skipped))

        return PagedList(fetch, page_size)

    async def serves(self, kind: type[Object]) -> bool:
        """See `Client.serves`. Of a kind that is watched, its watch knows, and no request is sent.

        A controller that is answered False for an optional kind that it watches is woken when the kind gets installed.
        """
        check_kind(kind)
        settled = [informer for informer in self._cache.informers(resource_info(kind).gvk) if informer.is_settled]
        if not settled:
            return await super().serves(kind)
        return not any(informer.is_absent for informer in settled)

    def apply(
        self,
        obj: T,
        *,
        force: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Coroutine[object, None, T]:
        """Server-side apply, as `Client.apply`. Nothing is sent when it would change nothing.

        That is known of kinds that are watched whole, and of the client's own field manager: the fields set in `obj`
        are just those that we own, and have those values. The object is then returned as the cache has it.
        """
        return self._apply(obj, "", force, WriteOptions(dry_run, field_manager, field_validation))

    async def applied(self, obj: T) -> T | None:
        """The object as the cache has it, when `apply(obj)` would send nothing; None when it would, or might."""
        endpoint = await self._operations.endpoint(obj, None, None)
        kind, entry = type(obj), self._before_apply(type(obj), endpoint)
        if entry is None or not self._settled.is_settled(kind, encode(for_apply(obj, endpoint.info, "")), entry):
            return None
        return decode(kind, entry.body)

    @property
    def status(self) -> Subresource:
        """See `Client.status`: `apply` sends nothing there, either, when it would change nothing."""
        return _CachedSubresource(self, "status")

    def subresource(self, name: str) -> Subresource:
        """See `Client.subresource`."""
        return _CachedSubresource(self, name)

    async def _apply(self, obj: T, subresource: str, force: bool, options: WriteOptions) -> T:
        operations = self._operations
        endpoint = await operations.endpoint(obj, None, None, subresource)
        config = encode(for_apply(obj, endpoint.info, subresource))
        kind, entry = type(obj), None
        if not operations.dry_run(options) and options.field_manager in (None, self._cache.field_manager):
            entry = self._before_apply(kind, endpoint)
        if entry is None:
            return await operations.apply_config(kind, endpoint, config, force, options)
        if self._settled.is_settled(kind, config, entry, subresource):
            return decode(kind, entry.body)
        answer = await operations.apply_config(kind, endpoint, config, force, options)
        self._settled.answered(kind, config, entry, answer, subresource)
        return answer

    def _before_apply(self, kind: type[Object], endpoint: Endpoint) -> CacheEntry | None:
        """The object that is applied, as the cache has it; None when an apply cannot be decided from it."""
        entry = self._local(kind, endpoint.info, ObjectKey(endpoint.namespace, endpoint.name), "own-writes")[1]
        return entry if entry is not None and entry.applied else None

    def _check_live_read(self, kind: type[Object]) -> None:
        """Raise a LookupError if the cache is strict: it then reads live only with `consistency="live"`."""
        if not self._cache.is_strict:
            return
        if any(not informer.is_settled for informer in self._cache.informers(resource_info(kind).gvk)):
            raise LookupError(
                f"the watch of {kind.__name__} has not brought its objects yet, as its cache does not run, and the "
                "cache is strict: read it in a reconciler or a map function, while the manager runs, or with "
                'consistency="live"'
            )
        raise LookupError(
            f"no watch of {kind.__name__} can answer this read, and the cache is strict: watch the kind (with "
            f"controller_for(...).owns or .watches, or cache.watch({kind.__name__})), or read it with "
            'consistency="live"'
        )

    def _local(
        self, kind: type[Object], info: ResourceInfo, key: ObjectKey, consistency: Consistency
    ) -> tuple[bool, CacheEntry | None]:
        """Whether a watch can answer for the object, and its entry."""
        for informer in self._cache.informers(info.gvk):
            scope = informer.scope
            # A kind whose scope was not known may be watched "in" a namespace and yet have none.
            if scope.namespace and key.namespace not in ("", scope.namespace):
                continue
            if (scope.metadata_only and not issubclass(kind, PartialObject)) or not informer.is_settled:
                continue
            own_writes = consistency == "own-writes"
            if not (scope.labels or scope.fields or scope.transform):
                return True, informer.find(key, own_writes=own_writes)
            is_all = self._cache.shows_all(scope)
            if scope.transform is not None and not is_all:
                continue
            entry = informer.find(key, own_writes=own_writes)
            # What a selector keeps out of a watch may still exist, unless it selects just this name.
            if entry is not None or is_all or (not scope.labels and scope.fields == f"metadata.name={key.name}"):
                return True, entry
        return False, None

    async def _settled_informers(
        self, kind: type[Object], namespace: str, labels: Labels | None = None, fields: Fields | None = None
    ) -> Sequence[Informer]:
        """`_informers_for`, when those that have not brought their objects yet have.

        A map function is called as soon as the watch of its own kind has brought an object, and may read other kinds.
        """
        while self._cache.is_running:
            informers = self._informers_for(kind, namespace, labels, fields, settled=False)
            unsettled = next((informer for informer in informers if not informer.is_settled), None)
            if unsettled is None:
                return informers
            await self._cache.settled(unsettled)
        return ()

    def _informers_for(
        self,
        kind: type[Object],
        namespace: str,
        labels: Labels | None,
        fields: Fields | None,
        *,
        settled: bool = True,
    ) -> Sequence[Informer]:
        """The watches that together have all objects a list covers; none when some may be absent from them.

        Without `settled` also those that have not brought their objects yet.
        """
        wanted = {"", label_selector(labels) if labels is not None else ""}
        wanted_fields = {"", field_selector(fields) if fields is not None else ""}
        usable = {
            informer.scope.namespace: informer
            for informer in self._cache.informers(resource_info(kind).gvk)
            if (informer.is_settled or not settled)
            and (
                self._cache.shows_all(informer.scope)
                or (
                    informer.scope.transform is None
                    and informer.scope.labels in wanted
                    and informer.scope.fields in wanted_fields
                )
            )
            and (not informer.scope.metadata_only or issubclass(kind, PartialObject))
        }
        if "" in usable:
            return [usable[""]]
        if namespace:
            return [usable[namespace]] if namespace in usable else []
        # A program that is confined to some namespaces lists those.
        confined = self._cache.namespaces_of(resource_info(kind).gvk)
        return [usable[each] for each in confined] if confined and usable.keys() >= set(confined) else []


class _CachedSubresource(Subresource):
    """A subresource whose `apply` knows what the cache has."""

    def __init__(self, client: CachedClient, name: str) -> None:
        self._client = client
        self._operations = client._operations
        self._subresource = name

    def apply(
        self,
        obj: T,
        *,
        force: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Coroutine[object, None, T]:
        """See `CachedClient.apply`."""
        options = WriteOptions(dry_run, field_manager, field_validation)
        return self._client._apply(obj, self._subresource, force, options)


def _check_consistency(given: Consistency) -> None:
    if given not in get_args(Consistency):
        raise ValueError(f'consistency="{given}": expected {", ".join(get_args(Consistency))}')


def _selected(
    informers: Sequence[Informer],
    namespace: str,
    labels: Labels | None,
    fields: Fields | None,
    index: tuple[str, str] | None,
    own_writes: bool,
) -> list[CacheEntry]:
    if index is None and fields is not None:
        named = simple_fields(fields).items()
        index = next((each for each in named if all(informer.has_index(each[0]) for informer in informers)), None)
    return selected(informers, namespace, matcher(labels, fields, informers[0].scope.gvk), index, own_writes=own_writes)


async def _decoded(kind: type[T], entries: list[CacheEntry], skipped: Skipped) -> list[T]:
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
