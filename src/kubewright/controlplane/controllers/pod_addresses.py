"""The addresses of simulated pods, from the range of their node."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from ipaddress import ip_network

_ALL_PODS = "10.244.0.0/16"


class PodAddresses:
    """Hands out addresses that are not taken, each range in a cycle, so that one is reused as late as possible."""

    def __init__(self, is_taken: Callable[[str], bool]) -> None:
        self._is_taken = is_taken
        self._ranges: dict[str, Iterator[str]] = {}

    def free(self, cidr: str) -> str:
        """An address of the range of a node; of all pods' if the node has none, or when all of it are taken."""
        for network in (cidr or _ALL_PODS, _ALL_PODS):
            hosts = ip_network(network)
            if network not in self._ranges:
                self._ranges[network] = map(str, itertools.cycle(hosts.hosts()))
            for address in itertools.islice(self._ranges[network], hosts.num_addresses):
                if not self._is_taken(address):
                    return address
        raise RuntimeError(f"no address of {cidr or _ALL_PODS} is free")
