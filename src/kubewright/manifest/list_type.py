"""Which lists merge item by item: `x-kubernetes-list-type`, and what the server demands of such lists."""

from __future__ import annotations

from typing import Final

from kubewright.api.markers import JSONValue
from kubewright.manifest.errors import ManifestError

# Keys of Kubernetes' own lists may be absent from their items, but not from a structural schema. The server's own
# default for a port's protocol is TCP; all other such keys are names, for which absent means empty.
_KEY_DEFAULTS: Final = {"protocol": "TCP"}


def list_set(schema: dict[str, JSONValue], where: object) -> None:
    """Make the list a set of scalars."""
    items = _items(schema, "ListSet", where)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        raise ManifestError(
            f"{where}: the items of a ListSet are scalars: use ListMap with the fields that identify an item"
        )
    schema["x-kubernetes-list-type"] = "set"


def list_map(schema: dict[str, JSONValue], keys: tuple[str, ...], where: object, *, built_in: bool) -> None:
    """Make the list a map of structures by `keys`; keys of `built_in` structures get the default they need."""
    items = _items(schema, "ListMap", where)
    properties, required = items.get("properties"), items.get("required")
    if not isinstance(properties, dict):
        raise ManifestError(f"{where}: the items of a ListMap are structures: use ListSet for scalars")
    if not keys or len(set(keys)) < len(keys):
        raise ManifestError(f"{where}: a ListMap needs at least one key, and each only once")
    for key in keys:
        field = properties.get(key)
        if not isinstance(field, dict):
            known = ", ".join(properties)
            raise ManifestError(f'{where}: the items of the ListMap have no field "{key}" (their JSON names: {known})')
        if field.get("type") in (None, "array", "object") or field.get("nullable"):
            raise ManifestError(f'{where}: the key "{key}" of the ListMap must be a scalar that is never None')
        if "default" not in field and not (isinstance(required, list) and key in required):
            if not built_in:
                raise ManifestError(
                    f'{where}: the key "{key}" of the ListMap may be absent: make it required or give it a default'
                )
            field["default"] = _KEY_DEFAULTS.get(key, "")
    schema["x-kubernetes-list-type"] = "map"
    schema["x-kubernetes-list-map-keys"] = list(keys)


def _items(schema: dict[str, JSONValue], marker: str, where: object) -> dict[str, JSONValue]:
    items = schema.get("items")
    if not isinstance(items, dict):
        raise ManifestError(f"{where}: {marker} is for lists")
    if items.get("nullable"):
        raise ManifestError(f"{where}: the items of a {marker} cannot be None")
    return items
