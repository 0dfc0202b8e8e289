"""One client of a `Server`: its requests are read one after the other and answered in that order.

It knows bytes, limits and time; what the answer is, the server decides. A request that is answered at once costs no
task and no timer: of all time limits of a connection the next one counts, and one timer is enough for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextvars import copy_context
from functools import lru_cache, partial
from typing import cast
from urllib.parse import parse_qs, unquote

import httptools

from kubewright.manager.serving import EndpointRequest, EndpointResponse, Server

MAX_HEAD = 16 * 1024
"""Bytes of request line and header fields."""
HEAD_TIMEOUT = 10.0
"""Seconds in which a request has to arrive, once it has begun."""
FIRST_TIMEOUT = 5.0
"""Seconds in which the first request of a connection has to begin."""
IDLE_TIMEOUT = 90.0
"""Seconds for which a connection may be idle between requests."""
WRITE_TIMEOUT = 30.0
"""Seconds in which a client has to read a response."""
LINGER = 1.0
"""Seconds in which a client whose request was refused has to stop sending."""

_MAX_PARTS = 8192  # a chunk of a few bytes takes ten times as much memory
_READ_SIZE = 16 * 1024  # TLS has no longer records
_TICK = 0.002  # the timer of an event loop may be early by that


class ServedConnection(asyncio.BufferedProtocol):
    """Guarantee: every request is answered, or the connection closed; whatever its client does, it ends."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser = httptools.HttpRequestParser(self)
        # The request that is being read
        self._buffer = memoryview(bytearray(_READ_SIZE))
        self._method = ""
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._body: list[bytes] = []
        self._body_size = 0
        self._unfinished = 0
        self._is_receiving = False  # from the end of the header fields to the end of the body
        self._is_deaf = False  # nothing is read any more
        # What is to be answered: requests, and at the end the refusal of one
        self._waiting: deque[tuple[EndpointRequest, bool]] = deque()
        self._refusal: EndpointResponse | None = None
        self._task: asyncio.Task[EndpointResponse] | None = None
        # What was sent
        self._is_paused = False  # until the client takes it
        self._is_lingering = False
        self._is_closed = False
        self._is_lost = False
        # What the client has time for
        self._awaited = ""
        self._patience = FIRST_TIMEOUT
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self.is_aborted = False
        """True once it was closed without waiting for anything."""
        self.waits_since: float | None = self._loop.time()
        """Since when it waits for its client to send or to take something; None while a handler is at work."""

    @property
    def is_busy(self) -> bool:
        """False while nothing of a request has come but, at most, a part of its header fields."""
        is_answering = self._task is not None or self._is_paused or self._is_lingering
        return is_answering or self._is_receiving or len(self._waiting) > 0

    def abort(self) -> None:
        """Close at once, also while a handler is at work."""
        self.is_aborted = True
        if not self._is_lost:
            self._transport.abort()
        if self._task is not None:
            self._task.cancel()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast(asyncio.Transport, transport)
        # Then a response is on its way unless writing is paused. With 0, TLS would pause writing with nothing to write.
        self._transport.set_write_buffer_limits(high=1)
        if self._server.admit(self):
            self._wait()
        else:
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put what the client sends."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Read what the client sent, and answer what is complete."""
        if self._is_deaf:
            return
        self._unfinished += nbytes
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except httptools.HttpParserUpgrade:
            pass  # the client offers an upgrade; the request itself is complete
        except httptools.HttpParserError:
            self._refuse(400, "this is not a request that HTTP/1.1 knows")
        # Of a body in chunks, what is around them may be as long as they are, also the fields behind the last one.
        if self._unfinished > MAX_HEAD + (2 * self._body_size if self._is_receiving else 0):
            self._refuse(431, f"more than {MAX_HEAD} bytes of header fields")
        if self._task is None and not self._is_paused:
            self._proceed()
        elif self._waiting:
            self._transport.pause_reading()  # until that is answered

    def eof_received(self) -> bool:
        """The client sends nothing any more; without TLS it may still read what it asked for."""
        self._is_deaf = True
        has_more = self._task is not None or self._is_paused
        return has_more and self._transport.get_extra_info("sslcontext") is None

    def pause_writing(self) -> None:
        """The client is slower than we are."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """The client took everything."""
        self._is_paused = False
        if self._task is None and not self._is_lost:
            self._proceed()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed."""
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        # They refer back: memory would be held until garbage is collected, which is a long time after.
        del self._parser, self._transport, self._timer
        if self._task is None:
            self._server.gone(self)

    # Answering

    def _proceed(self) -> None:
        """Answer what has come, as far as nothing has to be waited for."""
        if self._transport.is_closing():
            return
        while self._waiting and not self._is_paused:
            request, is_last = self._waiting.popleft()
            self._awaited = ""
            # What a handler sets in its context is not there for the next request.
            answer = copy_context().run(self._server.answer, request)
            if not isinstance(answer, EndpointResponse):
                self.waits_since = None
                self._task = self._loop.create_task(answer)
                self._task.add_done_callback(partial(self._answered, request.method, is_last))
                return
            self._send(answer, request.method, is_last)
        if not self._is_paused and not self._is_lingering:
            if self._refusal is not None:
                self._send_refusal(self._refusal)
            elif self._is_deaf or (self._server.is_closing and not self._is_receiving):
                self._is_closed = True
                self._transport.close()
            elif not self._transport.is_reading():
                self._transport.resume_reading()
        self._wait()

    def _answered(self, method: str, is_last: bool, task: asyncio.Task[EndpointResponse]) -> None:
        self._task = None
        if self._is_lost:
            self._server.gone(self)
        elif task.cancelled():
            self.abort()
        else:
            self._send(task.result(), method, is_last)
            self._proceed()

    def _send(self, answer: EndpointResponse, method: str, is_last: bool) -> None:
        if is_last or self._server.is_closing:
            is_last = self._is_deaf = True
            self._refusal = None
            self._waiting.clear()
        self._patience = IDLE_TIMEOUT
        self._write(answer, is_last, answer.body if method != "HEAD" else b"")

    def _send_refusal(self, answer: EndpointResponse) -> None:
        """Send the last response, and let the client finish sending: closing at once would discard the response."""
        self._is_lingering = True
        self._write(answer, True, answer.body)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        if not self._transport.is_reading():
            self._transport.resume_reading()

    def _write(self, answer: EndpointResponse, is_last: bool, body: bytes) -> None:
        head = _head(answer.status, answer.content_type, self._server.methods, is_last)
        self._transport.write(b"%b%d\r\n\r\n%b" % (head, len(answer.body), body))

    # Time

    def _wait(self) -> None:
        """Give the client time for what it has to do next; more of the same does not give it more."""
        if self._is_lingering:
            awaited, seconds = "end", LINGER
        elif self._is_paused or self._is_closed:
            awaited, seconds = "reading", WRITE_TIMEOUT
        elif self._unfinished:
            awaited, seconds = "rest", HEAD_TIMEOUT
        else:
            awaited, seconds = "request", self._patience
        if awaited == self._awaited:
            return
        self._awaited = awaited
        self.waits_since = now = self._loop.time()
        self._deadline = now + seconds
        if self._timer is None or self._fires_at > self._deadline:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._fires_at = self._deadline
        self._timer = self._loop.call_at(self._deadline, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self._task is not None:
            return
        if self._loop.time() < self._deadline - _TICK:
            self._set_timer()
        elif self._is_lingering and not self._is_paused:
            self._transport.close()
        else:
            self.abort()

    # Called by the parser

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._headers, self._head_size = b"", {}, 0
        self._body, self._body_size = [], 0

    def on_url(self, url: bytes) -> None:
        """A part of the URL."""
        self._url += url
        self._head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field. Those behind a body do not count: what they would be for is decided."""
        if self._is_receiving:
            return
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._head_size += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        """The end of the header fields."""
        server = self._server
        self._method = self._parser.get_method().decode("latin-1")
        if self._head_size > MAX_HEAD:
            self._refuse(431, f"more than {MAX_HEAD} bytes of header fields")
        elif self._method not in server.methods:
            self._refuse(405, f"only {' and '.join(server.methods)} are answered here")
        elif (
            (length := int(self._headers.get("content-length", "0"))) > server.max_body_size
            and length > server.body_limit(self._url)
        ) or (not server.max_body_size and "transfer-encoding" in self._headers):
            self._refuse_body()
        else:
            self._is_receiving = True

    def on_body(self, part: bytes) -> None:
        """A part of the body."""
        self._body_size += len(part)
        server = self._server
        if self._body_size <= server.max_body_size or self._body_size <= server.body_limit(self._url):
            self._body.append(part)
        else:
            self._body = []
            self._refuse_body()

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._unfinished = 0
        self._is_receiving = False
        if self._is_deaf:
            return
        try:
            path, parameters = _location(self._url)
        except (httptools.HttpParserError, ValueError, AttributeError):
            self._refuse(400, "this is not a path")
            return
        self._is_deaf = not self._parser.should_keep_alive() or self._parser.should_upgrade()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._waiting.append((EndpointRequest(path, parameters, self._headers, self._method, body), self._is_deaf))

    def _refuse_body(self) -> None:
        limit = self._server.body_limit(self._url)
        self._refuse(413, f"a body of more than {limit} bytes is not taken here" if limit else "no body is taken here")

    def _refuse(self, status: int, reason: str) -> None:
        if not self._is_deaf:
            self._is_deaf, self._is_receiving = True, False
            self._refusal = EndpointResponse(status, body=f"{reason}\n".encode())


@lru_cache(maxsize=64)
def _location(url: bytes) -> tuple[str, Mapping[str, list[str]]]:
    """Path and parameters; clients ask for the same ones over and over."""
    parsed = httptools.parse_url(url)
    path = unquote(parsed.path.decode("ascii"), errors="strict")
    return path, parse_qs((parsed.query or b"").decode("ascii"), keep_blank_values=True)


@lru_cache(maxsize=64)
def _head(status: int, content_type: str, methods: tuple[str, ...], is_last: bool) -> bytes:
    """The head of a response, but for the number at its end."""
    from http import HTTPStatus  # not before there is something to answer

    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    return (
        f"HTTP/1.1 {status} {phrase}\r\n"
        f"Content-Type: {content_type}\r\nX-Content-Type-Options: nosniff\r\nAllow: {', '.join(methods)}\r\n"
        f"Connection: {'close' if is_last else 'keep-alive'}\r\nContent-Length: "
    ).encode()
