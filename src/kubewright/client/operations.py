"""The requests behind the verbs: for an object or for one of its subresources, the same machinery.

`Client` and its subresource views are faces of this. It knows the client's defaults (namespace, field manager,
validation, dry run), finds the endpoint of a kind, words the errors and decodes the answers.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from functools import lru_cache
from typing import TypeVar

import msgspec

from kubewright.api.codec import decode, decode_model, encode
from kubewright.api.dynamic import PartialObject
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import DeleteOptions
from kubewright.api.model import BuiltIn
from kubewright.api.origin import JSONObject
from kubewright.api.rebase import ListClash
from kubewright.api.resources import Object, ResourceInfo
from kubewright.client.answer import readable, unreadable
from kubewright.client.errors import Conflict, DecodeError, Status
from kubewright.client.http.transport import Response
from kubewright.client.mapping import Mapper
from kubewright.client.patch import Change, MergePatch, Patch, PatchFrom, locked
from kubewright.client.paths import (
    FieldValidation,
    Named,
    collection_path,
    object_path,
    query,
)
from kubewright.client.session import Session
from kubewright.client.skipped import Skipped
from kubewright.client.write_observer import WriteObserver
from kubewright.client.writing import (
    for_apply,
    for_create,
    for_patch,
    for_update,
    looked_at,
    refuse_status_alone,
    whole,
)

T = TypeVar("T", bound=Object)

ACCEPT_JSON = ("Accept", "application/json")
ACCEPT_PARTIAL = ("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
BODY_JSON = ("Content-Type", "application/json")
_TRIES = 5  # of a change that others get ahead of, as many as client-go's RetryOnConflict


class WriteOptions(msgspec.Struct, frozen=True, gc=False):
    """How a write is to be done; None means as the client says."""

    dry_run: bool | None = None
    field_manager: str | None = None
    field_validation: FieldValidation | None = None


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What was asked; as text `update Pod default/web-1`, put together only when an error needs it."""

    verb: str
    place: Place
    name: str

    def __str__(self) -> str:
        info, subresource = self.place.info, self.place.subresource
        kind = f"{info.gvk.kind}/{subresource}" if subresource else info.gvk.kind
        name, namespace = self.place.name or self.name, self.place.namespace
        where = f"{namespace}/{name}" if namespace and name else name or namespace
        if not where and info.namespaced:
            where = "in all namespaces"
        elif namespace and not name:
            where = f"in {namespace}"
        return f"{self.verb} {kind} {where}".rstrip()


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a request goes: the kind, the namespace if any, the name if any."""

    info: ResourceInfo
    namespace: str
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path on the server."""
        if self.name:
            return object_path(self.info, self.namespace, self.name, self.subresource)
        return collection_path(self.info, self.namespace)

    def request(self, verb: str, name: str = "") -> Asked:
        """The words for errors; `name` for objects that have none yet."""
        return Asked(verb, self, name)


