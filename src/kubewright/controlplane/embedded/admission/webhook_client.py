"""Calling a webhook: where it is, one HTTPS request, and errors as Go's HTTP client words them.

Each call has a connection of its own, so that there is nothing to close, and a rotated certificate matters at once.
"""

from __future__ import annotations

import asyncio
import posixpath
import socket
import ssl
from base64 import b64decode
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools
import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.decoding import decode_json
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.rest.call import ObjectStore

_HTTPS = 443
_CHUNK = 65536
_MAX_SHOWN = 2048
_REFUSALS = {
    HTTPStatus.CONFLICT: "the server reported a conflict",
    HTTPStatus.NOT_FOUND: "the server could not find the requested resource",
    HTTPStatus.BAD_REQUEST: "the server rejected our request for an unknown reason",
    HTTPStatus.UNAUTHORIZED: "the server has asked for the client to provide credentials",
    HTTPStatus.METHOD_NOT_ALLOWED: "the server does not allow this method on the requested resource",
    HTTPStatus.UNPROCESSABLE_ENTITY: "the server rejected our request due to an error in our request",
    HTTPStatus.SERVICE_UNAVAILABLE: "the server is currently unable to handle the request",
    HTTPStatus.GATEWAY_TIMEOUT: "the server was unable to return a response in the time allotted, but may still be "
    "processing the request",
    HTTPStatus.TOO_MANY_REQUESTS: "the server has received too many requests and has asked us to try again later",
}
_OWN_MESSAGE = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_ACCEPTABLE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
# Of OpenSSL: names and addresses that a certificate is not for.
_OTHER_NAME, _OTHER_ADDRESS, _EXPIRED, _NOT_YET_VALID = 62, 64, 10, 9


class CallFailed(Exception):
    """A webhook that could not be called, or whose answer is none."""


class _Endpoint(NamedTuple):
    """How a webhook is named, and where it listens."""

    authority: str
    path: str
    server_name: str
    host: str
    port: int


async def call_webhook(configuration: JSONObject, body: bytes, seconds: int, store: ObjectStore) -> bytes:
    """The answer to a POST to what a `clientConfig` names. Raises CallFailed."""
    endpoint = _by_service(configuration) if "service" in configuration else _by_url(text(configuration, "url"))
    target = f"{endpoint.path}?timeout={seconds}s"
    try:
        async with asyncio.timeout(seconds):
            if "service" in configuration:
                endpoint = _resolved(endpoint, mapping(configuration, "service"), store)
            bundle = text(configuration, "caBundle")
            try:
                return await _posted(endpoint, target, body, _trusting(bundle))
            except ssl.SSLCertVerificationError as error:
                if error.verify_code not in (_OTHER_NAME, _OTHER_ADDRESS):
                    raise
                why = f"tls: failed to verify certificate: x509: {await _other_names(endpoint, bundle)}"
    except (OSError, EOFError, _Unreachable, httptools.HttpParserError) as error:
        why = _why(error, endpoint)
    raise CallFailed(f"Post {quoted(f'https://{endpoint.authority}{target}')}: {why}")


def answered_object(body: bytes) -> JSONObject:
    """The JSON object that a webhook answered. Raises CallFailed when it is none."""
    try:
        answer = decode_json(body, [], "couldn't get version/kind; json parse error: ")
    except StatusError as error:
        raise CallFailed(error.message) from None
    if not isinstance(answer, dict):
        raise CallFailed(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {json_kind(answer)} into Go value of "
            r'type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
        )
    return answer


def check_kind(answer: JSONObject, group: str, kind: str, version: str) -> None:
    """Raises CallFailed when an answer is of another kind, or version, than what was asked; not when it is of none."""
    api_version, answered = text(answer, "apiVersion"), text(answer, "kind")
    if not api_version or not answered or (api_version, answered) == (f"{group}/{version}", kind):
        return
    other = api_version.rpartition("/")[2]
    if (api_version, answered) in ((f"{group}/v1", kind), (f"{group}/v1beta1", kind)):
        raise CallFailed(f"converting ({other}.{kind}) to ({version}.{kind}): unknown conversion")
    registered = f"no kind {quoted(answered)} is registered for version {quoted(api_version)}"
    raise CallFailed(f'{registered} in scheme "pkg/runtime/scheme.go:111"')


def _by_url(url: str) -> _Endpoint:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return _Endpoint(parts.netloc, _cleaned(parts.path), host, host, parts.port or _HTTPS)


def _by_service(configuration: JSONObject) -> _Endpoint:
    service = mapping(configuration, "service")
    given = at(service, "port")
    port = given if isinstance(given, int) else _HTTPS
    server_name = f"{text(service, 'name')}.{text(service, 'namespace')}.svc"
    return _Endpoint(f"{server_name}:{port}", _cleaned(text(service, "path")), server_name, "", port)


def _cleaned(path: str) -> str:
    """With single slashes, and none at the end: envtest of Go projects writes two at the beginning."""
    return "/" + posixpath.normpath(f"/{path}").lstrip("/")


class _Unreachable(Exception):
    """A service without an address."""


