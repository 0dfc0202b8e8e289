"""Discovery: what the server serves, in the documents that clients discover it by.

The legacy documents (`/api`, `/apis`, one per group and one per version) and the aggregated ones, which say all of it
at once. All are made of the catalog alone, at the first request, and again when the catalog has changed.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from weakref import WeakKeyDictionary

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer
from kubewright.controlplane.embedded.apimachinery.status import no_such_resource
from kubewright.controlplane.embedded.http.exchange import HTTPResponse, failure
from kubewright.controlplane.embedded.http.negotiation import MediaTypeOptions
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# By the priorities of their APIServices; groups of custom resources come after all of these, in the order of the names.
_GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
)
# Custom resources list their verbs in the order in which the real server has them in a constant, all others sorted.
_CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_CUSTOM_SUBRESOURCES = ("status", "scale")
# What the real server keeps in a version that is not served: its hash shows it.
_STORED_AS = {
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): ("admissionregistration.k8s.io", "v1beta1"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): ("admissionregistration.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("apiextensions.k8s.io", "v1beta1"),
}
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = ("", "beta", "alpha")


@dataclass(frozen=True, slots=True)
class AnnouncedSubresource:
    """How a subresource is announced. Without a kind it has the resource's, without a group it is in the resource's."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    kind: str = ""
    group: str = ""
    version: str = ""


_CREATE = ("create",)
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")
# Those of the core group that are no ordinary part of their object, by the plural of the resource.
_SUBRESOURCES: dict[str, AnnouncedSubresource] = {
    "namespaces/finalize": AnnouncedSubresource("finalize", ("update",)),
    "nodes/proxy": AnnouncedSubresource("proxy", _PROXY, "NodeProxyOptions"),
    "pods/attach": AnnouncedSubresource("attach", _STREAM, "PodAttachOptions"),
    "pods/binding": AnnouncedSubresource("binding", _CREATE, "Binding"),
    "pods/eviction": AnnouncedSubresource("eviction", _CREATE, "Eviction", "policy", "v1"),
    "pods/exec": AnnouncedSubresource("exec", _STREAM, "PodExecOptions"),
    "pods/log": AnnouncedSubresource("log", ("get",)),
    "pods/portforward": AnnouncedSubresource("portforward", _STREAM, "PodPortForwardOptions"),
    "pods/proxy": AnnouncedSubresource("proxy", _PROXY, "PodProxyOptions"),
    "serviceaccounts/token": AnnouncedSubresource("token", _CREATE, "TokenRequest", "authentication.k8s.io", "v1"),
    "services/proxy": AnnouncedSubresource("proxy", _PROXY, "ServiceProxyOptions"),
}
_SCALE = AnnouncedSubresource("scale", kind="Scale", group="autoscaling", version="v1")


def discovery_response(
    path: str, wanted: MediaTypeOptions, catalog: Catalog, *, address: str = "127.0.0.1", if_none_match: str = ""
) -> HTTPResponse | None:
    """The response to a GET of a discovery path; None for any other path.

    `address` is where clients reach the server. The aggregated documents have an ETag: 304 for clients that have it
    already.
    """
    steps = path.strip("/").split("/")
    if len(steps) > 3 or steps[0] not in ("api", "apis") or (steps[0] == "api" and len(steps) > 2):
        return None
    documents = _documents_of(catalog)
    # There is no aggregated form but v2: clients that know v2beta1 only accept the legacy documents as well.
    is_aggregated = (wanted.kind, wanted.version) == ("APIGroupDiscoveryList", "v2")
    match steps:
        case ["api"] if is_aggregated:
            return documents.aggregated("/api", lambda: aggregated_core(catalog), if_none_match)
        case ["apis"] if is_aggregated:
            return documents.aggregated("/apis", lambda: aggregated_groups(catalog), if_none_match)
        case ["api"]:
            return documents.plain(f"/api {address}", lambda: legacy_versions(address))
        case ["apis"]:
            return documents.plain("/apis", lambda: groups(catalog))
        case ["api", version]:
            return documents.plain(f"/api/{version}", lambda: resources(catalog, "", version))
        case ["apis", name]:
            return documents.plain(f"/apis/{name}", lambda: group(catalog, name))
        case ["apis", name, version]:
            return documents.plain(f"/apis/{name}/{version}", lambda: resources(catalog, name, version))
    return None


