"""One HTTP/1.1 connection that carries one exchange at a time.

It knows nothing about pools, proxies or retries: it sends bytes, parses the response from the bytes that come
back, and notifies its owner when it is free again and when it is gone.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Protocol

import httptools

from kubewright.client.errors import ConnectionFailed, ConnectionLost, ProtocolError, RequestTimeout, TransportError
from kubewright.client.http.body import Body
from kubewright.client.http.deadlines import Deadlines
from kubewright.client.http.failure import tls_failure
from kubewright.client.http.response import Headers, Response, StreamedResponse
from kubewright.client.http.tcp import open_socket

# Methods that change nothing (RFC 9110, section 9.2.1). That PUT and DELETE are idempotent is not enough: the second
# may undo what another client did after the first, or be refused because the first has taken effect.
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

# Checked between reads of the socket, so a head that comes in one piece may be one read longer.
MAX_HEAD = 256 * 1024

_RESET = struct.pack("ii", 1, 0)  # linger for no time


class Owner(Protocol):
    """Decides what a connection does next."""

    def release(self, connection: Connection) -> None:
        """The exchange is complete, and the connection can carry another one."""

    def lost(self, connection: Connection) -> None:
        """The connection is closed; its socket is gone."""


class Connection(asyncio.Protocol):
    """Sends a request, collects the response.

    Guarantee: every exchange ends, with a response or with an error. When it ends other than by a complete
    response (cancelled, timed out, cut off, not HTTP), the connection is closed and never released.
    """

    def __init__(
        self, owner: Owner, loop: asyncio.AbstractEventLoop, deadlines: Deadlines, peer: str, max_body: int
    ) -> None:
        self._owner = owner
        self._loop = loop
        self._deadlines = deadlines
        self._peer = peer
        self._max_body = max_body
        self._parser: httptools.HttpResponseParser  # while it is attached
        self._transport: asyncio.Transport | None = None  # what is written to: with TLS, the TLS layer
        self._socket: asyncio.Transport | None = None  # what is read from: the lowest layer
        self._tls = False
        self._closing = False
        self._is_lost = False
        self._loss: Exception | None = None

        # The exchange. A request waits for `_future`; a stream for `_stream_future`, and from then on has a `_body`.
        self._future: asyncio.Future[Response] | None = None
        self._stream_future: asyncio.Future[StreamedResponse] | None = None
        self._body: Body | None = None
        self._is_busy = False
        self._method = ""
        self._timeout = 0.0
        self._status = 0  # 0 until the head is complete
        self._headers: list[tuple[bytes, bytes]] = []
        self._chunks: list[bytes] = []
        self._size = 0  # of the head until it is complete, then of the body

        self.answered = False
        """True when a byte of the response to the latest request has arrived."""
        self.sent = False
        """False when certainly no byte of the latest request has left."""
        self.reused = False
        """True once the connection has carried a complete exchange."""

        # The owner's notes.
        self.counted = False
        self.generation = 0
        self.idle_since = 0.0

    def attach(self, transport: asyncio.Transport, socket: asyncio.Transport) -> None:
        """Start with a connected `transport`; `socket` is its lowest layer."""
        self._tls = transport is not socket
        # With TLS, `connection_lost` is going to be called with the reason. Without, it may have been called before.
        if self._closing or (not self._tls and transport.is_closing()):
            if isinstance(self._loss, ssl.SSLError):
                raise tls_failure(self._peer, self._loss)
            raise ConnectionFailed(f"cannot connect to {self._peer}: the connection was closed as soon as it was made")
        self._transport = transport
        self._socket = socket
        self._parser = httptools.HttpResponseParser(self)

    @property
    def is_usable(self) -> bool:
        """False when the connection is closed or about to be."""
        return not self._closing and self._transport is not None and not self._transport.is_closing()

    @property
    def is_writing(self) -> bool:
        """True while there is an exchange that may change something."""
        return self._is_busy and self._method not in SAFE

    def request(
        self, method: str, message: Sequence[bytes], due: float | None = None, timeout: float = 0.0
    ) -> asyncio.Future[Response]:
        """Send `message`; the future gets the whole response, or `RequestTimeout` if it is not complete at `due`.

        `timeout` is the number of seconds for the error message. A caller that stops waiting calls `give_up`.
        """
        answer: asyncio.Future[Response] = self._loop.create_future()
        self._future = answer
        self._send(method, message, due, timeout)
        return answer

    def give_up(self, answer: asyncio.Future[Response]) -> None:
        """The caller no longer waits for that response."""
        # Unless it came at the same moment: then this connection already serves another request.
        if self._future is answer:
            self.abort()

    async def stream(
        self, method: str, message: Sequence[bytes], due: float | None = None, timeout: float = 0.0
    ) -> StreamedResponse:
        """Send `message` and return the response as soon as its head has arrived; `due` is for the head alone."""
        future: asyncio.Future[StreamedResponse] = self._loop.create_future()
        self._stream_future = future
        self._send(method, message, due, timeout)
        try:
            return await future
        except asyncio.CancelledError:
            if self._stream_future is future:
                self.abort()
            elif not future.cancelled() and future.exception() is None:
                # The head came at the same moment: this body will never be read.
                await future.result().aclose()
            raise
        finally:
            del future  # it holds its error, whose traceback holds this frame

    def abort(self) -> None:
        """Close at once and drop the exchange, if there is one. What has not been received of a write never will be."""
        if self.is_writing and self._socket is not None and (end := open_socket(self._socket)) is not None:
            # A mere close would leave it to the kernel to deliver what is in its buffer, maybe much later.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._forget()
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def fail(self, error: Exception) -> None:
        """End the exchange with `error` and close the connection."""
        future, stream_future, body = self._future, self._stream_future, self._body
        self.abort()
        if body is not None:
            body.end(error)
        elif future is not None and not future.done():
            future.set_exception(error)
        elif stream_future is not None and not stream_future.done():
            stream_future.set_exception(error)

    def expire(self) -> None:
        """The deadline of the exchange has passed."""
        awaited = "complete response" if self._future is not None else "response"
        self.fail(RequestTimeout(f"{self._what}: no {awaited} within {self._timeout:g} s"))

    def pause_reading(self) -> None:
        """Leave further bytes in the socket.

        Not in the TLS layer: a paused one of uvloop drops what it holds when the peer closes.
        """
        if self._socket is not None and self.is_usable:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        """Continue after `pause_reading`."""
        if self._socket is not None and self.is_usable:
            self._socket.resume_reading()

    # What the loop calls.

    def data_received(self, data: bytes) -> None:
        """Parse what came; unexpected bytes close the connection."""
        if not self._is_busy:
            self.abort()
            return
        self.answered = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.fail(self._not_http(error))
        except httptools.HttpParserUpgrade:
            self.fail(ProtocolError(f"{self._what}: the server switched to another protocol, without being asked to"))
        if self._status == 0 and self._is_busy:
            self._size += len(data)
            if self._size > MAX_HEAD:
                self.fail(ProtocolError(f"{self._what}: the head of the response is longer than {MAX_HEAD} bytes"))

    def eof_received(self) -> None:
        """The server will send nothing more. What is left to send is dropped."""
        if self._is_busy:
            self._end_of_input(None)
        else:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange, if there is one."""
        self._closing = self._is_lost = True
        self._loss = exc
        if self._is_busy:
            self._end_of_input(exc)
        self._owner.lost(self)
        if self._transport is not None:
            # They hold this connection as it holds them, and with TLS that is 40 KB which only the garbage collector
            # would find.
            del self._parser
            self._transport = self._socket = None

    # What the parser calls.

    def on_message_begin(self) -> None:
        """A response begins; an unsolicited one must not become the response to the next request."""
        if not self._is_busy:
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field of the head; fields after the body (trailers) are ignored."""
        if self._status == 0:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is complete; an informational one (1xx) announces another."""
        status = self._parser.get_status_code()
        if status < 200:
            self._headers = []
            return
        self._status = status
        self._size = 0
        stream_future = self._stream_future
        if stream_future is not None and not stream_future.done():
            self._stream_future = None
            self._deadlines.discard(self)
            self._body = Body(self, self._loop, self._deadlines, self._what)
            stream_future.set_result(
                StreamedResponse(status, Headers(self._headers), self._body, max_body=self._max_body)
            )
        if self._method == "HEAD":
            # The parser cannot know that no body follows, so it is of no use after this.
            keep_alive = self._parser.should_keep_alive()
            self._parser = httptools.HttpResponseParser(self)
            self._complete(keep_alive)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        self._size += len(data)
        if self._body is not None:
            self._body.feed(data)
        elif self._future is not None:
            self._chunks.append(data)
            if self._size > self._max_body:
                self.fail(ProtocolError(f"{self._what}: the response is longer than max_body, {self._max_body} bytes"))
        else:
            self.abort()

    def on_message_complete(self) -> None:
        """The response is complete, unless it was an informational one."""
        if self._status and self._is_busy:
            self._complete(self._parser.should_keep_alive())

    # How an exchange begins and ends.

    @property
    def _what(self) -> str:
        return f"{self._method} {self._peer}" if self._method else self._peer

    def _send(self, method: str, message: Sequence[bytes], due: float | None, timeout: float) -> None:
        self._is_busy = True
        self._method = method
        self.answered = self.sent = False
        self._timeout = timeout
        if due is not None:
            self._deadlines.add(self, due)
        transport = self._transport
        if self._is_lost:
            self.fail(self._cut_off(self._loss))
        elif transport is not None and not self._closing:
            self.sent = True
            if len(message) == 1:
                transport.write(message[0])
            else:
                transport.writelines(message)
        # Otherwise it is closing, and `connection_lost` is about to be called with the reason.

    def _complete(self, keep_alive: bool = False) -> None:
        future = self._future
        if self._body is not None:
            self._body.end()
        elif future is not None and not future.done():
            chunks = self._chunks
            content = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            future.set_result(Response(self._status, Headers(self._headers), content))
        self._forget()
        self.reused = True
        # After a response that came before the request was sent in full, the rest of the request is still to be sent.
        if keep_alive and self._socket is not None and not self._socket.get_write_buffer_size():
            self._owner.release(self)
        else:
            self.abort()

    def _forget(self) -> None:
        self._deadlines.discard(self)
        self._is_busy = False
        self._future = self._stream_future = self._body = None
        self._status = 0
        self._headers = []
        self._chunks = []
        self._size = 0

    def _end_of_input(self, exc: Exception | None) -> None:
        if self._status and not _marks_its_end(Headers(self._headers)) and exc is None:
            # A body without a marked end lasts as long as the connection.
            self._complete()
        else:
            self.fail(self._cut_off(exc))

    def _cut_off(self, exc: Exception | None) -> TransportError:
        if isinstance(exc, ssl.SSLError) and not self.answered:
            return tls_failure(self._peer, exc)
        reason = f" ({exc.strerror})" if isinstance(exc, OSError) and exc.strerror else ""
        if not self.answered:
            hint = ""
            if self._tls and not self.reused:
                hint = ", right after the TLS handshake; it may not accept our client certificate"
            return ConnectionLost(f"{self._what}: the server closed the connection without a response{reason}{hint}")
        if self._status == 0:
            return ConnectionLost(f"{self._what}: the connection ended within the head of the response{reason}")
        announced = Headers(self._headers).get("content-length")
        expected = f" of {announced}" if announced is not None else ""
        return ConnectionLost(
            f"{self._what}: the connection ended within the body of the response,"
            f" after {self._size}{expected} bytes{reason}"
        )

    def _not_http(self, error: httptools.HttpParserError) -> ProtocolError:
        if self._status:
            return ProtocolError(f"{self._what}: the body of the response is not framed as HTTP/1.1 says ({error})")
        return ProtocolError(f"{self._what}: what came back is not an HTTP/1.1 response ({error})")


def _marks_its_end(headers: Headers) -> bool:
    """Whether the end of a body is given by its length or its last chunk, and not by the end of the connection."""
    if headers.get("content-length") is not None:
        return True
    # Names of codings are compared without regard to case, and the last one frames the body (RFC 9112, section 6.3).
    codings = ",".join(headers.getall("transfer-encoding"))
    return codings.rpartition(",")[2].strip().lower() == "chunked"
