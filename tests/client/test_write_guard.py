"""Writes that are not sent because the guard refuses them, and those that are dropped on their way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
import uvloop

from kubewright.client.config.config import Config
from kubewright.client.errors import ConnectionLost
from kubewright.client.http.transport import HTTPTransport
from kubewright.client.session import Session
from kubewright.client.write_guard import check_write, guard_writes

if TYPE_CHECKING:
    from tests.client.conftest import Peer, Serve


class TooLateError(Exception):
    pass


def refuse() -> None:
    raise TooLateError


def _answering(seen: list[str]) -> Callable[[Peer], Awaitable[None]]:
    async def answer(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            seen.append(head.split()[0])
            await peer.answer(b"{}")

    return answer


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_guarded_task_and_those_it_starts_send_no_write_that_the_guard_refuses(
    serve: Serve, method: str
) -> None:
    seen: list[str] = []
    server = await serve(_answering(seen))
    session = Session(Config(server=f"http://{server.address}"))

    async def guarded() -> None:
        guard_writes(refuse)
        with pytest.raises(TooLateError):
            await session.request(method, "/api", request="a write")
        with pytest.raises(TooLateError):
            await asyncio.create_task(session.request(method, "/api", request="a write"))
        await session.request("GET", "/api", request="a read")

    await asyncio.create_task(guarded())
    await session.request(method, "/api", request="a write of another task")
    assert seen == ["GET", method]
    await session.aclose()


@pytest.mark.parametrize("refusing", ["outer", "inner"])
async def test_a_guard_within_another_does_not_replace_it(refusing: str) -> None:
    """As in the work of one election that runs another: it may write with both leases only."""

    def check(name: str) -> None:
        if name == refusing:
            raise TooLateError

    async def inner() -> None:
        guard_writes(lambda: check("inner"))
        with pytest.raises(TooLateError):
            check_write()

    async def outer() -> None:
        guard_writes(lambda: check("outer"))
        await asyncio.create_task(inner())

    await asyncio.create_task(outer())


async def test_the_guard_is_checked_again_after_a_wait_for_a_connection(serve: Serve) -> None:
    """A process may be stopped in the middle of it, for longer than it may write."""
    seen: list[str] = []
    requested, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            seen.append(head.split()[0])
            requested.set()
            await may_answer.wait()
            await peer.answer(b"{}")

    server = await serve(answer)
    client = HTTPTransport(f"http://{server.address}", max_connections=1)
    may_write = True

    def check() -> None:
        if not may_write:
            raise TooLateError

    async def guarded() -> None:
        guard_writes(check)
        await client.request("PUT", "/", body=b"{}")

    reading = asyncio.create_task(client.request("GET", "/"))
    await requested.wait()
    writing = asyncio.create_task(guarded())
    await asyncio.sleep(0)
    may_write = False
    may_answer.set()
    with pytest.raises(TooLateError):
        await writing
    await reading
    await client.request("GET", "/")
    assert seen == ["GET", "GET"]
    await client.aclose()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_nothing_of_a_dropped_write_arrives_later(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """The kernel goes on with sending what a closed socket had to send, and would for minutes."""
    body = b"x" * 16 * 1024 * 1024  # more than the buffers on the way hold

    async def main(listener: socket.socket) -> socket.socket:
        client = HTTPTransport(f"http://127.0.0.1:{listener.getsockname()[1]}")
        writing = asyncio.create_task(client.request("PUT", "/", body=body))
        # Accepted, and not read from.
        connection, _ = await asyncio.to_thread(listener.accept)
        await asyncio.to_thread(connection.recv, 1, socket.MSG_PEEK)
        client.drop_writes()
        with pytest.raises(ConnectionLost, match="this program reset the connection"):
            await writing
        await client.aclose()
        return connection

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        asyncio.Runner(loop_factory=new_loop) as runner,
        runner.run(main(listener)) as connection,
        pytest.raises(ConnectionResetError),
    ):
        _read_to_the_end(connection)


def _read_to_the_end(connection: socket.socket) -> None:
    while connection.recv(1024 * 1024):
        pass


async def test_reads_are_not_dropped_with_the_writes(serve: Serve) -> None:
    requested, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(peer: Peer) -> None:
        await peer.request()
        requested.set()
        await may_answer.wait()
        await peer.answer(b"read")

    server = await serve(answer)
    client = HTTPTransport(f"http://{server.address}")
    reading = asyncio.create_task(client.request("GET", "/"))
    await requested.wait()
    client.drop_writes()
    may_answer.set()
    assert (await reading).body == b"read"
    await client.aclose()
