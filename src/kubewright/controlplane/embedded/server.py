"""The API server: who asks, may they, what for, and the answer.

It has no sockets: `respond` takes a `Request` and gives a `Response`, whether it came over a network or from a client
in the same process. Every request passes the same stations: faults that a test wants, authentication, impersonation,
authorization, the handler; and is told to the audit stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kubewright.controlplane.embedded.audit import AuditEvent, AuditLog
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.impersonation import Impersonator
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.catalog import Catalog
from kubewright.controlplane.embedded.decoding import LARGEST_BODY, too_large
from kubewright.controlplane.embedded.discovery import discovery_response
from kubewright.controlplane.embedded.exchange import Request, Response, as_yaml, failure, json_response
from kubewright.controlplane.embedded.faults import ConnectionCut, Faults
from kubewright.controlplane.embedded.negotiation import negotiate
from kubewright.controlplane.embedded.openapi import openapi_response
from kubewright.controlplane.embedded.request import Query, Target, parse_query, parse_target
from kubewright.controlplane.embedded.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore, Services
from kubewright.controlplane.embedded.rest.dispatch import dispatch
from kubewright.controlplane.embedded.selectors import parse_field_selector
from kubewright.controlplane.embedded.status import StatusError, method_not_allowed, no_such_resource

_log = logging.getLogger("kubewright.controlplane")

_RBAC = "rbac.authorization.k8s.io"

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.4",
    "gitCommit": "kubewright",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "python",
    "compiler": "kubewright",
    "platform": "any/any",
}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request taken apart."""

    target: Target
    query: Query
    user: UserInfo


class APIServer:
    """One Kubernetes API, in memory."""

    def __init__(
        self,
        services: Services,
        conversions: Mapping[str, ObjectStore],
        *,
        faults: Faults,
        audit: AuditLog,
    ) -> None:
        self.services = services
        self.catalog: Catalog = services.catalog
        self.faults = faults
        self.audit = audit
        self._converted = {name: replace(services, store=store) for name, store in conversions.items()}
        self._impersonator = Impersonator(services.authorizer)
        self._paths: dict[str, Callable[[Request], Response]] = {
            "/version": lambda request: json_response(VERSION),
            "/healthz": _healthy,
            "/livez": _healthy,
            "/readyz": _healthy,
        }

    async def respond(self, request: Request) -> Response:
        """The answer to a request. Raises only `ConnectionCut`, when a fault says so."""
        query = parse_query(request.query)
        target = parse_target(request.method, request.path, query)
        user: UserInfo | None = None
        warnings: list[str] = []
        try:
            await self.faults.strike(target)
            user = self._identify(request, target)
            response = self._handle(request, _Asked(target, query, user), warnings)
        except ConnectionCut:
            raise
        except StatusError as error:
            response = failure(error)
        except Exception:
            _log.exception("%s %s failed", request.method, request.path)
            response = failure(StatusError(500, "InternalError", "Internal error occurred: see the server's log"))
        for warning in dict.fromkeys(warnings):
            quoted = warning.replace("\\", "\\\\").replace('"', '\\"')
            response.headers.append(("Warning", f'299 - "{quoted}"'))
        self.audit.record(AuditEvent.of(request, target, user, response.status, self.services.clock()))
        if response.stream is not None:
            response.stream = self.faults.through(response.stream, target)
        return response

    def _identify(self, request: Request, target: Target) -> UserInfo:
        user = self.services.authenticator.authenticate(request.certificate, request.header("authorization") or None)
        impersonation = self._impersonator.impersonate(request.repeated, _attributes(target, user))
        return user if impersonation is None else impersonation.user

    def _handle(self, request: Request, asked: _Asked, warnings: list[str]) -> Response:
        if len(request.body) > LARGEST_BODY:
            raise too_large()
        if not asked.target.resource:
            return self._non_resource(request, asked)
        target = asked.target
        self.services.authorizer.require(_attributes(target, asked.user)._replace(name=_name_asked_for(asked)))
        if not self.catalog.serves(target.group, target.version):
            return _nowhere()
        resource = self.catalog.find(target.group, target.version, target.resource)
        if resource is None or (target.subresource and target.subresource not in resource.subresources):
            raise no_such_resource()
        if _misplaced(target, resource):
            raise method_not_allowed(resource.plural, resource.gvk.group, request.method)
        if not resource.namespaced and target.namespace and resource.plural != "namespaces":
            raise no_such_resource()
        services = self._converted.get(str(resource.gvk), self.services)
        call = Call(services, resource, target, asked.query, asked.user, request.header("user-agent"), warnings)
        try:
            wanted = negotiate(request.header("accept"))
            response = dispatch(call, request, wanted)
            return as_yaml(response) if wanted.yaml else response
        finally:
            if target.group == _RBAC and target.verb not in ("get", "list", "watch"):
                self.services.authorizer.invalidate()

    def _non_resource(self, request: Request, asked: _Asked) -> Response:
        path = asked.target.path
        self.services.authorizer.require(_attributes(asked.target, asked.user))
        plain = self._paths.get(path.rstrip("/"))
        if plain is not None:
            return plain(request)
        if path.startswith("/openapi/"):
            found = openapi_response(request, self.catalog)
        else:
            found = discovery_response(
                path,
                negotiate(request.header("accept")),
                self.catalog,
                if_none_match=request.header("if-none-match"),
            )
        return _nowhere() if found is None else found


def _attributes(target: Target, user: UserInfo) -> Attributes:
    return Attributes(
        user,
        target.verb,
        target.group,
        target.version,
        target.resource,
        target.subresource,
        target.namespace,
        target.name,
        target.path,
        bool(target.resource),
    )


def _name_asked_for(asked: _Asked) -> str:
    """A list or watch of one object by its name is as good as naming it: rules for single names allow it."""
    if asked.target.verb not in ("list", "watch") or asked.target.name:
        return asked.target.name
    try:
        return parse_field_selector(asked.query.text("fieldSelector")).exact("metadata.name") or ""
    except StatusError:
        return ""  # refused later, with its reason


def _misplaced(target: Target, resource: ResourceType) -> bool:
    """Whether a verb is sent where it cannot be: to a collection what needs a name, or the other way round."""
    if resource.namespaced and not target.namespace and target.verb not in ("list", "watch"):
        return True
    if target.verb == "create":
        return bool(target.name) and not target.subresource
    return target.verb in ("update", "patch") and not target.name


def _nowhere() -> Response:
    """What the real server says of paths that no API group is behind."""
    return Response(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")


def _healthy(request: Request) -> Response:
    return Response(200, b"ok", content_type="text/plain; charset=utf-8")
