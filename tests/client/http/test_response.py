from __future__ import annotations

import pytest

from kubewright.client.errors import ConnectionLost, ProtocolError, TransportError
from kubewright.client.http.response import Headers, Response, StreamedResponse


class _Pieces:
    """A body without a socket, as a transport without sockets has it."""

    def __init__(self, pieces: list[bytes], error: TransportError | None = None) -> None:
        self._pieces = pieces
        self._error = error
        self.closed = False

    async def receive(self, idle_timeout: float | None = None, gather: float = 0.0) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        if self._error is not None:
            raise self._error
        return b""

    async def aclose(self) -> None:
        self.closed = True


def test_header_names_are_compared_without_case_and_keep_their_order() -> None:
    headers = Headers([(b"Warning", b"299 - first"), (b"content-type", b"text/plain"), (b"WARNING", b"299 - second")])
    assert headers.get("Content-Type") == "text/plain"
    assert headers.get("warning") == "299 - first"
    assert headers.getall("Warning") == ["299 - first", "299 - second"]
    assert headers.get("Retry-After") is None
    assert headers.getall("Retry-After") == []


def test_a_header_value_that_is_not_text_is_replaced_not_an_error() -> None:
    assert Headers([(b"Warning", b"caf\xc3\xa9 \xff")]).get("warning") == "café �"


def test_neither_values_nor_bodies_show_in_a_repr() -> None:
    headers = Headers([(b"Set-Cookie", b"token=s3cret")])
    shown = repr(headers) + repr(Response(200, headers, b"s3cret")) + repr(StreamedResponse(200, headers, _Pieces([])))
    assert "s3cret" not in shown
    assert "Set-Cookie" in shown


async def test_lines_are_returned_one_by_one_and_the_rest_without_newline_too() -> None:
    response = StreamedResponse(200, Headers(), _Pieces([b"one\ntw", b"o", b"\n\nthr", b"ee"]))
    assert [line async for line in response.lines()] == [b"one", b"two", b"", b"three"]


async def test_lines_before_a_loss_are_returned_before_the_error() -> None:
    lines = StreamedResponse(200, Headers(), _Pieces([b"one\ntwo\nthr"], ConnectionLost("gone"))).lines()
    assert [await anext(lines), await anext(lines)] == [b"one", b"two"]
    with pytest.raises(ConnectionLost):
        await anext(lines)


async def test_a_line_over_the_limit_names_the_limit_and_closes_the_body() -> None:
    body = _Pieces([b"x" * 20])
    with pytest.raises(ProtocolError, match="10 bytes"):
        await anext(StreamedResponse(200, Headers(), body).lines(limit=10))
    assert body.closed


async def test_read_joins_the_body_and_respects_the_limit() -> None:
    assert await StreamedResponse(200, Headers(), _Pieces([b"ab", b"c"])).read() == b"abc"

    body = _Pieces([b"ab", b"c"])
    with pytest.raises(ProtocolError, match="max_body, 2 bytes"):
        await StreamedResponse(200, Headers(), body, max_body=2).read()
    assert body.closed


async def test_leaving_the_block_closes_the_body() -> None:
    body = _Pieces([b"ab", b"c"])
    async with StreamedResponse(200, Headers(), body) as response:
        assert await anext(response) == b"ab"
    assert body.closed
