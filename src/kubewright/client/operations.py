"""The requests behind the verbs: for an object or for one of its subresources, the same machinery.

`Client` and its subresource views are faces of this. It knows the client's defaults (field manager, validation, dry
run), describes requests in errors and decodes the answers; where they go is in `endpoint.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from functools import lru_cache
from typing import TypeVar

import msgspec

from kubewright.api.codec import decode, decode_model, encode
from kubewright.api.dynamic import PartialObject
from kubewright.api.markers import JSONObject
from kubewright.api.meta import DeleteOptions
from kubewright.api.model import BuiltIn
from kubewright.api.resources import Object
from kubewright.client.answer import readable, unreadable
from kubewright.client.arguments import check_object, check_patch
from kubewright.client.backoff import Backoff
from kubewright.client.endpoint import Endpoint, Endpoints, RequestDescription
from kubewright.client.errors import BadRequest, Conflict, DecodeError, Invalid, Status
from kubewright.client.http.transport import Response
from kubewright.client.patch import Change, MergePatch, Patch, PatchFrom, StrategicMergePatch, locked
from kubewright.client.paths import FieldValidation, query
from kubewright.client.request_body import (
    compared_fields,
    for_apply,
    for_create,
    for_patch,
    for_update,
    refuse_status_alone,
    whole,
)
from kubewright.client.session import Session
from kubewright.client.skipped import Skipped
from kubewright.client.write_observer import WriteObserver

T = TypeVar("T", bound=Object)

ACCEPT_JSON = ("Accept", "application/json")
ACCEPT_PARTIAL = ("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
BODY_JSON = ("Content-Type", "application/json")
_MAX_CONFLICTS = 10  # of a change that others get ahead of
_CONFLICT = Backoff(0.01, 1.0, jitter=0.8)  # all who lost to one writer are ready at the same moment


class WriteOptions(msgspec.Struct, frozen=True, gc=False):
    """How a write is to be done; None means as the client says."""

    dry_run: bool | None = None
    field_manager: str | None = None
    field_validation: FieldValidation | None = None


class Operations(Endpoints, frozen=True, kw_only=True):
    """One server, one user, one set of defaults. `observer` is notified of writes."""

    session: Session
    defaults: WriteOptions
    skipped: Skipped = msgspec.field(default_factory=Skipped)
    observer: WriteObserver | None = None

    def scoped(self, namespace: str) -> Operations:
        """The same, confined to one namespace."""
        return msgspec.structs.replace(self, namespace=namespace, scope=namespace)

    async def get(self, kind: type[T], endpoint: Endpoint, resource_version: str | None = None) -> T:
        """Read one object."""
        return decoded(kind, await self._read(kind, endpoint, resource_version), endpoint.request("get"))

    def _read(
        self, kind: type[Object], endpoint: Endpoint, resource_version: str | None = None
    ) -> Coroutine[object, None, Response]:
        return self.session.request(
            "GET",
            endpoint.path + query([("resourceVersion", resource_version)]),
            request=endpoint.request("get"),
            headers=[ACCEPT_PARTIAL if issubclass(kind, PartialObject) else ACCEPT_JSON],
        )

    async def create(self, obj: T, options: WriteOptions) -> T:
        """POST an object into its collection."""
        endpoint, request = await self._new(obj)
        return await self._write("POST", endpoint, type(obj), for_create(obj, endpoint.info), request, options)

    async def submit(self, obj: Object) -> None:
        """POST an object into its collection, whatever becomes of it there."""
        endpoint, request = await self._new(obj)
        options, body = WriteOptions(), for_create(obj, endpoint.info)
        response = await self._send("POST", endpoint, False, body, request, options)
        if self.observer is not None and not self.dry_run(options):
            self.observer.written("POST", endpoint, body, response, None, None)

    async def post(self, obj: T, endpoint: Endpoint, options: WriteOptions) -> T:
        """POST an object to a subresource of another one. Returns it as it is when the answer is only a Status."""
        request = endpoint.request("create")
        body = whole(obj)
        response = await self._send("POST", endpoint, False, body, request, options)
        if self.observer is not None and not self.dry_run(options):
            self.observer.written("POST", endpoint, body, response, None, None)
        with readable(response, request):
            # Evictions and bindings are answered by a Status.
            if decode_model(_Answer, response.body).kind == "Status":
                return obj
        return decoded(type(obj), response, request)

    async def update(self, obj: T, subresource: str, options: WriteOptions) -> T:
        """PUT an object."""
        check_object(obj)
        _whole(type(obj))
        endpoint = await self.endpoint(obj, None, None, subresource)
        request = endpoint.request("update")
        if self.observer is not None and not subresource:
            self.observer.updating(endpoint, obj)
        body = for_update(obj, endpoint.info, subresource)
        base = obj.metadata.resource_version
        return await self._write("PUT", endpoint, type(obj), body, request, options, base=base)

    async def patch(
        self,
        target: T | type[T],
        patch: Patch | None,
        endpoint: Endpoint,
        options: WriteOptions,
        lock: bool | None = None,
        strategic: bool = False,
    ) -> T:
        """PATCH an object; nothing is sent for an empty difference."""
        kind = type(target) if isinstance(target, Object) else target
        if patch is None or isinstance(patch, PatchFrom):
            if not isinstance(target, Object):
                raise TypeError(f"a difference needs an object, not just the kind {kind.__name__}")
            if strategic:
                from kubewright.client.strategic_merge import check_strategic  # few programs ask for it

                check_strategic(kind)
            base = None if patch is None else patch.base
            change = Change.of(target, base, compared_fields(endpoint.subresource))
            difference = change.patch()
            body = for_patch(difference, endpoint.info, endpoint.subresource)
            if body:
                return await self._change(kind, change, body, endpoint, options, lock, strategic)
            if not endpoint.subresource:
                refuse_status_alone(target, difference, "patch")
            return target
        check_patch(patch)
        if lock is not None:
            raise TypeError("lock= is for differences: an explicit patch carries the resourceVersion itself")
        if strategic:
            raise TypeError("strategic= is for differences: an explicit patch is a StrategicMergePatch or it is not")
        request = endpoint.request("patch")
        return await self._write("PATCH", endpoint, kind, encode(patch.body), request, options, patch.content_type)

    async def _change(
        self,
        kind: type[T],
        change: Change,
        body: JSONObject,
        endpoint: Endpoint,
        options: WriteOptions,
        lock: bool | None,
        strategic: bool,
    ) -> T:
        """Send what `change` is for an endpoint: see `Client.patch` for the meaning of `lock` and `strategic`."""
        request, made, conflicts = endpoint.request("patch"), change, 0
        form = (StrategicMergePatch if strategic else MergePatch).content_type
        while True:
            patch, replaces = made.strategic(body, kind) if strategic else (body, made.replaces_whole(body, kind))
            if not (replaces if lock is None else lock):
                return await self._write("PATCH", endpoint, kind, encode(patch), request, options, form)
            seen, conflict = made.header, None
            if seen.resource_version:
                sent = encode(locked(patch, seen.resource_version))
                try:
                    return await self._write("PATCH", endpoint, kind, sent, request, options, form)
                except Conflict as error:
                    conflicts += 1
                    if lock or conflicts == _MAX_CONFLICTS:
                        raise
                    conflict = error
                await asyncio.sleep(_CONFLICT.delay(conflicts - 1))  # at first the other one has just finished
            elif lock:
                raise ValueError(f"{request}: lock=True needs the resourceVersion that the object was read in")
            response = await self._read(kind, msgspec.structs.replace(endpoint, subresource=""))
            with readable(response, request):
                made = _made_again(change, response.body, kind, body, request)
            there = made.header
            is_another = seen.uid not in ("", there.uid)
            if conflict is not None and (is_another or there.resource_version == seen.resource_version):
                raise conflict  # another object has taken the name, or the revision was not the reason
            body = for_patch(made.patch(), endpoint.info, endpoint.subresource)
            if not body:
                return decoded(kind, response, request)

    async def apply(self, obj: T, subresource: str, force: bool, options: WriteOptions) -> T:
        """Server-side apply of an object."""
        check_object(obj)
        endpoint = await self.endpoint(obj, None, None, subresource)
        config = encode(for_apply(obj, endpoint.info, subresource))
        return await self.apply_config(type(obj), endpoint, config, force, options)

    async def apply_config(
        self, kind: type[T], endpoint: Endpoint, config: bytes, force: bool, options: WriteOptions
    ) -> T:
        """Server-side apply of a configuration: JSON, as `for_apply` makes it."""
        request, content_type = endpoint.request("apply"), "application/apply-patch+yaml"
        return await self._write("PATCH", endpoint, _whole(kind), config, request, options, content_type, force=force)

    async def delete(self, endpoint: Endpoint, options: DeleteOptions, selection: str = "") -> Response:
        """DELETE an object; or a collection, as far as `selection` (a query) matches."""
        ended = None if self.observer is None or options.dry_run else self.observer.deleting(endpoint)
        response = None
        try:
            response = await self.session.request(
                "DELETE",
                endpoint.path + selection,
                request=endpoint.request("delete" if endpoint.name else "delete all"),
                headers=[ACCEPT_JSON, BODY_JSON],
                body=encode(options),
            )
        finally:
            if ended is not None:
                ended(response)
        return response

    async def _new(self, obj: Object) -> tuple[Endpoint, RequestDescription]:
        """The endpoint of a new object, and the request description."""
        check_object(obj)
        kind = _whole(type(obj))
        info = self.mapper.known(kind) or await self.mapper.info(kind)
        endpoint = Endpoint(info, self.namespace_of(obj, info))
        return endpoint, endpoint.request("create", obj.metadata.name or obj.metadata.generate_name)

    def dry_run(self, options: WriteOptions) -> bool:
        """Whether a write is only tried out."""
        return bool(self.defaults.dry_run if options.dry_run is None else options.dry_run)

    async def _write(
        self,
        method: str,
        endpoint: Endpoint,
        kind: type[T],
        body: bytes,
        request: RequestDescription,
        options: WriteOptions,
        content_type: str = BODY_JSON[1],
        *,
        force: bool | None = None,
        base: str | None = None,
    ) -> T:
        """Send an object, or a change to one, and return the resulting object."""
        observer = self.observer
        partial = issubclass(kind, PartialObject) and (observer is None or not observer.needs_whole(endpoint.info))
        try:
            response = await self._send(method, endpoint, partial, body, request, options, content_type, force=force)
        except (BadRequest, Invalid) as error:
            from kubewright.client.refusals import explain_refusal

            explain_refusal(error, method, kind, body)
            raise
        if observer is None or self.dry_run(options):
            return decoded(kind, response, request)
        try:
            obj = decoded(kind, response, request)
        except DecodeError:
            # It is written even so.
            observer.written(method, endpoint, body, response, None, base)
            raise
        observer.written(method, endpoint, body, response, obj, base)
        return obj

    def _send(
        self,
        method: str,
        endpoint: Endpoint,
        partial: bool,
        body: bytes,
        request: RequestDescription,
        options: WriteOptions,
        content_type: str = BODY_JSON[1],
        *,
        force: bool | None = None,
    ) -> Coroutine[object, None, Response]:
        # Not a coroutine of its own: each costs something whenever one of those who wait goes on.
        return self.session.request(
            method,
            endpoint.path + self._query(options, force),
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


def decoded(kind: type[T], response: Response, request: RequestDescription) -> T:
    """The object of an answer."""
    try:
        return decode(kind, response.body)
    except DecodeError as error:
        raise unreadable(error, response, request) from None


def _made_again(
    change: Change, live: bytes, kind: type[Object], names: Collection[str], request: RequestDescription
) -> Change:
    from kubewright.api.rebase import MergeClash

    try:
        return change.on(live, kind, names)
    except MergeClash as error:
        message = (
            f"the object has been modified, and another client changed {error}, too, which is replaced whole: "
            "read the object and change it again"
        )
        raise Conflict(Status(code=409, reason="Conflict", message=message), str(request)) from None


def _whole(kind: type[T]) -> type[T]:
    if issubclass(kind, PartialObject):
        raise TypeError(f"{kind.__name__} is only metadata: it can be read, patched and deleted, not written whole")
    return kind
