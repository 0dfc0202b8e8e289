"""What the server says of its kinds and their fields, for the OpenAPI documents of the embedded server."""

from __future__ import annotations

import zlib

from msgspec.json import encode
from tools.generate_api.documents import Document, all_schemas


def descriptions(documents: list[Document]) -> bytes:
    """Compressed JSON: of each schema the descriptions of its fields; that of the schema itself has no name."""
    found: dict[str, dict[str, str]] = {}
    for name, schema in sorted(all_schemas(documents).items()):
        own = {"": schema.description, **{key: field.description for key, field in sorted(schema.properties.items())}}
        found[name] = {key: text for key, text in own.items() if text}
    return zlib.compress(encode(found), level=9)
