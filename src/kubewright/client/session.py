"""Authenticated requests, retried where that is safe.

A session puts credentials, impersonation and the user agent on each request, refreshes credentials on 401, and retries
as client-go does: 429 and 5xx when the server says after how long, and reads whose connection broke. A write whose
connection broke is never repeated: whether it took effect is unknown, and the error says so. Each new connection
is made with the client certificate and the authorities of that moment.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import platform
import ssl
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from pathlib import PurePath
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from kubewright.client.answer import Warnings, described, failure, retry_after
from kubewright.client.backoff import Backoff
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import Credential
from kubewright.client.config.tls import Certificate
from kubewright.client.errors import APIError, ConfigError, ConnectionLost, RequestTimeout, TransportError
from kubewright.client.http.transport import HTTPTransport, Response, StreamedResponse, Transport
from kubewright.client.request_observer import RequestAttempt, RequestObserver
from kubewright.client.token_bucket import TokenBucket
from kubewright.client.write_guard import check_write
from kubewright.version import __version__

_log = logging.getLogger(__name__)

MAX_RETRIES = 10
"""As client-go's."""

COMING = Backoff(0.1, 1.0)
"""Between requests for a kind that the server is about to serve."""

_R = TypeVar("_R", Response, StreamedResponse)
_R_co = TypeVar("_R_co", Response, StreamedResponse, covariant=True)

_BROKEN = Backoff(0.1, 30.0)  # between attempts at a read whose connection broke
_MAX_RETRY_AFTER = 30.0


class _Send(Protocol[_R_co]):
    """`Transport.request` or `Transport.stream`."""

    def __call__(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        *,
        timeout: float | None,
    ) -> Awaitable[_R_co]: ...


