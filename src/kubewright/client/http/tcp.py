"""TCP connections: made to the address of a host that answers first, and monitored by the kernel from then on.

A peer that closes or resets is noticed at once. One that falls silent (its machine or the network is gone, without a
FIN) is noticed by the kernel within `DEAD_AFTER` seconds: an idle connection by probes that are not answered, one
with bytes on their way by their not being acknowledged. A proxy or load balancer in between answers for the peer; what
is dead behind it is found by the timeout of a request, and by the bookmarks that a watch misses (`client/watch.py`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from asyncio.trsock import TransportSocket
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import TypeAlias, TypeVar

P = TypeVar("P", bound=asyncio.Protocol)
Made: TypeAlias = tuple[asyncio.Transport, P]

ATTEMPT_DELAY = 0.25
"""Seconds after which the next address is tried as well, as RFC 8305 recommends."""

DEAD_AFTER = 45
"""Seconds of silence after which a peer is dead. As client-go, which sends a ping after 30 and waits for 15 more."""

_IDLE, _INTERVAL, _PROBES = 15, 6, 5
_OPTIONS = {
    "TCP_KEEPIDLE": _IDLE,
    "TCP_KEEPALIVE": _IDLE,  # what macOS calls it
    "TCP_KEEPINTVL": _INTERVAL,
    "TCP_KEEPCNT": _PROBES,
    "TCP_USER_TIMEOUT": DEAD_AFTER * 1000,  # no probes are sent while bytes wait for their acknowledgement
}


async def connect(
    loop: asyncio.AbstractEventLoop, make_protocol: Callable[[], P], host: str, port: int
) -> tuple[asyncio.Transport, P]:
    """A connection to `host` and its protocol; an `OSError` with the reasons when none of its addresses accepts one.

    Guarantee: an address that does not answer costs `ATTEMPT_DELAY`, not the whole timeout. No socket but the
    one that is returned is left.
    """
    addresses = await resolve(loop, host, port)
    if len(addresses) == 1:
        made = await loop.create_connection(make_protocol, addresses[0], port)
    else:
        made = await _race([partial(loop.create_connection, make_protocol, address, port) for address in addresses])
    _keep_alive(made[0])
    return made


async def resolve(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[str]:
    """The addresses of `host`, in the order to try them: the resolver's, alternating between IPv6 and IPv4."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return [host]
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    first = [info[4][0] for info in found if info[0] == found[0][0]]
    second = [info[4][0] for info in found if info[0] != found[0][0]]
    return list(dict.fromkeys(address for address in chain(*zip_longest(first, second)) if isinstance(address, str)))


async def _race(attempts: Sequence[Callable[[], Coroutine[object, object, Made[P]]]]) -> Made[P]:
    """The result of the first attempt that succeeds; each begins when the one before has failed, or takes too long."""
    left = iter(attempts)
    begun: list[asyncio.Task[Made[P]]] = []
    running: set[asyncio.Task[Made[P]]] = set()
    winner: asyncio.Task[Made[P]] | None = None
    try:
        while winner is None:
            attempt = next(left, None)
            if attempt is not None:
                begun.append(asyncio.create_task(attempt()))
                running.add(begun[-1])
            elif not running:
                raise _failure([task.exception() for task in begun])
            patience = ATTEMPT_DELAY if attempt is not None else None
            ended, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in ended if task.exception() is None), None)
    finally:
        losers = [task for task in begun if task is not winner]
        for task in losers:
            task.add_done_callback(_discard)
            task.cancel()
        try:
            if losers:
                await asyncio.wait(losers)
        except asyncio.CancelledError:
            if winner is not None:
                _discard(winner)
            raise
    return winner.result()


def _discard(task: asyncio.Task[Made[P]]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[0].abort()


def _failure(errors: Sequence[BaseException | None]) -> OSError:
    """One error for all addresses, with every reason once."""
    reasons = dict.fromkeys(
        os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error) for error in errors
    )
    return OSError(", ".join(reasons))


def open_socket(transport: asyncio.Transport) -> TransportSocket | None:
    """The socket of a connection; None once it is closed, of which a protocol may be notified later."""
    end: TransportSocket | None = transport.get_extra_info("socket")
    return end if end is not None and end.fileno() >= 0 else None


def _keep_alive(transport: asyncio.Transport) -> None:
    end = open_socket(transport)
    if end is None:
        return
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        option = getattr(socket, name, None)
        if option is not None:
            end.setsockopt(socket.IPPROTO_TCP, option, value)
