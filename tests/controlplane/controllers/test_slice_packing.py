"""Endpoints keep their slice, and slices are filled before new ones are made."""

from __future__ import annotations

from kubewright.api.discovery.v1 import Endpoint, EndpointPort, EndpointSlice
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane.controllers.slice_packing import MAX_ENDPOINTS, Changes, key_of, pack


def endpoints(*numbers: int) -> list[Endpoint]:
    return [Endpoint(addresses=[f"10.0.{number // 256}.{number % 256}"]) for number in numbers]


def slice_of(name: str, found: list[Endpoint]) -> EndpointSlice:
    return EndpointSlice(metadata=ObjectMeta(name=name), address_type="IPv4", endpoints=found)


def new() -> EndpointSlice:
    return slice_of("", [])


def test_new_endpoints_fill_new_slices_to_the_limit() -> None:
    changes = pack([], endpoints(*range(2 * MAX_ENDPOINTS + 1)), {}, new)
    assert [len(one.endpoints) for one in changes.create] == [MAX_ENDPOINTS, MAX_ENDPOINTS, 1]
    assert not changes.update
    assert not changes.delete


def test_an_endpoint_that_stays_is_not_moved_and_a_freed_place_is_taken_by_a_new_one() -> None:
    full = slice_of("full", endpoints(*range(MAX_ENDPOINTS)))
    rest = slice_of("rest", endpoints(500))
    changes = pack([full, rest], endpoints(*range(1, MAX_ENDPOINTS), 500, 501), {}, new)
    assert [one.metadata.name for one in changes.update] == ["full"]
    assert changes.update[0].endpoints[:-1] == endpoints(*range(1, MAX_ENDPOINTS))
    assert changes.update[0].endpoints[-1:] == endpoints(501)
    assert full.endpoints == endpoints(*range(MAX_ENDPOINTS)), "what the cache shares is not changed"


def test_the_fullest_slice_with_room_takes_new_endpoints() -> None:
    changes = pack([slice_of("a", endpoints(1)), slice_of("b", endpoints(2, 3))], endpoints(1, 2, 3, 4), {}, new)
    assert [(one.metadata.name, len(one.endpoints)) for one in changes.update] == [("b", 3)]
    assert not changes.create


def test_a_slice_without_endpoints_goes_and_one_as_desired_is_left_alone() -> None:
    kept, gone = slice_of("kept", endpoints(1)), slice_of("gone", endpoints(2))
    assert pack([kept, gone], endpoints(1), {}, new) == Changes(delete=[gone])


def test_a_slice_that_would_go_is_used_for_a_new_one() -> None:
    unwanted, wanted = slice_of("old", endpoints(1)), slice_of("", endpoints(2))
    changes = Changes(create=[wanted], delete=[unwanted])
    changes.recycle(lambda one: True)
    assert (changes.create, changes.delete) == ([], [])
    assert [(one.metadata.name, one.endpoints) for one in changes.update] == [("old", endpoints(2))]


def test_the_order_of_ports_does_not_matter() -> None:
    a, b = EndpointPort(name="a", port=1, protocol="TCP"), EndpointPort(name="b", port=2, protocol="TCP")
    assert key_of([a, b]) == key_of([b, a]) != key_of([a])