def _resolved(endpoint: _Endpoint, reference: JSONObject, store: ObjectStore) -> _Endpoint:
    """The endpoint with the address of a service: its external name, or what its endpoint slices have."""
    namespace, name = text(reference, "namespace"), text(reference, "name")
    service = store.get(f"/core/services/{namespace}/{name}")
    if service is None:
        raise _Unreachable(f"service {quoted(name)} not found")
    if text(service.value, "spec", "type") == "ExternalName":
        return endpoint._replace(host=text(service.value, "spec", "externalName"))
    if text(service.value, "spec", "clusterIP") == "None":
        raise _Unreachable('cannot route to service with ClusterIP "None"')
    port = next((each for each in items(service.value, "spec", "ports") if at(each, "port") == endpoint.port), None)
    if port is None:
        raise _Unreachable(f"no service port {endpoint.port} found for service {quoted(name)}")
    for entry in store.range(f"/discovery.k8s.io/endpointslices/{namespace}/").entries:
        if text(entry.value, "metadata", "labels", "kubernetes.io/service-name") != name:
            continue
        for found in items(entry.value, "ports"):
            number = at(found, "port")
            if text(found, "name") != text(port, "name") or not isinstance(number, int):
                continue
            for each in items(entry.value, "endpoints"):
                if at(each, "conditions", "ready") is not False and items(each, "addresses"):
                    return endpoint._replace(host=str(items(each, "addresses")[0]), port=number)
    raise _Unreachable(f"no endpoints available for service {quoted(name)}")


async def _other_names(endpoint: _Endpoint, bundle: str) -> str:
    """What a certificate is valid for, which is not the endpoint: OpenSSL does not say it."""
    _, writer = await asyncio.open_connection(
        endpoint.host, endpoint.port, ssl=_trusting(bundle, is_named=False), server_hostname=endpoint.server_name
    )
    certificate = writer.get_extra_info("peercert")
    writer.transport.abort()
    kind = "IP Address" if _is_address(endpoint.server_name) else "DNS"
    names = ", ".join(name for what, name in certificate.get("subjectAltName", ()) if what == kind)
    if names:
        return f"certificate is valid for {names}, not {endpoint.server_name}"
    if kind == "DNS":
        return f"certificate is not valid for any names, but wanted to match {endpoint.server_name}"
    return f"cannot validate certificate for {endpoint.server_name} because it doesn't contain any IP SANs"


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=32)
def _trusting(bundle: str, *, is_named: bool = True) -> ssl.SSLContext:
    """Trusts what a `caBundle` has, or what the machine trusts when there is none; for other names, too, if said so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = is_named
    if bundle:
        context.load_verify_locations(cadata=b64decode(bundle).decode())
        # As in Go, any certificate of the bundle is trusted, not only roots.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        context.load_default_certs()
    return context


class _Answer:
    """What a parser reads of a response."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.content_type = ""
        self.has_headers = False
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self.content_type = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_headers = True

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _posted(endpoint: _Endpoint, target: str, body: bytes, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection(
        endpoint.host, endpoint.port, ssl=context, server_hostname=endpoint.server_name
    )
    try:
        head = (
            f"POST {target} HTTP/1.1\r\nHost: {endpoint.authority}\r\nUser-Agent: kube-apiserver-admission\r\n"
            f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
            "Connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        while not answer.is_complete:
            received = await reader.read(_CHUNK)
            if not received:
                break
            parser.feed_data(received)
    finally:
        # Not closed in order: nothing more is expected, and no task is to wait for the other side.
        writer.transport.abort()
    if not answer.has_headers:
        raise EOFError
    status = parser.get_status_code()
    if not HTTPStatus.OK <= status <= HTTPStatus.PARTIAL_CONTENT:
        raise CallFailed(_refusal(status, answer))
    if not answer.body:
        content_type = answer.content_type or "application/json"
        raise CallFailed(f"0-length response with status code: {status} and content type: {content_type}")
    return bytes(answer.body)


def _refusal(status: int, answer: _Answer) -> str:
    """What client-go says about a status that is no success."""
    try:
        sent: JSONValue = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        sent = None
    if text(sent, "kind") == "Status" and text(sent, "status") == "Failure":
        return text(sent, "message")
    is_text = not answer.content_type or answer.content_type.startswith("text/")
    message = answer.body[:_MAX_SHOWN].decode(errors="replace").strip() if is_text else "unknown"
    if status in _OWN_MESSAGE:
        return message
    if status in _REFUSALS:
        return _REFUSALS[HTTPStatus(status)]
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"an error on the server ({quoted(message)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _why(error: Exception, endpoint: _Endpoint) -> str:
    """The reason of a failure as Go has it, where it has a counterpart there."""
    address = f"[{endpoint.host}]:{endpoint.port}" if ":" in endpoint.host else f"{endpoint.host}:{endpoint.port}"
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case EOFError() | ConnectionResetError():
            return "EOF"
        case ConnectionRefusedError():
            return f"dial tcp {address}: connect: connection refused"
        case socket.gaierror():
            return f"dial tcp: lookup {endpoint.host}: no such host"
        case ssl.SSLCertVerificationError():
            return f"tls: failed to verify certificate: {_distrust(error)}"
        case ssl.SSLError() if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return "http: server gave HTTP response to HTTPS client"
        case OSError() if error.strerror:
            return f"dial tcp {address}: {error.strerror.lower()}"
    return str(error)


def _distrust(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (_EXPIRED, _NOT_YET_VALID):
        return "x509: certificate has expired or is not yet valid"
    return "x509: certificate signed by unknown authority"
