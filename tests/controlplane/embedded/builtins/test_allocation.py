from __future__ import annotations

import ipaddress

import pytest

from kubewright.controlplane.embedded.builtins.allocation import AllocationPool, Allocator, PoolExhausted


def test_values_in_use_are_not_allocated() -> None:
    pool = AllocationPool(["a", "b", "c"], lambda: ("a", "c"))

    assert {pool.allocate() for _ in range(10)} == {"b"}
    assert pool.is_taken("a")
    assert not pool.is_taken("b")


def test_a_value_that_was_just_handed_out_is_not_the_next_one() -> None:
    pool = AllocationPool([str(number) for number in range(20)], tuple)

    given = [pool.allocate() for _ in range(10)]

    assert len(set(given)) == 10


def test_released_values_are_free_again_without_a_notification() -> None:
    taken = {"a", "b"}
    pool = AllocationPool(["a", "b"], lambda: taken)
    with pytest.raises(PoolExhausted):
        pool.allocate()

    taken.remove("b")

    assert pool.allocate() == "b"


def test_an_allocator_hands_out_hosts_of_its_network_and_ports_of_its_range() -> None:
    allocator = Allocator(network=ipaddress.ip_network("10.1.0.0/30"), lowest_port=7, highest_port=8)

    assert "10.1.0.1" in allocator.addresses
    assert "10.1.0.0" not in allocator.addresses
    assert allocator.ports.allocate() in ("7", "8")
    assert allocator.family == "IPv4"
    assert Allocator(network=ipaddress.ip_network("fd00::/120")).family == "IPv6"
