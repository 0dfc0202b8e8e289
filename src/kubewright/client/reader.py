"""`Reader`: the half of a client that reads, from a single object to a watch."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast, overload

from msgspec import Raw

from kubewright.api.codec import decode_model, split_list
from kubewright.api.dynamic import PartialObject
from kubewright.api.markers import JSONObject
from kubewright.api.meta import ListMeta
from kubewright.api.resources import Object, resource_info
from kubewright.api.selectors import Fields, Labels
from kubewright.client.answer import readable
from kubewright.client.arguments import check_kind, check_scope, kind_and_name
from kubewright.client.endpoint import Endpoint, RequestDescription
from kubewright.client.errors import NotFound
from kubewright.client.http.transport import Response, StreamedResponse
from kubewright.client.listing import Page, PagedList
from kubewright.client.mapping import APIResource
from kubewright.client.operations import ACCEPT_JSON, ACCEPT_PARTIAL, Operations
from kubewright.client.paths import ObjectName, Parameter, query
from kubewright.client.selector_parameters import selector_parameters
from kubewright.client.watch import Watch

if TYPE_CHECKING:
    from kubewright.client.table import Table
    from kubewright.client.wait import Expectation

T = TypeVar("T", bound=Object)

PAGE_SIZE = 500
WATCH_TIMEOUT = 290.0
"""Seconds after which a watch is asked to end: below the five minutes after which many load balancers cut."""

_PARTIAL_LIST = ("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
_TABLE = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")


class Reader:
    """Reads objects of any kind. Base of `Client`."""

    _operations: Operations

    @overload
    async def get(self, target: T, /, *, resource_version: str | None = None) -> T: ...

    @overload
    async def get(
        self,
        target: type[T],
        /,
        name: ObjectName,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
    ) -> T: ...

    async def get(
        self,
        target: T | type[T],
        /,
        name: ObjectName | None = None,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """The object, given by kind and name or by itself, as it is now. Raises `NotFound` when there is none.

        The name is text, a key such as a reconcile request, or another object of the same namespace and name.
        `resource_version="0"` accepts any age the server has at hand; the default is the newest.
        """
        kind, which = kind_and_name(target, name)
        endpoint = await self._operations.endpoint(kind, which, namespace)
        return await self._operations.get(kind, endpoint, resource_version)

    @overload
    async def find(self, target: T, /) -> T | None: ...

    @overload
    async def find(self, target: type[T], /, name: ObjectName, *, namespace: str | None = None) -> T | None: ...

    async def find(
        self, target: T | type[T], /, name: ObjectName | None = None, *, namespace: str | None = None
    ) -> T | None:
        """As `get`, but None when there is no such object. A kind that the server does not serve is still an error."""
        kind, which = kind_and_name(target, name)
        endpoint = await self._operations.endpoint(kind, which, namespace)
        try:
            return await self._operations.get(kind, endpoint)
        except NotFound as error:
            if not error.is_about(endpoint.name):
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
    ) -> PagedList[T]:
        """The objects of a kind: `async for` reads page by page, `await` gives all of them as a list.

        An object that does not fit its type is left out, logged and counted (see `skipped`); `get` raises of it.
        """
        check_kind(kind)
        selected = selector_parameters(kind, labels, fields)

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
            request, response = await self._page(kind, namespace, [*selected, *revision], continue_, limit)
            with readable(response, request):
                metadata, items = split_list(response.body)
            return Page(metadata, self._operations.skipped.decoded(kind, items))

        return PagedList(fetch, page_size)

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
                kind, namespace, selector_parameters(kind, labels, fields), metadata.continue_, page_size
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
    ) -> tuple[RequestDescription, Response]:
        endpoint = await self._operations.collection(kind, namespace)
        request = endpoint.request("list")
        response = await self._operations.session.request(
            "GET",
            endpoint.path + query([*parameters, ("limit", limit or None), ("continue", continue_)]),
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

        Without it the objects that exist come first, as ADDED; with `initial_events` a bookmark marks their end.
        The server ends the watch after `timeout` seconds; a silence of five more seconds is an error, and so is one of
        90 s once the server has sent a bookmark, which it does every minute.
        """
        parameters = [
            *selector_parameters(kind, labels, fields),
            ("watch", True),
            ("allowWatchBookmarks", bookmarks or initial_events or None),
            ("sendInitialEvents", initial_events or None),
            ("resourceVersion", resource_version),
            ("resourceVersionMatch", "NotOlderThan" if initial_events else None),
            ("timeoutSeconds", max(1, round(timeout))),
        ]

        async def connect() -> StreamedResponse:
            endpoint = await self._operations.collection(kind, namespace)
            return await self._operations.session.stream(
                "GET",
                endpoint.path + query(parameters),
                request=endpoint.request("watch"),
                headers=[ACCEPT_PARTIAL if issubclass(kind, PartialObject) else ACCEPT_JSON],
            )

        check_kind(kind)
        info = resource_info(kind)
        check_scope(info, namespace)
        endpoint = Endpoint(info, "" if info.namespaced is False else self._operations.scope_for(namespace))
        return Watch(kind, str(endpoint.request("watch")), connect, timeout + 5, initial_events=initial_events)

    async def table(
        self,
        kind: type[Object],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
    ) -> Table:
        """The objects of a kind as `kubectl get` shows them: columns and cells, computed by the server."""
        from kubewright.client.table import Table  # for command lines

        endpoint = await self._operations.collection(kind, namespace)
        request = endpoint.request("list")
        response = await self._operations.session.request(
            "GET", endpoint.path + query(selector_parameters(kind, labels, fields)), request=request, headers=[_TABLE]
        )
        with readable(response, request):
            return decode_model(Table, response.body)

    async def discover(self, api_version: str) -> Sequence[APIResource]:
        """What the server serves in one group and version, subresources included."""
        return await self._operations.mapper.resources(api_version)

    async def schemas(self, api_version: str) -> Mapping[str, JSONObject]:
        """The schemas of the kinds in one group and version, which need no right to read definitions.

        They are those of the server's OpenAPI document, which follows a change of a definition a moment later.
        References to other schemas are left as they are.
        """
        return await self._operations.mapper.schemas(api_version)

    async def serves(self, kind: type[Object]) -> bool:
        """Whether the server serves the kind now, by its discovery. Raises where discovery does not answer.

        For optional kinds, whose CustomResourceDefinition may not be installed: requests for a kind that the server
        does not serve raise `NoSuchKind`.
        """
        check_kind(kind)
        return await self._operations.mapper.serves(kind)

    @overload
    async def wait_for(
        self, target: T, expectation: Expectation | Callable[[T], object], /, *, timeout: float = 60.0
    ) -> T | None: ...

    @overload
    async def wait_for(
        self,
        target: type[T],
        name: ObjectName,
        expectation: Expectation | Callable[[T], object],
        /,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> T | None: ...

    async def wait_for(
        self,
        target: T | type[T],
        name: ObjectName | Expectation | Callable[[T], object],
        expectation: Expectation | Callable[[T], object] | None = None,
        /,
        *,
        namespace: str | None = None,
        timeout: float = 60.0,
    ) -> T | None:
        """Wait until what is expected holds of an object (given itself, or by kind and name), and return it.

        What is expected is one of `kubewright.client.wait`, such as `ready` or `Field("spec.x").equals(1)`, or a
        function of the object, such as `lambda pod: pod.status.phase == "Running"`, which is called while there is one.
        Returns None when the object is gone and that was expected. Raises `WaitTimeout`, which describes the object as
        it was seen last.
        """
        from kubewright.client.wait import Expectation, expectation_of, wait  # for scripts and tests

        which = None
        if expectation is None and isinstance(target, Object):
            expectation = cast("Expectation | Callable[[T], object]", name)
        elif expectation is not None or not isinstance(name, Expectation):
            which = cast(ObjectName, name)
        endpoint = await self._operations.endpoint(target, which, namespace)
        kind, uid = (type(target), target.metadata.uid) if isinstance(target, Object) else (target, "")
        return await wait(self, kind, endpoint, expectation_of(expectation), uid=uid, timeout=timeout)
