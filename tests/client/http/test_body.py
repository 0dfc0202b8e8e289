from __future__ import annotations

import asyncio

import pytest

from kubewright.client.errors import ConnectionLost, RequestTimeout
from kubewright.client.http.body import HIGH_WATER, Body
from kubewright.client.http.deadlines import Deadlines


class _Source:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.body: Body | None = None

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def fail(self, error: Exception) -> None:
        self.calls.append("fail")
        assert self.body is not None
        self.body.end(error)


def _body() -> tuple[Body, _Source]:
    loop = asyncio.get_running_loop()
    source = _Source()
    source.body = Body(source, loop, Deadlines(loop), "GET host:1")
    return source.body, source


async def test_reading_stops_above_the_high_water_mark_and_resumes_when_the_reader_has_caught_up() -> None:
    body, source = _body()
    body.feed(b"x" * HIGH_WATER)
    assert source.calls == []
    body.feed(b"x")
    body.feed(b"x")
    assert source.calls == ["pause"]
    assert len(await body.receive()) == HIGH_WATER + 2
    assert source.calls == ["pause", "resume"]


async def test_a_connection_is_not_left_paused_by_a_body_that_is_complete() -> None:
    body, source = _body()
    body.feed(b"x" * (HIGH_WATER + 1))
    body.end()
    assert source.calls == ["pause", "resume"]
    assert len(await body.receive()) == HIGH_WATER + 1
    assert await body.receive() == b""


async def test_all_pieces_that_have_arrived_are_returned_together() -> None:
    body, _ = _body()
    reading = asyncio.create_task(body.receive())
    await asyncio.sleep(0)
    body.feed(b"one")
    body.feed(b"two")
    assert await reading == b"onetwo"


async def test_an_empty_socket_is_left_alone_for_a_while() -> None:
    body, source = _body()
    reading = asyncio.create_task(body.receive(gather=0.001))
    await asyncio.sleep(0)
    assert source.calls == ["pause"]
    body.feed(b"still in the TLS layer, ")
    while source.calls != ["pause", "resume"]:
        await asyncio.sleep(0)
    assert await reading == b"still in the TLS layer, "

    body.feed(b"here already")
    assert await body.receive(gather=3600) == b"here already"
    assert source.calls == ["pause", "resume"]


@pytest.mark.parametrize("ending", ["complete", "cancelled"])
async def test_a_connection_is_not_left_alone_for_longer_than_its_reader_wants(ending: str) -> None:
    body, source = _body()
    reading = asyncio.create_task(body.receive(gather=3600))
    await asyncio.sleep(0)
    assert source.calls == ["pause"]
    if ending == "complete":
        body.end()
    else:
        reading.cancel()
        await asyncio.wait((reading,))
    assert source.calls == ["pause", "resume"]
    reading.cancel()


async def test_a_cancelled_reader_loses_nothing() -> None:
    body, _ = _body()
    reading = asyncio.create_task(body.receive())
    await asyncio.sleep(0)
    body.feed(b"one")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await body.receive() == b"one"


async def test_what_arrived_is_returned_before_the_error() -> None:
    body, _ = _body()
    body.feed(b"one")
    body.end(ConnectionLost("gone"))
    assert await body.receive() == b"one"
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="gone"):
            await body.receive()


async def test_a_second_reader_is_an_error() -> None:
    body, _ = _body()
    reading = asyncio.create_task(body.receive())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="two tasks"):
        await body.receive()
    body.feed(b"one")
    assert await reading == b"one"


async def test_closing_ends_an_unfinished_body_and_wakes_its_reader() -> None:
    body, source = _body()
    reading = asyncio.create_task(body.receive())
    await asyncio.sleep(0)
    await body.aclose()
    await body.aclose()
    assert source.calls == ["fail"]
    with pytest.raises(ConnectionLost, match="closed"):
        await reading


async def test_closing_a_complete_body_does_not_touch_the_connection() -> None:
    body, source = _body()
    body.feed(b"one")
    body.end()
    await body.aclose()
    assert source.calls == []


async def test_silence_ends_the_body_with_a_timeout() -> None:
    body, source = _body()
    with pytest.raises(RequestTimeout, match=r"GET host:1: the server sent nothing for 0\.01 s"):
        await body.receive(idle_timeout=0.01)
    assert source.calls == ["fail"]
