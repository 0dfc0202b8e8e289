"""How large a definition may be, and descriptions that are cut to make it smaller.

A schema that nests many structures, or is described in detail, may have more than the 256 KiB that `kubectl apply` can
remember in an annotation: `kubectl apply --server-side` has no such limit. What etcd stores has one.
"""

from __future__ import annotations

from typing import Final

from kubewright.api.codec import encode
from kubewright.api.markers import JSONValue
from kubewright.manifest.errors import ManifestError

MAX_STORED_SIZE: Final = 1536 * 1024
"""The bytes of JSON that etcd takes in one request unless it was started with another limit."""


def shorten_descriptions(schema: dict[str, JSONValue], limit: int) -> None:
    """Cut the descriptions in a schema to `limit` characters, after a sentence or else a word; 0 removes them."""
    description = schema.pop("description", None)
    if isinstance(description, str) and limit:
        schema["description"] = _shortened(description, limit)
    properties = schema.get("properties")
    for nested in (
        *(properties.values() if isinstance(properties, dict) else ()),
        schema.get("items"),
        schema.get("additionalProperties"),
    ):
        if isinstance(nested, dict):
            shorten_descriptions(nested, limit)


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    start = text[: limit + 1]  # the last sentence may end exactly there
    sentence = max(start.rfind(f".{space}") for space in " \n")
    if sentence > 0:
        return text[: sentence + 1]
    words = text[:limit].rpartition(" ")[0] or text[: limit - 1]
    return f"{words.rstrip()}…"


def check_size(definition: dict[str, JSONValue], schemas: dict[str, dict[str, JSONValue]], name: str) -> None:
    """Raise `ManifestError` for a definition that etcd would refuse, naming its largest field by version and path."""
    size = len(encode(definition))
    if size <= MAX_STORED_SIZE:
        return
    version = max(schemas, key=lambda version: len(encode(schemas[version])))
    raise ManifestError(
        f"{name}: its definition has {size / 2**20:.1f} MiB, more than the {MAX_STORED_SIZE / 2**20:.1f} MiB that etcd "
        f"stores (its largest part is {version}: {_largest(schemas[version])}): shorten the descriptions with "
        "max_description=, render fewer versions, or use JSONValue for such a part"
    )


def _largest(schema: dict[str, JSONValue]) -> str:
    """The path of the field that has most of the schema."""
    path, whole = "", len(encode(schema))
    while isinstance(properties := schema.get("properties"), dict):
        name, field = max(properties.items(), key=lambda item: len(encode(item[1])))
        if not isinstance(field, dict) or len(encode(field)) < whole / 2:
            break
        path, schema = f"{path}.{name}", field
    return path or "the object itself"
