"""`Client`: typed reading and writing of any kind on any Kubernetes.

    async with Client() as client:
        pod = await client.get(Pod, "web-1", namespace="shop")
        pod.metadata.labels["tier"] = "front"
        await client.update(pod)

`get` raises `NotFound`, `find` returns None. Writes return what the server made of them. Single objects are looked for
in the client's own namespace unless one is given; lists and watches span all namespaces unless one is given. An object
that names no namespace is written to the client's own, as with kubectl; one that has an owner must name it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, overload

from msgspec import Raw

from kubewright.api.codec import decode_model, split_list
from kubewright.api.dynamic import PartialObject
from kubewright.api.meta import DeleteOptions, ListMeta, Preconditions
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels, field_selector, label_selector
from kubewright.client import subresources
from kubewright.client.answer import readable
from kubewright.client.config.config import Config
from kubewright.client.errors import NotFound
from kubewright.client.http.transport import Response, StreamedResponse, Transport
from kubewright.client.listing import Listing, Page
from kubewright.client.logs import log_lines
from kubewright.client.mapping import APIResource, Mapper
from kubewright.client.operations import (
    ACCEPT_JSON,
    ACCEPT_PARTIAL,
    Operations,
    Place,
    WriteOptions,
)
from kubewright.client.patch import Patch
from kubewright.client.paths import FieldValidation, Named, Parameter, Propagation, query
from kubewright.client.request_observer import RequestObserver
from kubewright.client.session import Session
from kubewright.client.skipped import Skipped
from kubewright.client.subresources import Subresource
from kubewright.client.table import Table
from kubewright.client.token_bucket import TokenBucket
from kubewright.client.wait import Expectation, wait
from kubewright.client.watch import Watch

if TYPE_CHECKING:
    from kubewright.api.authentication.v1 import TokenRequest
    from kubewright.api.autoscaling.v1 import Scale

T = TypeVar("T", bound=Object)

FIELD_MANAGER = "kubewright"
PAGE_SIZE = 500
WATCH_TIMEOUT = 290.0
"""Seconds after which a watch is asked to end: below the five minutes after which many load balancers cut."""

_PARTIAL_LIST = ("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
_TABLE = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")


class Client:
    """A connection to one Kubernetes, as one user. Close it, or use it in `async with`."""

    _owned: Session | None = None  # views own no connections

    def __init__(
        self,
        config: Config | None = None,
        *,
        transport: Transport | None = None,
        user_agent: str | None = None,
        field_manager: str = FIELD_MANAGER,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
        rate_limit: TokenBucket | None = None,
        timeout: float | None = 30.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """Connect as `config` says; by default as kubectl would, or as the pod's service account in a cluster.

        `field_manager`, `field_validation` and `dry_run` hold for every write that does not say otherwise.
        `on_warning` is told each warning of the server once, instead of the log.
        """
        config = config or Config.load()
        session = Session(
            config,
            transport=transport,
            user_agent=user_agent,
            rate_limit=rate_limit,
            timeout=timeout,
            on_warning=on_warning,
        )
        self._owned = session
        defaults = WriteOptions(dry_run, field_manager, field_validation)
        self._operations = Operations(session, Mapper(session), config.namespace, defaults)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections, open watches included. Closing a view does nothing: the connections are another's."""
        if self._owned is not None:
            await self._owned.aclose()

    def drop_writes(self) -> None:
        """Reset the connections of writes under way: they end with `ConnectionLost`, and what of them has not arrived
        at the server never will.
        """
        self._operations.session.drop_writes()

    @property
    def answers(self) -> Mapping[tuple[str, str, str], int]:
        """How many answers came so far, by code, method and host; the code of a broken connection is `<error>`."""
        return self._operations.session.answers

    def observe_requests(self, observer: RequestObserver) -> Callable[[], None]:
        """Have `observer` called after each attempt at a request, with its method, host, path, code and duration.

        Views of this client, and what `separate` makes of it, are observed, too. Returns an unsubscribe function.
        """
        return self._operations.session.observe(observer)

    @property
    def skipped(self) -> Skipped:
        """The objects that lists leave out because they cannot be decoded."""
        return self._operations.skipped

    @property
    def namespace(self) -> str:
        """Where single objects are looked for when nothing else is said."""
        return self._operations.namespace

    def in_namespace(self, namespace: str) -> Client:
        """A view of this client that stays in one namespace, lists and watches too. It shares the connections."""
        view = object.__new__(type(self))
        view._operations = self._operations.scoped(namespace)
        return view

    def separate(self) -> Client:
        """A client of the same server, user and defaults with connections of its own and no rate limit. Close it, too.

        For what must not wait behind the rest of a program. A `transport` that was given to the client is shared.
        """
        operations = self._operations
        client = object.__new__(Client)
        client._owned = session = operations.session.separate()
        client._operations = Operations(
            session, Mapper(session), operations.namespace, operations.defaults, operations.scope
        )
        return client

    # Reading

    async def get(
        self, kind: type[T], name: str | Named, *, namespace: str | None = None, resource_version: str | None = None
    ) -> T:
        """The object of that name. Raises `NotFound` when there is none.

        `resource_version="0"` accepts any age the server has at hand; the default is the newest.
        """
        place = await self._operations.place(kind, name, namespace)
        return await self._operations.get(kind, place, resource_version)

    async def find(self, kind: type[T], name: str | Named, *, namespace: str | None = None) -> T | None:
        """The object of that name, or None. A kind that the server does not have is still the error `NotFound`."""
        place = await self._operations.place(kind, name, namespace)
        try:
            return await self._operations.get(kind, place)
        except NotFound as error:
            if not _says_object_is_missing(error, place):
                raise
            return None

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
    ) -> Listing[T]:
        """The objects of a kind: `async for` reads page by page, `await` gives all of them as a list.

        An object that does not fit its type is left out, logged and counted (see `skipped`); `get` raises of it.
        """
        selection = _selection(labels, fields)

        async def fetch(continue_: str, limit: int) -> Page[T]:
            # A continue token names its revision; asking for another one beside it is an error.
            revision = (
                []
                if continue_
                else [
                    ("resourceVersion", resource_version),
                    ("resourceVersionMatch", resource_version_match),
                ]
            )
            request, response = await self._page(kind, namespace, [*selection, *revision], continue_, limit)
            with readable(response, request):
                metadata, items = split_list(response.body)
            return Page(metadata, self._operations.skipped.decoded(kind, items))

        return Listing(fetch, page_size)

    async def raw_pages(
        self,
        kind: type[Object],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        page_size: int = PAGE_SIZE,
    ) -> AsyncGenerator[tuple[ListMeta, Sequence[Raw]], None]:
        """The same list page by page, each object as the JSON it came as: for those who keep bytes."""
        metadata = ListMeta()
        while True:
            request, response = await self._page(
                kind, namespace, _selection(labels, fields), metadata.continue_, page_size
            )
            with readable(response, request):
                metadata, items = split_list(response.body)
            yield metadata, items
            if not metadata.continue_:
                return

    async def _page(
        self,
        kind: type[Object],
        namespace: str | None,
        parameters: Sequence[Parameter],
        continue_: str,
        limit: int,
    ) -> tuple[object, Response]:
        place = await self._operations.collection(kind, namespace)
        request = place.request("list")
        response = await self._operations.session.request(
            "GET",
            place.path + query([*parameters, ("limit", limit or None), ("continue", continue_)]),
            request=request,
            headers=[_PARTIAL_LIST if issubclass(kind, PartialObject) else ACCEPT_JSON],
        )
        return request, response

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        bookmarks: bool = True,
        timeout: float = WATCH_TIMEOUT,
    ) -> Watch[T]:
        """The changes to the objects of a kind after `resource_version`.

        Without it the objects that exist come first, as ADDED; with `initial_events` a bookmark tells where they end.
        The server ends the watch after `timeout` seconds; a silence of five more seconds is an error, and so is one of
        90 s once the server has sent a bookmark, which it does every minute.
        """
        parameters = [
            *_selection(labels, fields),
            ("watch", True),
            ("allowWatchBookmarks", bookmarks or initial_events or None),
            ("sendInitialEvents", initial_events or None),
            ("resourceVersion", resource_version),
            ("resourceVersionMatch", "NotOlderThan" if initial_events else None),
            ("timeoutSeconds", max(1, round(timeout))),
        ]

        async def connect() -> StreamedResponse:
            place = await self._operations.collection(kind, namespace)
            return await self._operations.session.stream(
                "GET",
                place.path + query(parameters),
                request=place.request("watch"),
                headers=[ACCEPT_PARTIAL if issubclass(kind, PartialObject) else ACCEPT_JSON],
            )

        info = resource_info(kind)
        place = Place(info, "" if info.namespaced is False else self._operations.scope_for(namespace))
        return Watch(kind, str(place.request("watch")), connect, timeout + 5, initial_events=initial_events)

    async def table(
        self,
        kind: type[Object],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
    ) -> Table:
        """The objects of a kind as `kubectl get` shows them: columns and cells, computed by the server."""
        place = await self._operations.collection(kind, namespace)
        request = place.request("list")
        response = await self._operations.session.request(
            "GET", place.path + query(_selection(labels, fields)), request=request, headers=[_TABLE]
        )
        with readable(response, request):
            return decode_model(Table, response.body)

    async def logs(
        self,
        pod: str | Named | Object,
        *,
        namespace: str | None = None,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        timestamps: bool = False,
        since: datetime | int | None = None,
        tail: int | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncGenerator[str, None]:
        """The log of a container, line by line: `async for line in client.logs("web-1", follow=True)`.

        `since` is a time, or a number of seconds; `tail` starts that many lines before the end.
        """
        place = await subresources.pod_place(self._operations, pod, namespace, "log")
        lines = log_lines(
            self._operations.session,
            place,
            container=container,
            follow=follow,
            previous=previous,
            timestamps=timestamps,
            since=since,
            tail=tail,
            limit_bytes=limit_bytes,
        )
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def discover(self, api_version: str) -> Sequence[APIResource]:
        """What the server serves in one group and version, subresources included."""
        return await self._operations.mapper.resources(api_version)

    async def serves(self, kind: type[Object]) -> bool:
        """Whether the server has the kind, by its discovery. Raises where discovery does not answer."""
        return await self._operations.mapper.serves(kind)

    @overload
    async def wait_for(self, target: T, expectation: Expectation, *, timeout: float = 60.0) -> T | None: ...

    @overload
    async def wait_for(
        self,
        target: type[T],
        expectation: Expectation,
        *,
        name: str | Named,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> T | None: ...

    async def wait_for(
        self,
        target: T | type[T],
        expectation: Expectation,
        *,
        name: str | Named | None = None,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> T | None:
        """Wait until what is expected holds of an object (given itself, or by kind and name), and return it.

        Returns None when the object is gone and that was expected. Raises `WaitTimeout` telling how it looked last.
        """
        kind, uid = (type(target), target.metadata.uid) if isinstance(target, Object) else (target, "")
        place = await self._operations.place(target, name, namespace)
        return await wait(self, kind, place, expectation, uid=uid, timeout=timeout)

    # Writing

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Create the object. Raises `AlreadyExists` when one of that name is there."""
        return await self._operations.create(obj, WriteOptions(dry_run, field_manager, field_validation))

    async def submit(self, obj: Object) -> None:
        """Create an object that is of no further interest, such as an Event: the answer is not decoded.

        Raises as `create` does.
        """
        await self._operations.submit(obj)

    async def update(
        self,
        obj: T,
        *,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Replace the object. Raises `Conflict` when it changed since it was read.

        What the Python type does not know is sent back as it was read. Status goes out by `client.status.update`: an
        object in which nothing else was changed is refused with a ValueError.
        """
        return await self._operations.update(obj, "", WriteOptions(dry_run, field_manager, field_validation))

    @overload
    async def patch(
        self,
        target: T,
        patch: Patch | None = None,
        *,
        lock: bool | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T: ...

    @overload
    async def patch(
        self,
        target: type[T],
        patch: Patch,
        *,
        name: str | Named,
        namespace: str | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T: ...

    async def patch(
        self,
        target: T | type[T],
        patch: Patch | None = None,
        *,
        name: str | Named | None = None,
        namespace: str | None = None,
        lock: bool | None = None,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Change part of an object, given itself or by kind and name, and return what the server made of it.

        Without a patch, the difference between the object and what it was read as is sent: nothing at all when
        nothing changed. `patch_from(base)` is the difference to another copy. Status goes out by `client.status.patch`:
        if nothing else was changed, that is a ValueError; otherwise `obj` keeps it, and what is returned is without it.

        What somebody else has written meanwhile survives. Fields are sent as they are. Where a list was changed, the
        revision goes with it; if the server has a newer one, the object is read and the change made again on that,
        list items by their keys, a few times. `Conflict` is raised only where both sides changed a list without keys,
        or others are faster each time. `lock=True` sends the revision always and leaves every `Conflict` to the caller,
        which makes a claim of the change; `lock=False` never sends it, and replaces lists whatever they hold by now.
        """
        place = await self._operations.place(target, name, namespace)
        options = WriteOptions(dry_run, field_manager, field_validation)
        return await self._operations.patch(target, patch, place, options, lock)

    async def apply(
        self,
        obj: T,
        *,
        force: bool = False,
        dry_run: bool | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Server-side apply: the fields set in `obj` are ours from now on, those no longer set are given up.

        Raises `Conflict` naming the fields that another manager owns, unless `force` takes them over.
        """
        return await self._operations.apply(obj, "", force, WriteOptions(dry_run, field_manager, field_validation))

    @overload
    async def delete(
        self,
        target: Object,
        *,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None: ...

    @overload
    async def delete(
        self,
        target: type[Object],
        name: str | Named,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None: ...

    async def delete(
        self,
        target: Object | type[Object],
        name: str | Named | None = None,
        *,
        namespace: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool | None = None,
        missing_ok: bool = False,
    ) -> None:
        """Delete an object, given itself or by kind and name. Finalizers and grace periods may keep it a while.

        `uid` and `resource_version` are preconditions: the server answers Conflict when they do not match.
        """
        place = await self._operations.place(target, name, namespace)
        options = self._delete_options(propagation, grace_period, uid, resource_version, dry_run)
        try:
            await self._operations.delete(place, options)
        except NotFound as error:
            if not missing_ok or not _says_object_is_missing(error, place):
                raise

    async def delete_all(
        self,
        kind: type[Object],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> None:
        """Delete all objects of a kind that match. A namespaced kind needs `namespace=`: it is not done across them."""
        place = await self._operations.collection(kind, namespace)
        if place.info.namespaced and not place.namespace:
            raise ValueError(f"delete_all({kind.__name__}) needs namespace=: the server deletes in one at a time")
        options = self._delete_options(propagation, grace_period, None, None, dry_run)
        await self._operations.delete(place, options, query(_selection(labels, fields)))

    # Subresources

    @property
    def status(self) -> Subresource:
        """Status, written apart from the rest: `await client.status.update(obj)`."""
        return Subresource(self._operations, "status")

    def subresource(self, name: str) -> Subresource:
        """Any subresource by name: `await client.subresource("approval").update(request)`."""
        return Subresource(self._operations, name)

    async def get_scale(
        self, target: Object | type[Object], name: str | Named | None = None, *, namespace: str | None = None
    ) -> Scale:
        """The wanted and the actual number of replicas of anything that scales."""
        return await subresources.get_scale(self._operations, target, name, namespace)

    async def scale(
        self,
        target: Object | type[Object],
        name: str | Named | None = None,
        *,
        replicas: int,
        namespace: str | None = None,
        dry_run: bool | None = None,
    ) -> Scale:
        """Ask for a number of replicas: `await client.scale(Deployment, "web", replicas=3)`."""
        return await subresources.set_scale(self._operations, target, replicas, name, namespace, WriteOptions(dry_run))

    async def evict(
        self,
        pod: Object | str | Named,
        *,
        namespace: str | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> None:
        """Ask for a pod to go. Raises `TooManyRequests` when that would break its disruption budget."""
        await subresources.evict(self._operations, pod, namespace, grace_period, WriteOptions(dry_run))

    async def bind(self, pod: Object | str | Named, node: str, *, namespace: str | None = None) -> None:
        """Place a pod on a node, as a scheduler does."""
        await subresources.bind(self._operations, pod, node, namespace)

    async def token(
        self,
        service_account: Object | str | Named,
        *,
        namespace: str | None = None,
        audiences: Sequence[str] = (),
        expiration_seconds: int | None = None,
        bound_to: Object | None = None,
    ) -> TokenRequest:
        """A fresh token of a service account, in `.status.token`; it dies with the object it is `bound_to`."""
        return await subresources.token(
            self._operations, service_account, namespace, audiences, expiration_seconds, bound_to
        )

    def _delete_options(
        self,
        propagation: Propagation | None,
        grace_period: int | None,
        uid: str | None,
        resource_version: str | None,
        dry_run: bool | None,
    ) -> DeleteOptions:
        guarded = uid is not None or resource_version is not None
        return DeleteOptions(
            api_version="v1",
            kind="DeleteOptions",
            propagation_policy=propagation,
            grace_period_seconds=grace_period,
            preconditions=Preconditions(uid=uid, resource_version=resource_version) if guarded else None,
            dry_run=["All"] if self._operations.dry_run(WriteOptions(dry_run)) else [],
        )


def _says_object_is_missing(error: NotFound, place: Place) -> bool:
    """Only then is it gone: kinds not installed and proxies that lost their way answer 404, too, without its name."""
    return error.status.details is not None and error.status.details.name == place.name


def _selection(labels: Labels | None, fields: Fields | None) -> Sequence[Parameter]:
    return [
        ("labelSelector", None if labels is None else label_selector(labels)),
        ("fieldSelector", None if fields is None else field_selector(fields)),
    ]
