"""How a response is encoded: JSON, compact or indented, YAML, protobuf, compressed. What is long yields to others."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import QueryParameters
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.http.negotiation import JSON, YAML, negotiate
from kubewright.controlplane.embedded.http.yaml_encoding import yaml_pieces

_PEOPLE = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_LARGE: Final = 128 * 1024
_STEP: Final = 1 << 20
"""Bytes that are compressed at once."""


def presented(
    response: HTTPResponse, request: HTTPRequest, query: QueryParameters, *, is_custom: bool = False
) -> HTTPResponse:
    """The response in the encoding that the client requested. A stream is left as it is.

    `is_custom`: it is an object of a kind that has no protobuf.
    """
    if response.stream is not None:
        return response
    try:
        accept = request.header("accept")
        options = negotiate(accept, is_custom=is_custom) if response.status < 400 else negotiate(accept, groups=())
    except StatusError:
        # No encoding in common: the error is shown as JSON.
        return indented(response)
    if options.content_type != JSON:
        response = _translated(response, options.content_type)
    elif options.pretty or _is_for_people(request, query):
        response = indented(response)
    if "gzip" in (part.strip() for part in request.header("accept-encoding").split(",")):
        response = _compressed(response)
    return response


def _translated(response: HTTPResponse, content_type: str) -> HTTPResponse:
    """What is JSON in another encoding; the parameters of its type stay."""
    if not response.content_type.startswith(JSON):
        return response
    if content_type == YAML:
        response = _continued(response, yaml_pieces)
    else:
        # Most control planes never see a client that requests it.
        from kubewright.controlplane.embedded.protobuf.encoding import protobuf_pieces

        response = _continued(response, protobuf_pieces)
    response.content_type = response.content_type.replace(JSON, content_type)
    return response


def _continued(response: HTTPResponse, follow: Callable[[bytes], Iterator[bytes]]) -> HTTPResponse:
    """What `follow` makes of the body of a response: at once when it is there and small."""
    if response.pieces is None and len(response.body) < _LARGE:
        response.body = b"".join(follow(response.body))
        return response

    def pieces(earlier: Iterator[bytes]) -> Iterator[bytes]:
        body = yield from _whole(earlier)
        yield from follow(body)

    response.pieces = pieces(response.pieces or iter((response.body,)))
    return response


def _whole(pieces: Iterator[bytes]) -> Generator[bytes, None, bytes]:
    """All pieces as one, with a pause after each."""
    made: list[bytes] = []
    for piece in pieces:
        made.append(piece)
        yield b""
    return b"".join(made)


def indented(response: HTTPResponse) -> HTTPResponse:
    """JSON by lines, as the real server indents it: by two, and without a line break at the end."""
    if response.content_type.startswith("application/json"):
        return _continued(response, _indented)
    return response


def _indented(body: bytes) -> Iterator[bytes]:
    compact = body.rstrip(b"\n")
    with suppress(RecursionError):  # thousands of levels stay compact
        compact = msgspec.json.format(compact, indent=2)
    yield compact


def _compressed(response: HTTPResponse) -> HTTPResponse:
    """The same response, compressed when it is large. As in Kubernetes, the `q` of an encoding is ignored."""
    if response.pieces is None and len(response.body) <= _LARGE:
        return response

    def pieces(body: bytes) -> Iterator[bytes]:
        if len(body) <= _LARGE:
            yield body
            return
        response.headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        gzip = zlib.compressobj(level=1, wbits=31)
        for start in range(0, len(body), _STEP):
            yield gzip.compress(body[start : start + _STEP])
        yield gzip.flush()

    return _continued(response, pieces)


def _is_for_people(request: HTTPRequest, query: QueryParameters) -> bool:
    if requested := query.text("pretty"):
        return requested in _TRUE
    return request.header("user-agent").startswith(_PEOPLE)