def legacy_versions(address: str) -> JSONObject:
    """`/api`: the versions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def groups(catalog: Catalog) -> JSONObject:
    """`/apis`: every group but the core one, the most important first."""
    listed: list[JSONValue] = [
        _group(name, versions) for name, versions in _versions_by_group(catalog.all()).items() if name
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(catalog: Catalog, name: str) -> JSONObject:
    """`/apis/<group>`; empty when nothing is served there."""
    versions = _versions_by_group(catalog.all()).get(name)
    if not versions or not name:
        return {}
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(catalog: Catalog, group: str, version: str) -> JSONObject:
    """`/apis/<group>/<version>`, or `/api/<version>` for the core group; empty when nothing is served there."""
    served = _sorted(resource for resource in catalog.all() if resource.gvk[:2] == (group, version))
    if not served:
        return {}
    listed: list[JSONValue] = []
    for resource in served:
        listed.append(_resource(resource))
        listed.extend(_subresource(resource, found) for found in announced_subresources(resource))
    opening: JSONObject = {"kind": "APIResourceList"}
    if group:
        opening["apiVersion"] = "v1"
    return {**opening, "groupVersion": f"{group}/{version}" if group else version, "resources": listed}


def aggregated_core(catalog: Catalog) -> JSONObject:
    """`/api` in the aggregated form."""
    return _aggregated(resource for resource in catalog.all() if not resource.gvk.group)


def aggregated_groups(catalog: Catalog) -> JSONObject:
    """`/apis` in the aggregated form."""
    return _aggregated(resource for resource in catalog.all() if resource.gvk.group)


@dataclass(slots=True)
class _Documents:
    """The documents of one catalog, encoded, as of one generation."""

    generation: int
    made: dict[str, HTTPResponse] = field(default_factory=dict)

    def plain(self, key: str, make: Callable[[], JSONObject]) -> HTTPResponse:
        """A legacy document. Only existing paths are cached: there is no limit to the others."""
        if (found := self.made.get(key)) is not None:
            return _copy(found)
        content = make()
        if not content:
            return self._missing(key)
        self.made[key] = made = HTTPResponse(200, msgspec.json.encode(content) + b"\n")
        return _copy(made)

    def aggregated(self, path: str, make: Callable[[], JSONObject], if_none_match: str) -> HTTPResponse:
        """An aggregated document, with the hash of it as its ETag."""
        key = f"{path} aggregated"
        if key not in self.made:
            body = msgspec.json.encode(make()) + b"\n"
            tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
            headers = [("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public")]
            self.made[key] = HTTPResponse(200, body, _AGGREGATED, headers)
        response = _copy(self.made[key])
        if if_none_match and response.headers[0][1] in if_none_match:
            return HTTPResponse(304, headers=response.headers)
        return response

    def _missing(self, key: str) -> HTTPResponse:
        """Of a built-in group, an unknown version is a Status; for a group that does not exist it is a plain 404."""
        steps = key.strip("/").split("/")
        if steps[0] == "api" or (len(steps) == 3 and steps[1] in _GROUPS):
            return failure(no_such_resource())
        headers = [("X-Content-Type-Options", "nosniff")]
        return HTTPResponse(404, b"404 page not found\n", "text/plain; charset=utf-8", headers)


_documents: WeakKeyDictionary[Catalog, _Documents] = WeakKeyDictionary()


def _documents_of(catalog: Catalog) -> _Documents:
    found = _documents.get(catalog)
    if found is None or found.generation != catalog.generation:
        found = _documents[catalog] = _Documents(catalog.generation)
    return found


def _copy(response: HTTPResponse) -> HTTPResponse:
    """A copy, as the caller may add headers to it."""
    return HTTPResponse(response.status, response.body, response.content_type, list(response.headers))


def group_priority(name: str) -> tuple[int, str]:
    """Sorts groups as the real server does."""
    return (_GROUPS.index(name) if name in _GROUPS else len(_GROUPS), name)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sorts versions: v2, v1, v1beta2, v1beta1, v1alpha1, then whatever is named otherwise, by name."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STAGES), 0, 0, version
    return _STAGES.index(found[2] or ""), -bounded_integer(found[1]), -bounded_integer(found[3] or "0"), ""


def _versions_by_group(served: Iterable[ResourceType]) -> dict[str, list[str]]:
    group_versions = sorted(
        {resource.gvk[:2] for resource in served},
        key=lambda group_version: (group_priority(group_version[0]), version_priority(group_version[1])),
    )
    return {
        name: [version for _, version in found]
        for name, found in groupby(group_versions, lambda group_version: group_version[0])
    }


def _group(name: str, versions: Sequence[str]) -> JSONObject:
    listed: list[JSONValue] = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _sorted(served: Iterable[ResourceType]) -> list[ResourceType]:
    return sorted(served, key=lambda resource: resource.plural)


def _verbs(resource: ResourceType) -> list[JSONValue]:
    if resource.custom:
        return [verb for verb in _CUSTOM_VERBS if verb in resource.verbs]
    return [*sorted(resource.verbs)]


def announced_subresources(resource: ResourceType) -> list[AnnouncedSubresource]:
    """What is announced of the subresources of a resource, in that order."""
    if resource.custom:
        names = [name for name in _CUSTOM_SUBRESOURCES if name in resource.subresources]
    else:
        names = sorted(resource.subresources)
    return [_announced(resource, name) for name in names]


def _announced(resource: ResourceType, name: str) -> AnnouncedSubresource:
    if name == "scale":
        return _SCALE
    known = _SUBRESOURCES.get(f"{resource.plural}/{name}") if not resource.gvk.group else None
    return known or AnnouncedSubresource(name)


def _resource(resource: ResourceType) -> JSONObject:
    entry: JSONObject = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.gvk.kind,
        "verbs": _verbs(resource),
    }
    _add_names(entry, resource)
    # What cannot be watched is computed, not stored.
    if "watch" in resource.verbs:
        entry["storageVersionHash"] = _storage_version_hash(resource)
    return entry


def _subresource(resource: ResourceType, subresource: AnnouncedSubresource) -> JSONObject:
    entry: JSONObject = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
    }
    if subresource.group:
        entry |= {"group": subresource.group, "version": subresource.version}
    return entry | {"kind": subresource.kind or resource.gvk.kind, "verbs": list(subresource.verbs)}


def _add_names(entry: JSONObject, resource: ResourceType) -> None:
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)


def _storage_version_hash(resource: ResourceType) -> str:
    gvk = resource.storage or resource.gvk
    group, version = _STORED_AS.get((gvk.group, gvk.kind), gvk[:2])
    return b64encode(hashlib.sha256(f"{group}/{version}/{gvk.kind}".encode()).digest()[:8]).decode()


def _aggregated(served: Iterable[ResourceType]) -> JSONObject:
    everything = _sorted(served)
    listed: list[JSONValue] = []
    for name, versions in _versions_by_group(everything).items():
        found: list[JSONValue] = []
        for version in versions:
            of_version: list[JSONValue] = [
                _aggregated_resource(resource) for resource in everything if resource.gvk[:2] == (name, version)
            ]
            found.append({"version": version, "resources": of_version, "freshness": "Current"})
        metadata: JSONObject = {"name": name} if name else {}
        listed.append({"metadata": metadata, "versions": found})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": listed}


def _aggregated_resource(resource: ResourceType) -> JSONObject:
    entry: JSONObject = {
        "resource": resource.plural,
        "responseKind": _response_kind(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    _add_names(entry, resource)
    subresources: list[JSONValue] = [
        {
            "subresource": subresource.name,
            "responseKind": _response_kind(resource, subresource),
            "verbs": list(subresource.verbs),
        }
        for subresource in announced_subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def _response_kind(resource: ResourceType, subresource: AnnouncedSubresource | None = None) -> JSONObject:
    if subresource is not None and subresource.group:
        return {"group": subresource.group, "version": subresource.version, "kind": subresource.kind}
    # Built-in kinds are left without group and version: those of the document they are announced in.
    group, version = resource.gvk[:2] if resource.custom else ("", "")
    kind = subresource.kind if subresource is not None else ""
    return {"group": group, "version": version, "kind": kind or resource.gvk.kind}
