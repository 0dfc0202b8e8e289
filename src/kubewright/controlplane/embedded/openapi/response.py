"""The responses to requests for OpenAPI documents, made at the first request and again when the catalog has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from weakref import WeakKeyDictionary

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.api.time import unix_now
from kubewright.controlplane.embedded.apimachinery.document import mapping
from kubewright.controlplane.embedded.endpoints.discovery import group_priority, version_priority
from kubewright.controlplane.embedded.endpoints.request import parse_query
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.openapi.documents import document_of
from kubewright.controlplane.embedded.openapi.protobuf import document_bytes
from kubewright.controlplane.embedded.openapi.version2 import document_v2
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.version import __version__

_INDEX = "/openapi/v3"
_VERSION_2 = "/openapi/v2"
_YEAR = 365 * 24 * 3600
_JSON = "application/json"
_PROTOBUF_2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ACCEPTED = {_JSON: _JSON, "application/*": _JSON, "*/*": _JSON}
_ACCEPTED_2 = {**_ACCEPTED, _PROTOBUF_2: _PROTOBUF_2, _PROTOBUF_2.replace("v2.v1", "v2@v1"): _PROTOBUF_2}


def openapi_response(request: HTTPRequest, catalog: Catalog) -> HTTPResponse | None:
    """The response to a GET below `/openapi`, with 304 where the client has it already; None for any other path."""
    path = request.path.rstrip("/")
    documents = _documents_of(catalog)
    if path == _INDEX:
        return HTTPResponse(200, documents.index(), "text/plain; charset=utf-8")
    if path == _VERSION_2:
        return _answer(request, documents.version_2_hash(), documents.version_2, _ACCEPTED_2)
    if not path.startswith(f"{_INDEX}/"):
        return None
    group_version = path.removeprefix(f"{_INDEX}/")
    hash_ = documents.hashes().get(group_version)
    if hash_ is None:
        return HTTPResponse(404)
    wanted = parse_query(request.query).text("hash")
    if wanted and wanted != hash_:
        headers = [("Location", f"{_INDEX}/{group_version}?hash={hash_}"), ("ETag", f'"{hash_}"'), ("Vary", "Accept")]
        return HTTPResponse(301, headers=headers)
    response = _answer(request, hash_, lambda _: documents.version_3(group_version), _ACCEPTED)
    if wanted and response.status == 200:
        expires = formatdate(unix_now() + _YEAR, usegmt=True)
        response.headers += [("Cache-Control", "public, immutable"), ("Expires", expires)]
    return response


def _answer(
    request: HTTPRequest, hash_: str, make: Callable[[str], bytes], accepted: Mapping[str, str]
) -> HTTPResponse:
    """The document in the first of the forms that the client accepts."""
    ranges = [part.partition(";")[0].strip() for part in request.header("accept").split(",")]
    forms = [accepted[found] for found in ranges if found in accepted]
    if any(ranges) and not forms:
        return HTTPResponse(406, headers=[("Vary", "Accept")])
    headers = [("ETag", f'"{hash_}"'), ("Vary", "Accept")]
    if hash_ in request.header("if-none-match"):
        return HTTPResponse(304, headers=headers)
    form = forms[0] if forms else _JSON
    return HTTPResponse(200, make(form), form, headers=headers)


@dataclass(slots=True)
class _Documents:
    """The documents of one catalog, encoded, as of one generation.

    A hash is one of what a document is made of, so that the index, which has them all, costs no document.
    """

    generation: int
    served: dict[str, list[ResourceType]]
    _hashes: dict[str, str] = field(default_factory=dict)
    _made: dict[str, bytes] = field(default_factory=dict)

    def hashes(self) -> dict[str, str]:
        if not self._hashes:
            self._hashes = {group_version: _hash(resources) for group_version, resources in self.served.items()}
        return self._hashes

    def index(self) -> bytes:
        paths = {
            group_version: {"serverRelativeURL": f"{_INDEX}/{group_version}?hash={hash_}"}
            for group_version, hash_ in self.hashes().items()
        }
        return msgspec.json.encode({"paths": paths})

    def version_3(self, group_version: str) -> bytes:
        if group_version not in self._made:
            self._made[group_version] = msgspec.json.encode(self._document(group_version))
        return self._made[group_version]

    def version_2_hash(self) -> str:
        return hashlib.sha512("".join(self.hashes().values()).encode()).hexdigest().upper()

    def version_2(self, form: str) -> bytes:
        if form not in self._made:
            document = document_v2(map(self._document, self.served))
            self._made[form] = document_bytes(document) if form == _PROTOBUF_2 else msgspec.json.encode(document)
        return self._made[form]

    def _document(self, group_version: str) -> JSONObject:
        resources = self.served[group_version]
        group, version = resources[0].gvk[:2]
        return document_of(group, version, resources)


_cached: WeakKeyDictionary[Catalog, _Documents] = WeakKeyDictionary()


def _documents_of(catalog: Catalog) -> _Documents:
    found = _cached.get(catalog)
    if found is None or found.generation != catalog.generation:
        found = _cached[catalog] = _Documents(catalog.generation, _by_version(catalog))
    return found


def _by_version(catalog: Catalog) -> dict[str, list[ResourceType]]:
    served: dict[str, list[ResourceType]] = {}
    for resource in sorted(
        catalog.all(),
        key=lambda found: (group_priority(found.gvk.group), version_priority(found.gvk.version), found.plural),
    ):
        group, version = resource.gvk[:2]
        served.setdefault(f"apis/{group}/{version}" if group else f"api/{version}", []).append(resource)
    return served


def _hash(resources: Sequence[ResourceType]) -> str:
    made_of = [
        (*resource.gvk, resource.plural, sorted(resource.verbs), sorted(resource.subresources), _source(resource))
        for resource in resources
    ]
    return hashlib.sha512(msgspec.json.encode((__version__, made_of))).hexdigest().upper()


def _source(resource: ResourceType) -> JSONObject:
    """What the schema of a custom resource is made of; those of built-in kinds come with this version of kubewright."""
    return mapping({"schema": resource.schema or {}}) if resource.custom else {}
