"""How a response is encoded: compact or indented JSON, YAML, compressed."""

from __future__ import annotations

import gzip
from contextlib import suppress

import msgspec

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import QueryParameters
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, as_yaml
from kubewright.controlplane.embedded.http.negotiation import negotiate

_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_LARGE = 128 * 1024


def presented(response: HTTPResponse, request: HTTPRequest, query: QueryParameters) -> HTTPResponse:
    """The response in the encoding that the client requested. A stream is left as it is."""
    if response.stream is not None:
        return response
    try:
        accept = request.header("accept")
        options = negotiate(accept) if response.status < 400 else negotiate(accept, groups=())
    except StatusError:
        # No encoding in common: the error is shown as JSON.
        return indented(response)
    if options.yaml:
        response = as_yaml(response)
    elif options.pretty or _is_for_people(request, query):
        response = indented(response)
    return _compressed(response, request)


def indented(response: HTTPResponse) -> HTTPResponse:
    """JSON by lines, as the real server indents it: by two, and without a line break at the end."""
    if response.content_type.startswith("application/json"):
        with suppress(RecursionError):  # thousands of levels stay compact
            response.body = msgspec.json.format(response.body.rstrip(b"\n"), indent=2)
    return response


def _compressed(response: HTTPResponse, request: HTTPRequest) -> HTTPResponse:
    """The same response, compressed, when it is large and its client accepts that. As in Kubernetes, `q` is ignored."""
    if len(response.body) <= _LARGE:
        return response
    if "gzip" in (part.strip() for part in request.header("accept-encoding").split(",")):
        response.body = gzip.compress(response.body, compresslevel=1, mtime=0)
        response.headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    return response


def _is_for_people(request: HTTPRequest, query: QueryParameters) -> bool:
    if requested := query.text("pretty"):
        return requested in _TRUE
    return request.header("user-agent").startswith(_PEOPLE)
