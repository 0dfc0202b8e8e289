"""The RESTMapper: the plural and the scope of kinds that Python knows only by name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import convert, field

from kubewright.api.codec import decode_model
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.api.model import BuiltIn
from kubewright.api.resources import Object, ResourceInfo, resource_info
from kubewright.client.answer import readable
from kubewright.client.errors import (
    APIError,
    KubernetesError,
    NoSuchKind,
    NotFound,
    ProtocolError,
    Status,
    StatusDetails,
)
from kubewright.client.paths import api_root, may_be_custom, resource_at
from kubewright.client.session import COMING, MAX_RETRIES, Session

if TYPE_CHECKING:
    from kubewright.client.definitions import Definitions


class APIResource(BuiltIn):
    """One entry of a server's discovery: a kind, or a subresource of it (then the name has a slash)."""

    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    group: str = ""
    version: str = ""
    verbs: list[str] = []
    short_names: list[str] = []
    categories: list[str] = []


class _APIResourceList(BuiltIn):
    kind: str = ""
    resources: list[APIResource] = field(default_factory=list)


class _PublishedKind(BuiltIn):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Components(BuiltIn):
    schemas: dict[str, JSONObject] = field(default_factory=dict)


class _OpenAPI(BuiltIn):
    components: _Components = field(default_factory=_Components)


class _GroupVersion(BuiltIn):
    group_version: str = ""


class _APIGroup(BuiltIn):
    versions: list[_GroupVersion] = field(default_factory=list)


class _APIGroupList(BuiltIn):
    kind: str = ""
    groups: list[_APIGroup] = field(default_factory=list)


class Mapper:
    """Answers from the type where it knows, else from the server's discovery, which is read once per group and version.

    A kind that discovery did not have is looked up again next time: its definition may have been installed since.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        session.explain_not_found = self._explain_not_found
        self._known: dict[GroupVersionKind, ResourceInfo] = {}

    def known(self, kind: type[Object]) -> ResourceInfo | None:
        """All that is needed to address a kind; None when that takes discovery: see `info`."""
        info = kind.__naming__.info or resource_info(kind)
        return info if info.namespaced is not None else self._known.get(info.gvk)

    async def info(self, kind: type[Object]) -> ResourceInfo:
        """All that is needed to address a kind. Raises `NoSuchKind` when the server does not serve it.

        A kind that a definition declares is waited for, some seconds: discovery lags behind.
        """
        known = self.known(kind)
        if known is not None:
            return known
        gvk = resource_info(kind).gvk
        failures = 0
        while gvk not in self._known:
            try:
                await self._discover(gvk)
            except NotFound:
                failures += 1
                if failures > MAX_RETRIES or not await self._definitions().claim_kind(gvk):
                    raise
                await asyncio.sleep(COMING.delay(failures))
        return self._known[gvk]

    def _definitions(self) -> Definitions:
        # Imported where used: most programs never meet a kind that the server does not serve (yet).
        from kubewright.client.definitions import Definitions

        return Definitions(self._session)

    async def resources(self, api_version: str) -> list[APIResource]:
        """What the server serves in one group and version, subresources included."""
        return (await self._resource_list(api_version)).resources

    async def schemas(self, api_version: str) -> dict[str, JSONObject]:
        """The schemas of the kinds in one group and version, from the OpenAPI document of that."""
        wanted = GroupVersionKind.parse(api_version, "*")
        request = f"read the schemas of {api_version}"
        response = await self._session.request("GET", f"/openapi/v3{api_root(wanted)}", request=request)
        with readable(response, request):
            document = decode_model(_OpenAPI, response.body)
        return {
            gvk.kind: schema
            for schema in document.components.schemas.values()
            for gvk in convert(schema.get("x-kubernetes-group-version-kind", []), list[_PublishedKind])
            if (gvk.group, gvk.version) == (wanted.group, wanted.version)
        }

    async def _resource_list(self, api_version: str) -> _APIResourceList:
        root = api_root(GroupVersionKind.parse(api_version, "*"))
        request = f"discover {api_version}"
        response = await self._session.request("GET", root, request=request)
        with readable(response, request):
            return decode_model(_APIResourceList, response.body)

    async def serves(self, kind: type[Object]) -> bool:
        """Whether discovery has the kind now. Raises where discovery does not say: a 404 alone may be a proxy's."""
        gvk = resource_info(kind).gvk
        served = await self._served(gvk.api_version)
        return any(resource.kind == gvk.kind and "/" not in resource.name for resource in served)

    async def _served(self, api_version: str) -> list[APIResource]:
        """What discovery has in one group and version; none when it has no such version, which it must confirm."""
        try:
            found = await self._resource_list(api_version)
        except NotFound:
            if "/" not in api_version or await self._lists_version(api_version):
                raise
            return []
        _check_kind(found.kind, "APIResourceList", f"discover {api_version}")
        return found.resources

    async def _explain_not_found(self, target: str, error: APIError) -> APIError | None:
        """See `Session.explain_not_found`."""
        resource = resource_at(target)
        if resource is None:
            return error
        group, version, plural = resource
        if await self._definitions().claim_resource(group, version, plural):
            return None
        api_version = f"{group}/{version}" if group else version
        try:
            served = await self._served(api_version)
        except KubernetesError:
            return error
        if any(each.name == plural for each in served):
            return error
        return _no_such_kind(group, plural, f"{plural} in {api_version}", error.request)

    async def _lists_version(self, api_version: str) -> bool:
        request = "discover API groups"
        response = await self._session.request("GET", "/apis", request=request)
        with readable(response, request):
            found = decode_model(_APIGroupList, response.body)
        _check_kind(found.kind, "APIGroupList", request)
        return any(version.group_version == api_version for group in found.groups for version in group.versions)

    async def _discover(self, gvk: GroupVersionKind) -> None:
        try:
            resources = await self.resources(gvk.api_version)
        except NotFound:
            resources = []
        for resource in resources:
            if "/" not in resource.name:
                subresources = {
                    other.name.partition("/")[2] for other in resources if other.name.startswith(f"{resource.name}/")
                }
                found = GroupVersionKind(gvk.group, gvk.version, resource.kind)
                self._known[found] = ResourceInfo(
                    gvk=found,
                    plural=resource.name,
                    namespaced=resource.namespaced,
                    singular=resource.singular_name,
                    short_names=tuple(resource.short_names),
                    categories=tuple(resource.categories),
                    subresources=frozenset(subresources),
                )
        if gvk not in self._known:
            kinds = ", ".join(sorted({resource.kind for resource in resources})) or "none"
            raise _no_such_kind(gvk.group, gvk.kind, f"{gvk.kind} in {gvk.api_version} (kinds there: {kinds})")


def _no_such_kind(group: str, kind: str, described: str, request: str = "") -> NoSuchKind:
    fix = "is its CustomResourceDefinition installed?" if may_be_custom(group) else "is the server older than the kind?"
    message = f"the server has no such kind, {described}: {fix}"
    details = StatusDetails(group=group, kind=kind)
    return NoSuchKind(Status(code=404, reason="NotFound", message=message, details=details), request)


def _check_kind(found: str, expected: str, request: str) -> None:
    if found != expected:
        raise ProtocolError(f'{request}: the server answered with the kind "{found}": expected {expected}')
