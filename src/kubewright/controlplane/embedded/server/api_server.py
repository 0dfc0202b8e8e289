"""The API server's handler chain.

It has no sockets: `respond` takes an `HTTPRequest` and returns an `HTTPResponse`, whether the request came over a
network or from a client in the same process. Every request runs through the same chain: injected faults,
authentication, impersonation, authorization, the handler; and is recorded in the audit log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kubewright.controlplane.embedded.admission.pods import AccountMissing
from kubewright.controlplane.embedded.apimachinery.decoding import MAX_BODY_SIZE, too_large
from kubewright.controlplane.embedded.apimachinery.status import (
    StatusError,
    bad_request,
    no_such_method,
    no_such_resource,
    too_large_to_store,
)
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.impersonation import Impersonator
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.discovery import discovery_response
from kubewright.controlplane.embedded.endpoints.nonresource import NonResourceEndpoints
from kubewright.controlplane.embedded.endpoints.request import (
    QueryParameters,
    Target,
    parse_query,
    parse_target,
    requested_name,
)
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, failure
from kubewright.controlplane.embedded.http.negotiation import check_representation, negotiate
from kubewright.controlplane.embedded.http.presentation import presented
from kubewright.controlplane.embedded.http.warning_headers import warning_headers
from kubewright.controlplane.embedded.openapi import openapi_response
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore, Services
from kubewright.controlplane.embedded.rest.dispatch import dispatch
from kubewright.controlplane.embedded.rest.freshness import NotReached, reached
from kubewright.controlplane.embedded.rest.routing import check_route, is_nowhere
from kubewright.controlplane.embedded.rest.suspension import Settled, Suspended
from kubewright.controlplane.embedded.server.audit import AuditEvent, AuditLog
from kubewright.controlplane.embedded.server.deadline import deadline, out_of_time
from kubewright.controlplane.embedded.server.faults import ConnectionCut, Faults
from kubewright.controlplane.embedded.server.metrics import metrics_response
from kubewright.controlplane.embedded.server.readers import OutsideReaders
from kubewright.controlplane.embedded.storage.store import TooLarge

# What is read for these is not from the real server's watch cache.
_FRESH = frozenset(("get", "delete", "deletecollection"))

_log = logging.getLogger("kubewright.controlplane")


@dataclass(frozen=True, slots=True)
class _ParsedRequest:
    """A request taken apart."""

    target: Target
    query: QueryParameters
    user: UserInfo


class APIServer:
    """One Kubernetes API, in memory."""

    def __init__(
        self,
        services: Services,
        conversions: Mapping[str, ObjectStore],
        *,
        endpoints: NonResourceEndpoints,
        faults: Faults,
        audit: AuditLog,
    ) -> None:
        self.services = services
        self.catalog: Catalog = services.catalog
        self.faults = faults
        self.audit = audit
        self.readers = OutsideReaders()
        self._converted = {name: replace(services, store=store) for name, store in conversions.items()}
        self._impersonator = Impersonator(services.authorizer)
        self.endpoints = endpoints

    async def respond(self, request: HTTPRequest) -> HTTPResponse:
        """The response to a request. Raises only `ConnectionCut`, for a fault."""
        query = parse_query(request.query)
        target = parse_target(request.method, request.path, query)
        user: UserInfo | None = None
        warnings: list[str] = []
        annotations: dict[str, str] = {}
        is_refreshed = not request.is_internal and self.readers.concerns(target)
        try:
            await self.faults.strike(target)
            if is_refreshed:
                await self.readers.refresh(target)
            seconds = deadline(target, query)
            user = self._identify(request, target)
            parsed = _ParsedRequest(target, query, user)
            try:
                response = self._handle(request, parsed, warnings, annotations)
            except (AccountMissing, NotReached, Suspended) as error:
                try:
                    async with asyncio.timeout(seconds) as own_time:
                        response = await self._resumed(error, request, parsed, warnings, annotations)
                except TimeoutError:
                    if not own_time.expired():
                        raise
                    response = out_of_time()
            await response.complete()
        except ConnectionCut:
            raise
        except StatusError as error:
            response = presented(failure(error), request, query)
        except TooLarge as error:
            response = presented(failure(too_large_to_store(error.size)), request, query)
        except RecursionError:
            # Bodies are cut to what can be followed (`nesting.py`); the text within a field may still nest deeper.
            response = presented(failure(bad_request("exceeded max depth")), request, query)
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            response = failure(StatusError(500, "InternalError", "Internal error occurred: see the server's log"))
        await response.complete()
        if warnings:
            response.headers += [("Warning", value) for value in warning_headers(warnings)]
        now = self.services.clock()
        named = replace(target, name=requested_name(target, query))
        self.audit.record(AuditEvent.of(request, named, user, response.status, now, annotations))
        if response.stream is not None:
            if is_refreshed:
                response.stream = self.readers.through(response.stream, target)
            is_framed = response.content_type != "application/json"
            response.stream = self.faults.through(
                response.stream, target, is_internal=request.is_internal, is_framed=is_framed
            )
        return response

    async def _resumed(
        self,
        stop: AccountMissing | NotReached | Suspended,
        request: HTTPRequest,
        parsed: _ParsedRequest,
        warnings: list[str],
        annotations: dict[str, str],
    ) -> HTTPResponse:
        """Handle a request again, whenever what it was stopped for has come.

        A missing account and a revision of the future are waited for once.
        """
        settled: Settled = {}
        awaited: set[type[Exception]] = set()
        while True:
            if isinstance(stop, Suspended):
                settled.update(await stop.outcomes())
            elif type(stop) in awaited:
                raise stop
            elif isinstance(stop, NotReached):
                await reached(self.services.store, stop.requested, self.services.patience)
            else:
                await stop.come(self.services.store)
            awaited.add(type(stop))
            warnings.clear()
            annotations.clear()
            try:
                return self._handle(request, parsed, warnings, annotations, settled)
            except (AccountMissing, NotReached, Suspended) as again:
                stop = again

    def _identify(self, request: HTTPRequest, target: Target) -> UserInfo:
        user = self.services.authenticator.authenticate(request.certificate, request.header("authorization") or None)
        impersonation = self._impersonator.impersonate(request.repeated, Attributes.of(target, user))
        return user if impersonation is None else impersonation.user

    def _handle(
        self,
        request: HTTPRequest,
        parsed: _ParsedRequest,
        warnings: list[str],
        annotations: dict[str, str],
        settled: Settled | None = None,
    ) -> HTTPResponse:
        if len(request.body) > MAX_BODY_SIZE:
            raise too_large()
        if not parsed.target.resource:
            return self._non_resource(request, parsed)
        target = parsed.target
        name = requested_name(target, parsed.query)
        self.services.authorizer.require(Attributes.of(target, parsed.user)._replace(name=name))
        if not self.catalog.serves(target.group, target.version):
            if self.catalog.is_built_in(target.group):
                raise no_such_resource()
            return _page_not_found()
        resource = self.catalog.find(target.group, target.version, target.resource)
        if resource is None:
            raise no_such_resource()
        if is_nowhere(target, resource):
            return _page_not_found()
        check_route(target, resource, request.method)
        if not resource.custom:
            check_representation(request.header("accept"), streamed=target.verb in ("list", "watch"))
        services = self._converted.get(str(resource.gvk), self.services)
        if resource.view is not None:
            settled = {} if settled is None else settled
            is_fresh = target.verb in _FRESH
            services = replace(services, store=resource.view(services.store, settled, is_fresh))
        if resource.deprecation:
            warnings.append(resource.deprecation)
        call = Call(
            services,
            resource,
            target,
            parsed.query,
            parsed.user,
            request.header("user-agent"),
            warnings,
            annotations,
            settled,
        )
        wanted = negotiate(request.header("accept"), is_custom=resource.custom)
        return presented(dispatch(call, request, wanted), request, parsed.query, is_custom=resource.custom)

    def _non_resource(self, request: HTTPRequest, parsed: _ParsedRequest) -> HTTPResponse:
        path = parsed.target.path
        self.services.authorizer.require(Attributes.of(parsed.target, parsed.user))
        found = self.endpoints.respond(request, path, parsed.query)
        if found is not None:
            return found
        if path == "/metrics":
            return metrics_response(self.audit, self.faults.open_streams(), self.services)
        if path.startswith("/openapi/"):
            found = openapi_response(request, self.catalog)
        else:
            found = self._discovery(request, parsed)
        return _page_not_found() if found is None else found

    def _discovery(self, request: HTTPRequest, parsed: _ParsedRequest) -> HTTPResponse | None:
        path = parsed.target.path
        is_list_of_groups = path.rstrip("/") == "/apis"
        if not is_list_of_groups and path.startswith("/api"):
            check_representation(request.header("accept"))
        wanted = negotiate(request.header("accept"), groups=("apidiscovery.k8s.io",))
        address = self.endpoints.url.partition("://")[2]
        has = request.header("if-none-match")
        found = discovery_response(path, wanted, self.catalog, address=address, if_none_match=has)
        if found is None:
            return None
        # The list of groups is answered whatever the method is.
        if request.method != "GET" and not is_list_of_groups:
            raise no_such_method()
        return presented(found, request, parsed.query)


def _page_not_found() -> HTTPResponse:
    """The real server's response for paths of no API group."""
    headers = [("X-Content-Type-Options", "nosniff")]
    return HTTPResponse(404, b"404 page not found\n", "text/plain; charset=utf-8", headers)
