"""A configuration merged into an object without becoming anyone's: what mutating policies do."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.managedfields.checking import complaint
from kubewright.controlplane.embedded.managedfields.merging import merged
from kubewright.controlplane.embedded.managedfields.shape import MergeShape, Untrackable, shape_of


def merge_configuration(live: JSONObject, configuration: JSONObject, structure: Structure) -> JSONObject:
    """`live` with `configuration` merged in; the result shares parts with both. ValueError when that cannot be done.

    What is atomic cannot be merged: it would be replaced, with all that the configuration does not mention.
    """
    shape = shape_of(structure)
    if wrong := complaint(configuration, shape):
        raise ValueError(f"failed to convert patch object to typed object: {wrong}")
    if atomics := list(_atomics(configuration, shape, "")):
        where = ", ".join(atomics)
        raise ValueError(f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {where}")
    try:
        return merged(live, configuration, shape)
    except Untrackable as error:
        raise ValueError(f"failed to convert original object to typed object: {error}") from None


def _atomics(value: JSONValue, shape: MergeShape, path: str) -> Iterator[str]:
    """The paths of all that is owned as a whole."""
    if isinstance(value, dict | list) and shape.is_atomic:
        yield path
    if isinstance(value, dict):
        for name, nested in value.items():
            if shape.is_named(name):
                yield from _atomics(nested, shape.field(name), f"{path}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _atomics(item, shape.element, f"{path}[{index}]")
