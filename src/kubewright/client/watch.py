"""Watching: the changes to the objects of a kind, as they happen.

    async with client.watch(Pod, namespace="default") as events:
        async for event in events:
            print(event.type, event.header.name)

Of each event the header is decoded on arrival and the object only when asked for, so that one object that does not
fit its type stops no watch. A watch ends when the server ends it (its timeout); errors are raised, 410 as `Expired`.
One that has brought a bookmark and then nothing for `MAX_SILENCE` seconds is dead, which is a `RequestTimeout`.
Restarting watches is the task of the cache, not of this module.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, Self, TypeAlias, TypeVar, cast

import msgspec

from kubewright.api.codec import NOT_JSON, decode
from kubewright.api.errors import refusing
from kubewright.api.header import Header, ObjectHeader, read_header
from kubewright.api.resources import Object
from kubewright.api.shallow import members
from kubewright.client.answer import described, retry_after
from kubewright.client.errors import ProtocolError, RequestTimeout, Status, TransportError, error_class
from kubewright.client.http.response import Headers, StreamedResponse

T = TypeVar("T", bound=Object)
EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed initial list."""

MAX_LINE_SIZE = 64 * 1024 * 1024

GATHER = 0.005
"""Seconds for which the events of an initial list gather: the server sends each by itself, and to be
woken for each costs more than to read it. Later events are read as they come."""

MAX_SILENCE = 90.0
"""Seconds without a byte after which a watch is dead. A server that sends bookmarks sends one about every minute."""

_TYPES = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
_PREFIXES = {name: f'{{"type":"{name}","object":'.encode() for name in _TYPES}


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    object: ObjectHeader


class _RawLine(msgspec.Struct):
    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(_Line)
_raw_line = msgspec.json.Decoder(_RawLine)


class WatchEvent(Generic[T]):
    """One event: its type, the header of its object, and the object itself when asked for."""

    __slots__ = ("_kind", "_object", "header", "raw", "type")

    def __init__(self, kind: type[T], type_: EventType, header: Header, raw: bytes) -> None:
        self._kind = kind
        self._object: T | None = None
        self.type: EventType = type_
        self.header = header
        self.raw = raw

    @property
    def object(self) -> T:
        """The object, decoded when first asked for. Raises `DecodeError` when it does not fit its type."""
        if self._object is None:
            self._object = decode(self._kind, self.raw)
        return self._object

    @property
    def ends_initial_list(self) -> bool:
        """True for the bookmark after which a streamed initial list is complete."""
        return self.type == "BOOKMARK" and (self.header.annotations or {}).get(INITIAL_EVENTS_END) == "true"

    def __repr__(self) -> str:
        return f"WatchEvent({self.type} {self._kind.__name__} {self.header.key} @{self.header.resource_version})"


def parse_event(kind: type[T], line: bytes, request: str = "") -> WatchEvent[T]:
    """The event of one line of a watch. An ERROR event is raised as the error it carries, described by `request`."""
    try:
        event = _line.decode(line)
    except NOT_JSON:
        return _parse_in_two_steps(kind, line, request)
    # The server sends `type` before `object` and nothing else, so the object can be cut out without a second parse.
    # (It writes metav1.WatchEvent in field order; tests/conformance/test_watch.py holds it to that.)
    prefix = _PREFIXES.get(event.type)
    if prefix is not None and line.startswith(prefix) and line.endswith(b"}}"):
        return WatchEvent(kind, cast(EventType, event.type), event.object.metadata, line[len(prefix) : -1])
    return _parse_in_two_steps(kind, line, request)


def _parse_in_two_steps(kind: type[T], line: bytes, request: str) -> WatchEvent[T]:
    try:
        type_, raw = _split(line)
        if type_ == "ERROR":
            status = msgspec.json.decode(raw, type=Status)
            raise error_class(status)(status, request, retry_after=retry_after(Headers(), status))
        header = read_header(raw)
    except NOT_JSON as error:
        raise ProtocolError(f"the server sent a watch event that cannot be read: {error}") from None
    if type_ not in _TYPES:
        raise ProtocolError(f'the server sent a watch event of the unknown type "{type_}"')
    return WatchEvent(kind, cast(EventType, type_), header, raw)


def _split(line: bytes) -> tuple[str, bytes]:
    try:
        event = _raw_line.decode(line)
    except RecursionError:
        fields = members(line)
        return msgspec.json.decode(fields.get("type", b""), type=str), fields.get("object", b"")
    return event.type, bytes(event.object)


class Watch(Generic[T]):
    """A stream of events. Opens when entered or first iterated; leaving the `async with` block closes it."""

    def __init__(
        self,
        kind: type[T],
        request: str,
        connect: Callable[[], Awaitable[StreamedResponse]],
        idle_timeout: float | None,
        *,
        initial_events: bool = False,
    ) -> None:
        self._kind = kind
        self._request = request
        self._connect = connect
        self._idle_timeout = idle_timeout
        self._initial_events = initial_events
        self._response: StreamedResponse | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    if not TYPE_CHECKING:
        __iter__ = __await__ = __enter__ = __exit__ = refusing(
            "a watch is asynchronous: write async with client.watch(Kind) as events, and async for event in events"
        )

    async def __aiter__(self) -> AsyncGenerator[WatchEvent[T], None]:
        response = await self._open()
        has_pulse = False
        try:
            lines = response.lines(limit=MAX_LINE_SIZE, idle_timeout=self._idle_timeout)
            if self._initial_events:
                lines.gather = GATHER
            async for line in lines:
                event = parse_event(self._kind, line, self._request)
                if event.type == "BOOKMARK":
                    if event.ends_initial_list:
                        # It does not promise more: resources without a watch cache (events, by default) send this one
                        # alone.
                        lines.gather = 0.0
                    elif not has_pulse:
                        has_pulse = True
                        lines.idle_timeout = min(self._idle_timeout or MAX_SILENCE, MAX_SILENCE)
                yield event
        except RequestTimeout as error:
            missed = ", not even the bookmark that is due every minute; the connection is dead" if has_pulse else ""
            raise RequestTimeout(f"{self._request}: {error}{missed}") from error
        except TransportError as error:
            raise described(error, self._request) from error
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connection. Closing twice is fine."""
        if self._response is not None:
            await self._response.aclose()

    async def _open(self) -> StreamedResponse:
        if self._response is None:
            self._response = await self._connect()
        return self._response