class Session:
    """A server, and our identity on it."""

    def __init__(
        self,
        config: Config,
        *,
        transport: Transport | None = None,
        user_agent: str | None = None,
        rate_limit: TokenBucket | None = None,
        timeout: float | None = 30.0,
        on_warning: Callable[[str], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.config = config
        self._rate_limit = rate_limit
        self._timeout = timeout
        self._sleep = sleep
        self.explain_not_found: Callable[[str, APIError], Awaitable[APIError | None]] | None = None
        """What a 404 for a path that names no object means: the error to raise; None to ask again, for the resource is
        going to be served."""
        self._warnings = Warnings(on_warning)
        self._is_closed = False
        self.answers: dict[tuple[str, str, str], int] = {}
        self._observers: list[RequestObserver] = []  # shared with what `separate` makes
        self._host = urlsplit(config.server).netloc
        self._trusted = config.tls
        self._complaint = ""  # why the authorities could not be reread
        self._certificate: Certificate | None = None
        self._context: ssl.SSLContext | None = None
        self._has_own_transport = transport is None
        self._closes_transport = True
        self._transport: Transport = transport or self._new_transport()
        self._headers = [("User-Agent", user_agent or default_user_agent())]
        if config.impersonate is not None:
            self._headers += config.impersonate.headers()

    def request(
        self,
        method: str,
        target: str,
        *,
        request: object,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
    ) -> Coroutine[object, None, Response]:
        """The successful response to a request. Raises `APIError` for any other; `request` describes it in errors."""
        return self._answered(self._transport.request, method, target, headers, body, request)

    def stream(
        self,
        method: str,
        target: str,
        *,
        request: object,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Coroutine[object, None, StreamedResponse]:
        """The successful response to a request, once its head has arrived. The caller closes it."""
        return self._answered(self._transport.stream, method, target, headers, None, request)

    async def aclose(self) -> None:
        """Close all connections. Requests under way end with `ConnectionLost`."""
        self._is_closed = True
        if self._closes_transport:
            await self._transport.aclose()

    def drop_writes(self) -> None:
        """See `Client.drop_writes`."""
        if isinstance(self._transport, HTTPTransport):
            self._transport.drop_writes()

    def observe(self, observer: RequestObserver) -> Callable[[], None]:
        """See `Client.observe_requests`."""
        self._observers.append(observer)
        return partial(self._observers.remove, observer)

    def separate(self) -> Session:
        """The same server and user over connections of its own, without a rate limit; answers are counted together.

        A transport that was passed in is shared, since only its maker can make another; this session closes it.
        """
        session = copy.copy(self)
        session._rate_limit = None
        session._closes_transport = self._has_own_transport
        if self._has_own_transport:
            session._transport = session._new_transport()
        return session

    async def _answered(
        self,
        send: _Send[_R],
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        request: object,
    ) -> _R:
        """The first successful response; the error of the first failure that is not to be retried."""
        if self._is_closed:
            raise RuntimeError(
                f"{request}: the client is closed: use it within its `async with` block, or before aclose()"
            )
        refreshed = False
        now = asyncio.get_running_loop().time
        for number in range(MAX_RETRIES + 1):
            if self._rate_limit is not None:
                await self._rate_limit.acquire()
            credential: Credential = await self.config.credentials.current()
            if credential.certificate is not self._certificate:
                self._change_certificate(credential.certificate)
            last = number == MAX_RETRIES
            fields = (*self._headers, *credential.headers.items(), *headers)
            if method not in ("GET", "HEAD"):
                check_write()
            begun = now()
            try:
                response = await send(method, target, fields, body, timeout=self._timeout)
            except TransportError as error:
                self._count("<error>", method, target, now() - begun)
                if not isinstance(error, ConnectionLost) or method not in ("GET", "HEAD") or last or self._is_closed:
                    raise described(error, request) from error
                await self._sleep(_BROKEN.delay(number + 1))
                continue
            self._count(str(response.status), method, target, now() - begun)
            if response.status < 300:
                self._warnings.read(response.headers, request)
                return response
            if last:
                break
            if response.status == 404:
                missing: APIError | None = failure(404, response.headers, await self._rest(response, request), request)
                if self.explain_not_found is not None and missing is not None and not missing.status.names_object:
                    missing = await self.explain_not_found(target, missing)
                if missing is not None:
                    self._warnings.read(response.headers, request)
                    raise missing
                await self._sleep(COMING.delay(number + 1))
                continue
            if response.status == 401 and not refreshed:
                refreshed = True
                if await self._has_another(credential, response):
                    continue
            pause = retry_after(response.headers) if response.status == 429 or response.status >= 500 else None
            # A longer wait is left to the caller; the error says how long.
            if pause is None or pause > _MAX_RETRY_AFTER:
                break
            await _discard(response)
            await self._sleep(pause)
        self._warnings.read(response.headers, request)
        raise failure(response.status, response.headers, await self._rest(response, request), request)

    def _count(self, code: str, method: str, target: str, seconds: float) -> None:
        key = (code, method, self._host)
        self.answers[key] = self.answers.get(key, 0) + 1
        for observer in self._observers:
            observer(RequestAttempt(method, self._host, target, code, seconds))

    async def _has_another(self, credential: Credential, response: Response | StreamedResponse) -> bool:
        """True when a rejected credential has a successor; `response` is left to the caller only when it has none."""
        renewed = True
        try:
            renewed = await self.config.credentials.rejected(credential)
        finally:
            if renewed:
                await _discard(response)
        return renewed

    async def _rest(self, response: Response | StreamedResponse, request: object) -> bytes:
        """The body of an error response, within the same timeout as any other response."""
        if isinstance(response, Response):
            return response.body
        try:
            async with response, asyncio.timeout(self._timeout):
                return await response.read()
        except TimeoutError:
            raise RequestTimeout(
                f"{request}: the server answered {response.status}, and no complete body within {self._timeout:g} s"
            ) from None
        except TransportError as error:
            raise described(error, request) from error

    def _change_certificate(self, certificate: Certificate | None) -> None:
        changed, self._certificate = certificate != self._certificate, certificate
        if changed:
            self._context = None
            if isinstance(self._transport, HTTPTransport):
                # Connections made with the old certificate are still the old user's.
                self._transport.drop_idle()

    def _new_transport(self) -> HTTPTransport:
        config = self.config
        return HTTPTransport(config.server, tls=self._tls, server_name=config.tls.server_name, proxy=config.proxy)

    async def _tls(self) -> ssl.SSLContext:
        """The context for a new connection; open connections keep the one that they were made with."""
        try:
            trusted = self._trusted.reread()
        except ConfigError as error:
            if self._complaint != str(error):
                self._complaint = str(error)
                _log.warning("the previous certificate authorities stay in use: %s", error)
        else:
            self._complaint = ""
            if trusted is not self._trusted:
                self._trusted, self._context = trusted, None
        if self._context is None:
            self._context = self._trusted.context(self._certificate)
        return self._context


async def _discard(response: Response | StreamedResponse) -> None:
    if isinstance(response, StreamedResponse):
        await response.aclose()


def default_user_agent() -> str:
    """Names kubewright, the platform and the program, as client-go does; servers log it."""
    program = PurePath(sys.argv[0] or "python").name
    return f"kubewright/{__version__} ({platform.system().lower()}/{platform.machine()}) {program}"
