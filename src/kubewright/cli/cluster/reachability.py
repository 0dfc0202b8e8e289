"""Whether there is an API server at an address: one request, and if it fails, what is probably wrong.

A client repeats reads whose connection broke, for more than a minute. Who has written a wrong address is to know at
once.
"""

from __future__ import annotations

from typing import Final

from kubewright.client import Config
from kubewright.client.config.tls import TLS, Certificate
from kubewright.client.errors import (
    ConnectionFailed,
    ConnectionLost,
    ProtocolError,
    RequestTimeout,
    TransportError,
)
from kubewright.client.http.transport import HTTPTransport, Response

_TARGET: Final = "/version"
_MAX_SECONDS: Final = 10.0
_HINTS: Final[dict[type[TransportError], str]] = {
    ConnectionFailed: "is the cluster running, and can this machine reach it?",
    ConnectionLost: "is it an API server, or does something on the way end connections?",
    RequestTimeout: "it takes connections and does not answer: is it an API server, and is it well?",
    ProtocolError: "it is not an API server",
}


class Unreachable(TransportError):
    """No API server answers at an address. The message has what was tried, and what is probably wrong."""


async def check_reachable(config: Config, *, timeout: float) -> None:
    """Return when the server has answered one request, whatever its answer. Raises `Unreachable`.

    No token is sent: that it answers is enough, and it may be another server than the one that is meant.
    """
    certificate = (await config.credentials.current()).certificate
    try:
        response = await _response(config, config.server, config.tls, certificate, min(timeout, _MAX_SECONDS))
    except TransportError as error:
        hint = await _hint(config, error)
        raise Unreachable(f"cannot reach {config.server}: {error}{f'; {hint}' if hint else ''}") from None
    if response.status == 400 and await _speaks_tls(config):
        raise Unreachable(f"cannot use {config.server}: it answered 400 to GET {_TARGET}; {_tls_address(config)}")


async def _response(config: Config, server: str, tls: TLS, certificate: Certificate | None, timeout: float) -> Response:
    transport = HTTPTransport(
        server,
        tls=tls.context(certificate) if server.startswith("https:") else None,
        server_name=tls.server_name,
        proxy=config.proxy,
        connect_timeout=timeout,
    )
    try:
        return await transport.request("GET", _TARGET, timeout=timeout)
    finally:
        await transport.aclose()


async def _hint(config: Config, error: TransportError) -> str:
    is_connected = not isinstance(error, ConnectionFailed | RequestTimeout)
    if is_connected and await _speaks_tls(config):
        return _tls_address(config)
    return next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), "")


async def _speaks_tls(config: Config) -> bool:
    """Whether a server whose address starts with http:// would answer to https://."""
    if not config.server.startswith("http:"):
        return False
    try:
        await _response(config, _https(config), TLS(verify=False), None, _MAX_SECONDS)
    except TransportError:
        return False
    return True


def _tls_address(config: Config) -> str:
    return f"it speaks TLS: its address is {_https(config)}"


def _https(config: Config) -> str:
    return f"https{config.server.removeprefix('http')}"
