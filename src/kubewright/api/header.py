"""The part of an object that is decoded on arrival: enough to find, index and order it. The rest stays bytes."""

# Annotations are types here, not text: they are needed at every start, and text would have to be compiled.

import msgspec
from msgspec import Struct

from kubewright.api.kinds import ObjectKey
from kubewright.api.shallow import members


class OwnerHeader(Struct, rename="camel", gc=False):
    """The part of an owner reference that decides which owner is enqueued."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Header(Struct, rename="camel"):
    """The identifying part of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerHeader] | None = None
    finalizers: list[str] | None = None
    managed_fields: msgspec.Raw = msgspec.Raw(b"")  # where they are, so that they can be cut out

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)


class DamagedHeader(Header):
    """The header of an object that cannot be decoded: without the fields that do not fit, or were nested too deeply."""


class ObjectHeader(Struct):
    """An object of which only the header is decoded."""

    metadata: Header = msgspec.field(default_factory=Header)


_header = msgspec.json.Decoder(ObjectHeader)


def read_header(raw: bytes) -> Header:
    """The header of an object in JSON; a `DamagedHeader` where its JSON allows no better.

    Raises `msgspec.DecodeError` when it is no JSON object at all.
    """
    try:
        return _header.decode(raw).metadata
    except (msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        return _damaged_header(raw)


def _damaged_header(raw: bytes) -> DamagedHeader:
    metadata = members(raw).get("metadata", b"")
    fields = members(metadata) if metadata.startswith(b"{") else {}
    header = DamagedHeader()
    for field in msgspec.structs.fields(Header):
        value = fields.get(field.encode_name)
        if value is None:
            continue
        if field.type is msgspec.Raw:  # decoding it would recurse
            setattr(header, field.name, msgspec.Raw(value))
            continue
        try:
            setattr(header, field.name, msgspec.json.decode(value, type=field.type))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return header
