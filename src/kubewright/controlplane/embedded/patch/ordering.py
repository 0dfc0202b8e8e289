"""The order of merged lists: items the patch names in the patch's order, the others placed among them as they were.

Items of lists of objects are the same when their merge key is; other items when they are equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.apimachinery.go_values import formatted
from kubewright.controlplane.embedded.patch.result import failure, wrong_type


def identity(value: JSONValue) -> Hashable:
    """What two merge keys or plain items have in common when they are the same; 1 and 1.0 are not.

    An object or a list is never the same as another: Go cannot compare them.
    """
    return type(value), id(value) if isinstance(value, (dict, list)) else value


def key_of(item: JSONValue, key: str) -> JSONValue:
    """The merge key of an item. Raises when it has none."""
    if not isinstance(item, dict):
        raise wrong_type({}, item)
    if key not in item:
        raise failure(f"map: {formatted(item)} does not contain declared merge key: {key}")
    return item[key]


def identities(items: Iterable[JSONValue], key: str) -> list[Hashable]:
    """The identities of all items: of their merge keys, or of themselves when there is no key."""
    return [identity(key_of(item, key) if key else item) for item in items]


def arranged(
    merged: Sequence[JSONValue], wanted: Sequence[JSONValue], server: Sequence[JSONValue], key: str
) -> list[JSONValue]:
    """The merged items: those in `wanted` in its order, the others in that of `server`.

    An item not in `wanted` stays in front of the first wanted one that it was in front of on the server.
    """
    wanted_positions, server_positions = _positions(identities(wanted, key)), _positions(identities(server, key))
    named: list[tuple[Hashable, JSONValue]] = []
    others: list[tuple[Hashable, JSONValue]] = []
    for name, item in zip(identities(merged, key), merged, strict=True):
        (named if name in wanted_positions else others).append((name, item))
    named, others = _sorted(named, wanted_positions), _sorted(others, server_positions)

    result: list[JSONValue] = []
    rest = iter(others)
    other = next(rest, None)
    for name, item in named:
        position = server_positions.get(name)
        while other is not None and position is not None:
            other_position = server_positions.get(other[0])
            if other_position is None or other_position >= position:
                break
            result.append(other[1])
            other = next(rest, None)
        result.append(item)
    if other is not None:
        result.append(other[1])
    result.extend(item for _, item in rest)
    return result


def _positions(names: Iterable[Hashable]) -> dict[Hashable, int]:
    positions: dict[Hashable, int] = {}
    for position, name in enumerate(names):
        positions.setdefault(name, position)
    return positions


def _sorted(
    items: list[tuple[Hashable, JSONValue]], positions: dict[Hashable, int]
) -> list[tuple[Hashable, JSONValue]]:
    if all(name in positions for name, _ in items):
        return sorted(items, key=lambda item: positions[item[0]])
    # Items without a place count as smaller than their left neighbour, whatever that is; then the outcome depends on
    # the algorithm, which is Go's insertion sort (for up to 20 items).
    result = list(items)
    for end in range(1, len(result)):
        current = end
        while current > 0 and _before(result[current][0], result[current - 1][0], positions):
            result[current - 1], result[current] = result[current], result[current - 1]
            current -= 1
    return result


def _before(right: Hashable, left: Hashable, positions: dict[Hashable, int]) -> bool:
    return right not in positions or left not in positions or positions[right] < positions[left]
