"""What the cache keeps of an object: its JSON, and what is needed to find it without decoding that.

managedFields are cut out on arrival: they are up to half of an object and change with every write, and an update
without them leaves them as they are on the server. What this program owns by server-side apply is kept aside.
"""

from __future__ import annotations

import sys
from collections import Counter
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
_COMMA = ord(",")


class CacheEntry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One object at one revision. Immutable; `body` is its JSON without managedFields.

    `applied` is what this program owns by apply: for the object itself, and for each subresource, a line with its name
    (empty for the object), the apiVersion and the JSON of the fields, with blanks between them.
    """

    namespace: str
    name: str
    revision: int
    generation: int
    label_names: tuple[str, ...]  # a dict takes 232 bytes; most of these are shared by many entries
    label_values: tuple[str, ...]
    owners: tuple[OwnerHeader, ...]
    body: bytes
    applied: bytes = b""

    @property
    def key(self) -> ObjectKey:
        """The key of the object; built at each call."""
        return ObjectKey(self.namespace, self.name)

    @property
    def labels(self) -> dict[str, str]:
        """The labels, in a new dict."""
        return dict(zip(self.label_names, self.label_values, strict=True))

    def applied_to(self, subresource: str) -> tuple[str, bytes] | None:
        """The apiVersion and the JSON of the fields that this program owns by apply, of the object or a subresource."""
        for line in self.applied.splitlines():
            name, version, fields = line.split(b" ", 2)
            if name == subresource.encode():
                return version.decode(), fields
        return None

    @property
    def header(self) -> Header:
        """All identifying metadata, decoded at each call."""
        return read_header(self.body)

    def __repr__(self) -> str:
        return f"<CacheEntry {self.key} @{self.revision}, {len(self.body)} bytes>"


def applied_marker(field_manager: str) -> bytes:
    """The text in managedFields that shows that a manager owns fields by apply, as every server writes it."""
    return b'"manager":%b,"operation":"Apply"' % msgspec.json.encode(field_manager)


def entry_of(header: Header, raw: bytes, marker: bytes = b"") -> CacheEntry:
    """The entry of an object whose header is decoded already. `marker` is the `applied_marker` of this program."""
    revision = revision_of(header)
    applied = b""
    if header.managed_fields:
        managed_fields = bytes(header.managed_fields)
        if marker and marker in managed_fields:
            applied = _applied(managed_fields, marker)
        raw = _without_managed_fields(raw, managed_fields)
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
        applied,
    )


def revision_of(metadata: Header | ObjectMeta) -> int:
    """The resourceVersion as a number, which can be compared. Every server has numbers there."""
    try:
        return int(metadata.resource_version)
    except ValueError:
        key = ObjectKey(metadata.namespace, metadata.name)
        raise ProtocolError(
            f'{key} has the resourceVersion "{metadata.resource_version}": expected an integer'
        ) from None


def parse_entry(raw: bytes, marker: bytes = b"") -> CacheEntry:
    """The entry of an object in JSON."""
    return entry_of(parse_header(raw), raw, marker)


def parse_header(raw: bytes) -> Header:
    """The header of an object in JSON."""
    try:
        return read_header(raw)
    except NOT_JSON as error:
        raise ProtocolError(f"the server sent an object that cannot be read: {error}") from None


class _ManagedFields(msgspec.Struct, rename={"api_version": "apiVersion", "fields": "fieldsV1"}):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    fields: msgspec.Raw = msgspec.Raw(b"{}")


_managed_fields = msgspec.json.Decoder(list[_ManagedFields])


def _applied(managed_fields: bytes, marker: bytes) -> bytes:
    """What the marked manager owns by apply; nothing of what it owns in several versions."""
    try:
        owned = [
            each
            for each in _managed_fields.decode(managed_fields)
            if each.operation == "Apply" and applied_marker(each.manager) == marker
        ]
    except NOT_JSON:
        return b""
    times = Counter(each.subresource for each in owned)
    fields = b"\n".join(
        b"%b %b %b" % (each.subresource.encode(), each.api_version.encode(), each.fields)
        for each in owned
        if times[each.subresource] == 1
    )
    # Objects that are made alike are owned alike.
    return _owned_fields.setdefault(fields, fields) if len(_owned_fields) < _MAX_SHARED else fields


_label_words: dict[tuple[str, ...], tuple[str, ...]] = {}
_owned_fields: dict[bytes, bytes] = {}
_MAX_SHARED = 10_000


def _kept_once(words: tuple[str, ...]) -> tuple[str, ...]:
    """Objects of a kind mostly have the same labels, often with the same values: equal ones are stored once."""
    shared = _label_words.get(words)
    if shared is None:
        if len(_label_words) >= _MAX_SHARED:
            return words
        shared = _label_words[words] = words
    return shared


def _shared(owner: OwnerHeader) -> OwnerHeader:
    """Thousands of objects have owners of the same kind: its strings are stored once."""
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
        and (raw[start - 1] == _COMMA or raw[end] == _COMMA)
        # Servers send the metadata before all else that could hold such a key; otherwise it must be the only one.
        and (raw.count(b"{", 0, max(raw.find(_METADATA, 0, start), 0)) == 1 or raw.count(_MANAGED_FIELDS) == 1)
    )
    if not unambiguous:
        return _rebuilt_without_managed_fields(raw)
    if raw[start - 1] == _COMMA:
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
