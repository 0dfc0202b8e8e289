"""Addresses and ports that the server hands out to services.

A pool keeps only the latest values that it returned: what is taken is read from the stored services. So nothing has to
be released, a dry run or a refused service costs nothing, and there is no repair after a restart.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice

_RECENT = 256
_MAX_ADDRESSES = 65536


class PoolExhausted(Exception):
    """Everything is taken."""


class AllocationPool:
    """Values that are handed out at random, each to one service at a time.

    `in_use` returns the values in use. A value that was handed out just before is not handed out again while others
    are free, so that two services that are created at the same time do not get the same one.
    """

    def __init__(self, values: Sequence[str], in_use: Callable[[], Collection[str]]) -> None:
        self._values = values
        self._in_use = in_use
        self._recent: deque[str] = deque(maxlen=min(_RECENT, len(values) // 2))

    def __contains__(self, value: str) -> bool:
        return value in self._values

    def is_taken(self, value: str) -> bool:
        """Whether a service has this value."""
        return value in self._in_use()

    def allocate(self) -> str:
        """A value that no service has; PoolExhausted when there is none."""
        taken = set(self._in_use())
        free = [value for value in self._values if value not in taken]
        if not free:
            raise PoolExhausted
        fresh = [value for value in free if value not in self._recent]
        value = secrets.choice(fresh or free)
        self._recent.append(value)
        return value


def _nothing() -> Collection[str]:
    return ()


@dataclass(frozen=True)
class Allocator:
    """What services get from this server: cluster IPs of one network, and node ports."""

    network: ipaddress.IPv4Network | ipaddress.IPv6Network = field(
        default_factory=lambda: ipaddress.ip_network("10.0.0.0/24")
    )
    addresses_in_use: Callable[[], Collection[str]] = _nothing
    ports_in_use: Callable[[], Collection[str]] = _nothing
    lowest_port: int = 30000
    highest_port: int = 32767
    addresses: AllocationPool = field(init=False)
    ports: AllocationPool = field(init=False)

    def __post_init__(self) -> None:
        hosts = [str(address) for address in islice(self.network.hosts(), _MAX_ADDRESSES)]
        object.__setattr__(self, "addresses", AllocationPool(hosts, self.addresses_in_use))
        ports = [str(port) for port in range(self.lowest_port, self.highest_port + 1)]
        object.__setattr__(self, "ports", AllocationPool(ports, self.ports_in_use))

    @property
    def family(self) -> str:
        """`IPv4` or `IPv6`."""
        return f"IPv{self.network.version}"