class Operations(msgspec.Struct, frozen=True):
    """One server, one user, one set of defaults.

    `scope` confines lists and watches to a namespace. With `names_namespaces` an object that is written must name its
    namespace. `observer` is notified of writes.
    """

    session: Session
    mapper: Mapper
    namespace: str
    defaults: WriteOptions
    scope: str = ""
    skipped: Skipped = msgspec.field(default_factory=Skipped)
    names_namespaces: bool = False
    observer: WriteObserver | None = None

    def scoped(self, namespace: str) -> Operations:
        """The same, confined to one namespace."""
        return msgspec.structs.replace(self, namespace=namespace, scope=namespace)

    async def place(
        self, target: Object | type[Object], name: str | Named | None, namespace: str | None, subresource: str = ""
    ) -> Place:
        """Where one object is: given itself, or by kind and name."""
        if isinstance(target, Object):
            info = self.mapper.known(type(target)) or await self.mapper.info(type(target))
            name, namespace = target.metadata.name, namespace or self._namespace_of(target, info)
        elif name is None:
            raise TypeError(f"which {target.__name__}? Give an object, or a kind and a name")
        else:
            info = self.mapper.known(target) or await self.mapper.info(target)
        return Place(info, *self.key(info, name, namespace), subresource)

    def key(self, info: ResourceInfo, name: str | Named, namespace: str | None) -> ObjectKey:
        """Which object of a kind whose scope is known. The client's namespace is the default."""
        if isinstance(name, str):
            called, where = name, namespace or self.namespace
        else:
            called, where = name.name, namespace or name.namespace or self.namespace
        if not called:
            raise ValueError(f"the {info.gvk.kind} has no name")
        if not info.namespaced:
            return ObjectKey("", called)
        if self.scope:
            self._stay(where)
        return ObjectKey(where, called)

    async def collection(self, kind: type[Object], namespace: str | None) -> Place:
        """Where all objects of a kind are, in one namespace or in all."""
        info = await self.mapper.info(kind)
        return Place(info, self.scope_for(namespace) if info.namespaced else "")

    def scope_for(self, namespace: str | None) -> str:
        """The namespace a list or watch is confined to; empty for all."""
        self._stay(namespace)
        return namespace or self.scope

    async def get(self, kind: type[T], place: Place, resource_version: str | None = None) -> T:
        """Read one object."""
        return decoded(kind, await self._read(kind, place, resource_version), place.request("get"))

    def _read(
        self, kind: type[Object], place: Place, resource_version: str | None = None
    ) -> Coroutine[object, None, Response]:
        return self.session.request(
            "GET",
            place.path + query([("resourceVersion", resource_version)]),
            request=place.request("get"),
            headers=[ACCEPT_PARTIAL if issubclass(kind, PartialObject) else ACCEPT_JSON],
        )

    async def create(self, obj: T, options: WriteOptions) -> T:
        """POST an object into its collection."""
        place, request = await self._new(obj)
        return await self._write("POST", place, type(obj), for_create(obj, place.info), request, options)

    async def submit(self, obj: Object) -> None:
        """POST an object into its collection, whatever becomes of it there."""
        place, request = await self._new(obj)
        options, body = WriteOptions(), for_create(obj, place.info)
        response = await self._send("POST", place, False, body, request, options)
        if self.observer is not None and not self.dry_run(options):
            self.observer.written("POST", place, body, response, None)

    async def post(self, obj: T, place: Place, options: WriteOptions) -> T:
        """POST an object to a subresource of another one. Gives it back as it is when the server only says: done."""
        request = place.request("create")
        body = whole(obj)
        response = await self._send("POST", place, False, body, request, options)
        if self.observer is not None and not self.dry_run(options):
            self.observer.written("POST", place, body, response, None)
        with readable(response, request):
            # Evictions and bindings are answered by a Status.
            if decode_model(_Answer, response.body).kind == "Status":
                return obj
        return decoded(type(obj), response, request)

    async def update(self, obj: T, subresource: str, options: WriteOptions) -> T:
        """PUT an object."""
        _whole(type(obj))
        place = await self.place(obj, None, None, subresource)
        request = place.request("update")
        return await self._write("PUT", place, type(obj), for_update(obj, place.info, subresource), request, options)

    async def patch(
        self,
        target: T | type[T],
        patch: Patch | None,
        place: Place,
        options: WriteOptions,
        lock: bool | None = None,
    ) -> T:
        """PATCH an object; nothing is sent for an empty difference."""
        kind = type(target) if isinstance(target, Object) else target
        if patch is None or isinstance(patch, PatchFrom):
            if not isinstance(target, Object):
                raise TypeError(f"a difference needs an object, not just the kind {kind.__name__}")
            base = None if patch is None else patch.base
            change = Change.of(target, base, looked_at(place.subresource))
            difference = change.patch()
            body = for_patch(difference, place.info, place.subresource)
            if body:
                return await self._change(kind, change, body, place, options, lock)
            if not place.subresource:
                refuse_status_alone(target, difference, "patch")
            return target
        if lock is not None:
            raise TypeError("lock= is for differences: an explicit patch carries the resourceVersion itself")
        request = place.request("patch")
        return await self._write("PATCH", place, kind, encode(patch.body), request, options, patch.content_type)

    async def _change(
        self,
        kind: type[T],
        change: Change,
        body: JSONObject,
        place: Place,
        options: WriteOptions,
        lock: bool | None,
    ) -> T:
        """Send what `change` is for an endpoint: see `Client.patch` for the meaning of `lock`."""
        request, made, conflicts = place.request("patch"), change, 0
        while made.replaces_whole(body, kind) if lock is None else lock:
            seen, conflict = made.header, None
            if seen.resource_version:
                sent = encode(locked(body, seen.resource_version))
                try:
                    return await self._write("PATCH", place, kind, sent, request, options, MergePatch.content_type)
                except Conflict as error:
                    conflicts += 1
                    if lock or conflicts == _TRIES:
                        raise
                    conflict = error
            elif lock:
                raise ValueError(f"{request}: lock=True needs the resourceVersion that the object was read in")
            response = await self._read(kind, msgspec.structs.replace(place, subresource=""))
            with readable(response, request):
                made = _made_again(change, response.body, kind, body, request)
            there = made.header
            is_another = seen.uid not in ("", there.uid)
            if conflict is not None and (is_another or there.resource_version == seen.resource_version):
                raise conflict  # an object that nobody meant has taken the name, or the revision was not the reason
            body = for_patch(made.patch(), place.info, place.subresource)
            if not body:
                return decoded(kind, response, request)
        return await self._write("PATCH", place, kind, encode(body), request, options, MergePatch.content_type)

    async def apply(self, obj: T, subresource: str, force: bool, options: WriteOptions) -> T:
        """Server-side apply of an object."""
        place = await self.place(obj, None, None, subresource)
        request = place.request("apply")
        return await self._write(
            "PATCH",
            place,
            _whole(type(obj)),
            encode(for_apply(obj, place.info, subresource)),
            request,
            options,
            "application/apply-patch+yaml",
            force=force,
        )

    async def delete(self, place: Place, options: DeleteOptions, selection: str = "") -> Response:
        """DELETE an object; or a collection, as far as `selection` (a query) matches."""
        ended = None if self.observer is None or options.dry_run else self.observer.deleting(place)
        response = None
        try:
            response = await self.session.request(
                "DELETE",
                place.path + selection,
                request=place.request("delete" if place.name else "delete all"),
                headers=[ACCEPT_JSON, BODY_JSON],
                body=encode(options),
            )
        finally:
            if ended is not None:
                ended(response)
        return response

    async def _new(self, obj: Object) -> tuple[Place, Asked]:
        """Where an object will be, and what is asked."""
        kind = _whole(type(obj))
        info = self.mapper.known(kind) or await self.mapper.info(kind)
        place = Place(info, self._namespace_of(obj, info))
        return place, place.request("create", obj.metadata.name or obj.metadata.generate_name)

    def dry_run(self, options: WriteOptions) -> bool:
        """Whether a write is only tried out."""
        return bool(self.defaults.dry_run if options.dry_run is None else options.dry_run)

    async def _write(
        self,
        method: str,
        place: Place,
        kind: type[T],
        body: bytes,
        request: Asked,
        options: WriteOptions,
        content_type: str = BODY_JSON[1],
        *,
        force: bool | None = None,
    ) -> T:
        """Send an object, or a change to one, and give back what the server made of it."""
        observer = self.observer
        partial = issubclass(kind, PartialObject) and (observer is None or not observer.needs_whole(place.info))
        response = await self._send(method, place, partial, body, request, options, content_type, force=force)
        if observer is None or self.dry_run(options):
            return decoded(kind, response, request)
        try:
            obj = decoded(kind, response, request)
        except DecodeError:
            # It is written even so.
            observer.written(method, place, body, response, None)
            raise
        observer.written(method, place, body, response, obj)
        return obj

    def _send(
        self,
        method: str,
        place: Place,
        partial: bool,
        body: bytes,
        request: Asked,
        options: WriteOptions,
        content_type: str = BODY_JSON[1],
        *,
        force: bool | None = None,
    ) -> Coroutine[object, None, Response]:
        # Not a coroutine of its own: each costs something whenever one of those who wait goes on.
        return self.session.request(
            method,
            place.path + self._query(options, force),
            request=request,
            headers=[ACCEPT_PARTIAL if partial else ACCEPT_JSON, ("Content-Type", content_type)],
            body=body,
        )

    def _query(self, options: WriteOptions, force: bool | None) -> str:
        return _write_query(
            self.dry_run(options),
            options.field_manager or self.defaults.field_manager,
            options.field_validation or self.defaults.field_validation,
            force,
        )

    def _namespace_of(self, obj: Object, info: ResourceInfo) -> str:
        """The namespace of an object; none for cluster-scoped kinds."""
        if not info.namespaced:
            return ""
        self._stay(obj.metadata.namespace)
        return obj.metadata.namespace or self.scope or self._assumed_namespace(obj)

    def _assumed_namespace(self, obj: Object) -> str:
        """That of the client, as with kubectl, for an object that names none; but an owner's is not known."""
        if self.names_namespaces:
            raise ValueError(
                f"{obj.kind} {obj.metadata.name or obj.metadata.generate_name} names no namespace: set "
                f'metadata.namespace, or use client.in_namespace("{self.namespace}") where the namespace of this '
                "program is meant"
            )
        if obj.metadata.owner_references:
            raise ValueError(
                f"{obj.kind} {obj.metadata.name or obj.metadata.generate_name} has an owner and no namespace: set "
                "metadata.namespace to that of the owner, as the garbage collector deletes what is in another"
            )
        return self.namespace

    def _stay(self, namespace: str | None) -> None:
        if self.scope and namespace and namespace != self.scope:
            raise ValueError(f'this client stays in the namespace "{self.scope}" and does not go to "{namespace}"')


class _Answer(BuiltIn):
    kind: str = ""


# A program writes in a few ways, over and over.
@lru_cache(64)
def _write_query(dry_run: bool, manager: str | None, validation: str | None, force: bool | None) -> str:
    return query(
        [
            ("dryRun", "All" if dry_run else None),
            ("fieldManager", manager),
            ("fieldValidation", validation),
            ("force", force),
        ]
    )


def decoded(kind: type[T], response: Response, request: Asked) -> T:
    """The object of an answer."""
    try:
        return decode(kind, response.body)
    except DecodeError as error:
        raise unreadable(error, response, request) from None


def _made_again(change: Change, live: bytes, kind: type[Object], names: Collection[str], request: Asked) -> Change:
    try:
        return change.on(live, kind, names)
    except ListClash as error:
        message = (
            f"the object has been modified, and somebody else changed {error}, too, which is replaced whole: "
            "read the object and change it again"
        )
        raise Conflict(Status(code=409, reason="Conflict", message=message), str(request)) from None


def _whole(kind: type[T]) -> type[T]:
    if issubclass(kind, PartialObject):
        raise TypeError(f"{kind.__name__} is only metadata: it can be read, patched and deleted, not written whole")
    return kind
