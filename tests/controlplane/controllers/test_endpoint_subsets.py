"""The subsets of Endpoints: packed as kube-controller-manager packs them."""

from __future__ import annotations

from kubewright.api.core.v1.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from kubewright.api.discovery.v1 import EndpointPort as SlicePort
from kubewright.controlplane.controllers.endpoint_subsets import MAX_ADDRESSES, packed, truncated
from kubewright.controlplane.controllers.port_order import endpoint_port_order, slice_port_order

HTTP, ADMIN = EndpointPort(name="http", port=8080, protocol="TCP"), EndpointPort(name="admin", port=81, protocol="TCP")


def addresses(count: int, network: int = 0) -> list[EndpointAddress]:
    return [EndpointAddress(ip=f"10.{network}.{number // 250}.{number % 250}") for number in range(count)]


def test_addresses_with_the_same_ports_share_a_subset() -> None:
    one, two = addresses(2)
    parts = [EndpointSubset(addresses=[address], ports=[port]) for address in (two, one) for port in (HTTP, ADMIN)]
    (subset,) = packed(parts)
    assert subset.addresses == [one, two]
    assert sorted(str(port.name) for port in subset.ports) == ["admin", "http"]


def test_an_address_that_is_unready_anywhere_is_unready() -> None:
    (one,) = addresses(1)
    parts = [EndpointSubset(addresses=[one], ports=[HTTP]), EndpointSubset(not_ready_addresses=[one], ports=[HTTP])]
    for order in (parts, parts[::-1]):
        assert packed(order) == [EndpointSubset(not_ready_addresses=[one], ports=[HTTP])]


def test_addresses_without_ports_are_kept() -> None:
    (one,) = addresses(1)
    assert packed([EndpointSubset(addresses=[one])]) == [EndpointSubset(addresses=[one])]


def test_unready_addresses_are_the_first_to_be_left_out() -> None:
    ready, unready = addresses(MAX_ADDRESSES - 10), addresses(30, 1)
    cut = truncated([EndpointSubset(addresses=ready, not_ready_addresses=unready)])
    assert cut == [EndpointSubset(addresses=ready, not_ready_addresses=unready[:10])]
    assert truncated([EndpointSubset(addresses=ready)]) is None


def test_too_many_ready_addresses_are_cut_in_proportion() -> None:
    cut = truncated(
        [
            EndpointSubset(addresses=addresses(900), ports=[HTTP]),
            EndpointSubset(addresses=addresses(600, 1), not_ready_addresses=addresses(5, 2), ports=[ADMIN]),
        ]
    )
    assert cut is not None
    assert [(len(one.addresses), len(one.not_ready_addresses)) for one in cut] == [(600, 0), (400, 0)]


def test_ports_are_ordered_by_the_hash_of_how_go_prints_them() -> None:
    """Computed by `fnv.New128a` of `dump.ForHash`."""
    assert endpoint_port_order(HTTP) == 0x25304A33DA9E6ECE350A4142A45F5B75
    shown = EndpointPort(name="http", port=8080, protocol="TCP", app_protocol="x y")
    assert endpoint_port_order(shown) == 0xF442A316616C4C00AAEF7EE554993585
    assert slice_port_order(SlicePort(name="http", port=8080, protocol="TCP")) == 0x0E874D5677090EE5C32AFA85F637C347
