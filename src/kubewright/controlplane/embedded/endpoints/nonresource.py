"""Everything that is no resource and no discovery: the version, health, the index of paths, and the keys of tokens."""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.status import no_such_method
from kubewright.controlplane.embedded.auth.tokens import CONFIGURATION_PATH, JWKS_PATH, TokenSigner
from kubewright.controlplane.embedded.endpoints.health import CHECKS, health_response
from kubewright.controlplane.embedded.endpoints.request import QueryParameters
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.http.negotiation import check_representation
from kubewright.controlplane.embedded.http.presentation import indented
from kubewright.controlplane.embedded.registry.catalog import Catalog

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
_INDEX = ("/", "/index.html")
_OPENAPI = ("/openapi/v2", "/openapi/v3")
_AN_HOUR = "public, max-age=3600"


class NonResourceEndpoints:
    """The paths of one server. `signer` makes the tokens of service accounts."""

    def __init__(self, catalog: Catalog, signer: TokenSigner) -> None:
        self._catalog = catalog
        self._signer = signer
        self.url = ""
        """Where clients find this server; empty as long as it listens nowhere."""

    def respond(self, request: HTTPRequest, path: str, query: QueryParameters) -> HTTPResponse | None:
        """The response to a request for one of these paths; None for any other path. Raises StatusError."""
        if path in _INDEX:
            return indented(json_response({"paths": self.paths()}))
        if path.rstrip("/") == "/version":
            if request.method != "GET":
                raise no_such_method()
            check_representation(request.header("accept"), ("application/json",))
            return indented(json_response(VERSION))
        if path == JWKS_PATH:
            return _for_an_hour(self._signer.keys(), "application/jwk-set+json")
        if path == CONFIGURATION_PATH:
            return _for_an_hour(self._signer.configuration(self.url), "application/json")
        return health_response(path, query)

    def paths(self) -> list[JSONValue]:
        """What the index lists: every path that is served, in order."""
        found = {CONFIGURATION_PATH, JWKS_PATH, "/api", "/apis", "/apis/", "/metrics", "/version", *_OPENAPI}
        for resource in self._catalog.all():
            group, version = resource.gvk[:2]
            found |= {f"/apis/{group}", f"/apis/{group}/{version}"} if group else {f"/api/{version}"}
        for name, checks in CHECKS.items():
            found |= {f"/{name}", *(f"/{name}/{check}" for check in checks)}
        return [*sorted(found)]


def _for_an_hour(content: JSONObject, content_type: str) -> HTTPResponse:
    response = json_response(content)
    response.body = response.body.rstrip(b"\n")
    response.content_type = content_type
    response.headers.append(("Cache-Control", _AN_HOUR))
    return response
