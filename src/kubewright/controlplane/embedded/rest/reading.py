"""Get, list, and how stored objects become the bytes of a response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from kubewright.api.markers import JSONObject
from kubewright.api.selectors import FieldMatcher, FieldRequirement, LabelMatcher
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import bounded_integer, quoted
from kubewright.controlplane.embedded.apimachinery.selectors import parse_field_selector, parse_label_selector
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    not_found,
    not_supported,
)
from kubewright.controlplane.embedded.registry.resources import ResourceType
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.freshness import must_be_listable, not_reached
from kubewright.controlplane.embedded.storage.continuation import decode_continue, encode_continue, expired_continue
from kubewright.controlplane.embedded.storage.store import Compacted, FutureRevision, StoredObject

MANY: Final = 256
"""Objects that are rendered, deleted or otherwise treated before other requests have their turn."""


@dataclass(frozen=True, slots=True)
class ObjectSelection:
    """Which objects of a kind a list or watch selects."""

    resource: ResourceType
    labels: LabelMatcher
    fields: FieldMatcher

    @property
    def selects_all(self) -> bool:
        """Whether nothing is left out."""
        return self.labels.matches_all and self.fields.matches_all

    def is_single(self, prefix: str) -> bool:
        """Whether there is but one object below `prefix` that can be selected."""
        is_scoped = not self.resource.namespaced or prefix != self.resource.prefix
        return is_scoped and self.fields.exact("metadata.name") is not None

    def matches(self, obj: JSONObject) -> bool:
        """Whether an object is selected."""
        if not self.labels.matches_all:
            found = mapping(obj, "metadata", "labels")
            if not self.labels.matches({name: str(value) for name, value in found.items()}):
                return False
        if self.fields.matches_all:
            return True
        fields = dict(self.resource.strategy.selectable_fields(obj))
        fields["metadata.name"] = text(obj, "metadata", "name")
        fields["metadata.namespace"] = text(obj, "metadata", "namespace")
        return self.fields.matches(fields)


def selection(call: Call) -> ObjectSelection:
    """The selectors of a request. A field that cannot be selected by is a bad request."""
    labels = parse_label_selector(call.query.text("labelSelector"))
    fields = parse_field_selector(call.query.text("fieldSelector"))
    if call.target.name:
        fields = _only(call.target.name, fields)
    known = selectable(call.resource)
    for name in fields.names:
        if name not in known:
            raise bad_request(not_selectable(call.resource, name))
    return ObjectSelection(call.resource, labels, fields)


def selectable(resource: ResourceType) -> frozenset[str]:
    """The fields a kind is selected by. The real server requires a scope only where a kind has fields of its own."""
    has_own = resource.custom or resource.strategy.selectable
    common = {"metadata.name"} if has_own and not resource.namespaced else {"metadata.name", "metadata.namespace"}
    return resource.strategy.selectable | common


def _only(name: str, fields: FieldMatcher) -> FieldMatcher:
    """A watch of a single object by its path selects by its name."""
    if fields.exact("metadata.name") not in (None, name):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return FieldMatcher((*fields.requirements, FieldRequirement("metadata.name", "=", name)))


def not_selectable(resource: ResourceType, name: str) -> str:
    """The error for any other field; some kinds have their own."""
    match resource.gvk:
        case ("batch", "v1", "Job"):
            return f"field label {quoted(name)} not supported for Job"
        case ("resource.k8s.io", "v1", "ResourceSlice"):
            return f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {name}"
    if resource.custom or resource.strategy.selectable:
        return f"field label not supported: {name}"
    return f'{quoted(name)} is not a known field selector: only "metadata.name", "metadata.namespace"'


def get(call: Call) -> StoredObject:
    """The entry of the object a request names."""
    _check_revision(call, call.query.text("resourceVersion"))
    entry = call.services.store.get(call.resource.key(call.target.namespace, call.target.name))
    if entry is None:
        raise not_found(call.resource.plural, call.resource.gvk.group, call.target.name)
    return entry


@dataclass(frozen=True, slots=True)
class Listed:
    """A page: its entries, the revision it shows and what follows."""

    entries: list[StoredObject]
    revision: int
    continue_: str = ""
    remaining: int | None = None


def list_entries(call: Call) -> Listed:
    """A page of the objects of a kind, consistent with the pages before it."""
    _decode_options(call)
    _check_list_options(call)
    selected = selection(call)
    store, query = call.services.store, call.query
    try:
        parse_revision(query.text("resourceVersion") or "0")
    except StatusError as error:
        raise bad_request(f"invalid resource version: {error.message}") from None
    # A list of any age comes from what is at hand, whole.
    limit = 0 if query.text("resourceVersion") == "0" else max(0, query.number("limit") or 0)
    if limit == 0 or not selected.selects_all:
        must_be_listable(call)
    prefix = collection_prefix(call)
    if call.target.namespace in (".", ".."):
        raise StatusError(500, "", f'invalid key: "/{call.resource.plural}/{call.target.namespace}"')
    token = query.text("continue")
    revision: int | None = None
    start = ""
    if token:
        position = decode_continue(token, prefix)
        if query.text("resourceVersion") not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        start, revision = position.start, position.revision if position.revision > 0 else None
    elif query.text("resourceVersionMatch") == "Exact" or (
        limit and query.text("resourceVersion") not in ("", "0") and not query.text("resourceVersionMatch")
    ):
        revision = parse_revision(query.text("resourceVersion"))
    else:
        _check_revision(call, query.text("resourceVersion"))
    try:
        if limit == 0 or selected.selects_all:
            found = store.range(prefix, start=start, limit=limit, revision=revision)
            entries = found.entries
            if not selected.selects_all:
                entries = [entry for entry in entries if selected.matches(entry.value)]
            more, last, remaining = found.more, found.entries[-1].key if found.entries else "", found.remaining
        else:
            found = store.range(prefix, start=start, revision=revision)
            entries = list(islice((entry for entry in found.entries if selected.matches(entry.value)), limit))
            last, remaining = entries[-1].key if entries else "", None
            # A full page that is not the end has another one after it, even if nothing will be on that; unless a
            # single object is requested.
            more = len(entries) == limit and entries[-1] is not found.entries[-1] and not selected.is_single(prefix)
    except Compacted:
        raise (
            expired_continue(prefix, start)
            if token
            else expired("The resourceVersion for the provided list is too old.")
        ) from None
    except FutureRevision as error:
        raise not_reached(call, error.requested) from None
    if not more:
        return Listed(entries, found.revision)
    next_page = encode_continue(found.revision, last + "\0", prefix)
    return Listed(entries, found.revision, next_page, remaining if selected.selects_all else None)


def collection_prefix(call: Call) -> str:
    """Where the objects of a collection are in the store."""
    resource = call.resource
    if resource.namespaced and call.target.namespace:
        return f"{resource.prefix}{call.target.namespace}/"
    return resource.prefix


def parse_revision(value: str) -> int:
    """A resourceVersion as a number. One that is none is taken for a failure of the server, as by the real one."""
    complaint = ""
    if not value.isdecimal() or not value.isascii():
        complaint = "invalid syntax"
    elif bounded_integer(value) >= 2**64:
        complaint = "value out of range"
    if complaint:
        parsing = f"strconv.ParseUint: parsing {quoted(value)}: {complaint}"
        raise StatusError(500, "", f"resourceVersion: Invalid value: {quoted(value)}: {parsing}")
    return bounded_integer(value)


def _check_revision(call: Call, value: str) -> None:
    """`0` takes the current one; another revision must have been reached."""
    if not value or value == "0":
        return
    if (revision := parse_revision(value)) > call.services.store.revision:
        raise not_reached(call, revision)


def _decode_options(call: Call) -> None:
    """Options that cannot be parsed are refused before any are validated."""
    for name in ("timeoutSeconds", "limit"):
        call.query.number(name)
    parse_label_selector(call.query.text("labelSelector"))
    parse_field_selector(call.query.text("fieldSelector"))


def _check_list_options(call: Call) -> None:
    """Which of revision, match and token may be given together."""
    query = call.query
    match, revision, token = query.text("resourceVersionMatch"), query.text("resourceVersion"), query.text("continue")
    errors: list[FieldError] = []
    if match:
        if token:
            errors.append(
                forbidden_field("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            )
        if not revision:
            errors.append(
                forbidden_field(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and revision == "0":
            errors.append(
                forbidden_field(
                    "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
                )
            )
    if query.text("sendInitialEvents"):
        errors.append(forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise invalid("ListOptions", "meta.k8s.io", "", errors)


def rendered(resource: ResourceType, entry: StoredObject) -> bytes:
    """An object as JSON, with its kind."""
    return resource.opening + entry.raw[1:]


def rendered_list(resource: ResourceType, listed: Listed) -> Iterator[bytes]:
    """A list as JSON, in pieces of many objects. Items of built-in kinds come without apiVersion and kind."""
    opening = resource.list_opening + b"{"
    # What is not stored has none.
    if listed.revision:
        opening += f'"resourceVersion":"{listed.revision}"'.encode()
    if listed.continue_:
        opening += f',"continue":"{listed.continue_}"'.encode()
        if listed.remaining:
            opening += f',"remainingItemCount":{listed.remaining}'.encode()
    elif resource.custom:
        opening += b',"continue":""'
    if resource.custom:
        item = resource.opening
        rendered = (item + entry.raw[1:] for entry in listed.entries)
    else:
        rendered = (entry.raw for entry in listed.entries)
    return json_list(opening + b'},"items":', rendered, b"}\n")


def json_list(opening: bytes, items: Iterator[bytes], closing: bytes) -> Iterator[bytes]:
    """A JSON array between two texts, in pieces of `MANY` items."""
    opening += b"["
    while batch := list(islice(items, MANY)):
        yield opening + b",".join(batch)
        opening = b","
    yield (opening if opening != b"," else b"") + b"]" + closing
