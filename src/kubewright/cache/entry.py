"""What the cache keeps of an object: its JSON, and the little that is needed to find it without decoding that.

managedFields are cut out on arrival. They are up to half of an object, change with every write and are read by nobody;
an update without them leaves them as they are on the server.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from kubewright.api.codec import NOT_JSON
from kubewright.api.header import Header, OwnerHeader, read_header
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.shallow import members
from kubewright.client.errors import ProtocolError

_MANAGED_FIELDS = b'"managedFields":'
_METADATA = b'"metadata":{'


class CacheEntry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One object at one revision. Immutable; `body` is its JSON without managedFields."""

    namespace: str
    name: str
    revision: int
    generation: int
    label_names: tuple[str, ...]  # a dict takes 232 bytes; most of these are shared by many entries
    label_values: tuple[str, ...]
    owners: tuple[OwnerHeader, ...]
    body: bytes

    @property
    def key(self) -> ObjectKey:
        """Which object; made anew at each call."""
        return ObjectKey(self.namespace, self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The labels, as a dict of the caller's own."""
        return dict(zip(self.label_names, self.label_values, strict=True))

    @property
    def header(self) -> Header:
        """All identifying metadata, decoded anew at each call."""
        return read_header(self.body)

    def __repr__(self) -> str:
        return f"<CacheEntry {self.key} @{self.revision}, {len(self.body)} bytes>"


def entry_of(header: Header, raw: bytes) -> CacheEntry:
    """The entry of an object whose header is decoded already."""
    revision = revision_of(header)
    if header.managed_fields:
        raw = _without_managed_fields(raw, bytes(header.managed_fields))
    labels, owners = header.labels, header.owner_references
    return CacheEntry(
        sys.intern(header.namespace),
        header.name,
        revision,
        header.generation,
        _kept_once(tuple(labels)) if labels else (),
        _kept_once(tuple(labels.values())) if labels else (),
        tuple(map(_shared, owners)) if owners else (),
        raw,
    )


def revision_of(metadata: Header | ObjectMeta) -> int:
    """The resourceVersion as a number, as it can be compared. Every server has numbers there."""
    try:
        return int(metadata.resource_version)
    except ValueError:
        key = ObjectKey(metadata.namespace, metadata.name)
        raise ProtocolError(
            f'{key} has the resourceVersion "{metadata.resource_version}": expected an integer'
        ) from None


def parse_entry(raw: bytes) -> CacheEntry:
    """The entry of an object in JSON."""
    return entry_of(parse_header(raw), raw)


def parse_header(raw: bytes) -> Header:
    """The header of an object in JSON."""
    try:
        return read_header(raw)
    except NOT_JSON as error:
        raise ProtocolError(f"the server sent an object that cannot be read: {error}") from None


_label_words: dict[tuple[str, ...], tuple[str, ...]] = {}
_MOST_LABEL_WORDS = 10_000


def _kept_once(words: tuple[str, ...]) -> tuple[str, ...]:
    """Objects of a kind mostly have the same labels, often with the same values: as many as are alike share them."""
    shared = _label_words.get(words)
    if shared is None:
        if len(_label_words) >= _MOST_LABEL_WORDS:
            return words
        shared = _label_words[words] = words
    return shared


def _shared(owner: OwnerHeader) -> OwnerHeader:
    """Thousands of objects have owners of the same kind: the words for it are kept once."""
    owner.api_version = sys.intern(owner.api_version)
    owner.kind = sys.intern(owner.kind)
    return owner


def _without_managed_fields(raw: bytes, fields: bytes) -> bytes:
    # Inside of JSON strings the quotes are escaped, so the name with its quotes and colon is always a real key.
    start = raw.find(_MANAGED_FIELDS)
    end = start + len(_MANAGED_FIELDS) + len(fields)
    unambiguous = (
        start > 0
        and raw.endswith(fields, start + len(_MANAGED_FIELDS), end)
        and (raw[start - 1] == ord(",") or raw[end] == ord(","))
        # Servers send the metadata before all else that could hold such a key; otherwise it must be the only one.
        and (raw.count(b"{", 0, max(raw.find(_METADATA, 0, start), 0)) == 1 or raw.count(_MANAGED_FIELDS) == 1)
    )
    if not unambiguous:
        return _rebuilt_without_managed_fields(raw)
    if raw[start - 1] == ord(","):
        return raw[: start - 1] + raw[end:]
    return raw[:start] + raw[end + 1 :]


def _rebuilt_without_managed_fields(raw: bytes) -> bytes:
    """For objects that hold the name somewhere else too, or are not compact: all other values stay as they are."""
    whole = members(raw)
    metadata = members(whole["metadata"])
    metadata.pop("managedFields", None)
    return _joined({**whole, "metadata": _joined(metadata)})


def _joined(fields: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (msgspec.json.encode(name), value) for name, value in fields.items())
