from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api.codec import split_list
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.kinds import ObjectKey
from kubewright.cache.entry import CacheEntry, applied_marker, entry_of, parse_entry
from kubewright.client.errors import ProtocolError
from kubewright.client.watch import parse_event

_FIELDS = [{"manager": "kubectl", "fieldsV1": {"f:data": {"f:managedFields": {}}}}]


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def test_an_entry_has_what_is_needed_to_find_it() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    metadata = {
        "name": "web",
        "namespace": "shop",
        "resourceVersion": "12",
        "generation": 3,
        "labels": {"app": "web"},
        "ownerReferences": [owner],
    }
    raw = _encoded({"kind": "Pod", "metadata": metadata, "spec": {}})
    entry = parse_entry(raw)
    assert (entry.key, entry.revision, entry.generation) == (ObjectKey("shop", "web"), 12, 3)
    assert entry.labels == {"app": "web"}
    assert [(each.kind, each.name, each.controller) for each in entry.owners] == [("Node", "n", True)]
    assert entry.body == raw


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "a", "resourceVersion": "1", "managedFields": _FIELDS},
        {"managedFields": _FIELDS, "name": "a", "resourceVersion": "1"},
        {"name": "a", "managedFields": _FIELDS, "resourceVersion": "1"},
        {"name": "a", "resourceVersion": "1", "managedFields": []},
    ],
)
def test_managed_fields_are_cut_out_and_nothing_else_is(metadata: dict[str, object]) -> None:
    whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "1"}}
    entry = parse_entry(_encoded(whole))
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    assert msgspec.json.decode(entry.body) == {**whole, "metadata": kept}


def test_the_word_managed_fields_elsewhere_in_the_object_survives() -> None:
    template = {"metadata": {"managedFields": _FIELDS}}
    metadata = {
        "annotations": {"last": '{"managedFields":[]}'},
        "managedFields": _FIELDS,
        "name": "a",
        "resourceVersion": "1",
    }
    entry = parse_entry(_encoded({"a": template, "metadata": metadata, "spec": {"template": template}}))
    decoded = msgspec.json.decode(entry.body)
    assert decoded["a"] == template
    assert decoded["spec"] == {"template": template}
    assert decoded["metadata"] == {"annotations": metadata["annotations"], "name": "a", "resourceVersion": "1"}


def test_managed_fields_are_cut_out_of_json_that_is_not_compact() -> None:
    raw = msgspec.json.format(_encoded({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": _FIELDS}}))
    assert msgspec.json.decode(parse_entry(raw).body) == {"metadata": {"name": "a", "resourceVersion": "1"}}


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8) | st.just('"managedFields":'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "managedFields", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(managed=st.lists(_json, max_size=3), rest=_json, first=st.booleans())
def test_cutting_never_changes_anything_else(managed: object, rest: object, first: bool) -> None:
    metadata = {"name": "a", "resourceVersion": "1", "annotations": {"x": "y"}}
    with_managed = {"managedFields": managed, **metadata} if first else {**metadata, "managedFields": managed}
    entry = parse_entry(_encoded({"before": rest, "metadata": with_managed, "after": rest}))
    assert msgspec.json.decode(entry.body) == {"before": rest, "metadata": metadata, "after": rest}


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"metadata":{"name":"a","resourceVersion":"x1"}}', b'{"metadata":'])
def test_json_that_is_no_kubernetes_object_is_an_error_that_says_so(raw: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"cannot be read|expected an integer"):
        parse_entry(raw)


@pytest.mark.parametrize("managed", [[], _FIELDS])
def test_an_entry_keeps_nothing_of_the_message_it_came_in_alive(managed: list[object]) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    metadata = {
        "name": "a",
        "resourceVersion": "1",
        "labels": {"app": "web"},
        "ownerReferences": [owner],
        "managedFields": managed,
    }
    line = b'{"type":"ADDED","object":' + _encoded({"kind": "ConfigMap", "metadata": metadata}) + b"}"
    page = _encoded({"items": [{"metadata": metadata}] * 2})
    before = sys.getrefcount(line), sys.getrefcount(page)
    event = parse_event(ConfigMap, line)
    entries = [entry_of(event.header, event.raw), *(parse_entry(bytes(item)) for item in split_list(page)[1])]
    del event
    assert (sys.getrefcount(line), sys.getrefcount(page)) == before
    assert [type(entry.body) for entry in entries] == [bytes] * 3


def test_entries_share_the_strings_they_have_in_common() -> None:
    def entry(name: str) -> CacheEntry:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}
        metadata = {"namespace": "shop", "name": name, "resourceVersion": "1", "labels": {"app": name, "tier": "x"}}
        return parse_entry(_encoded({"metadata": {**metadata, "ownerReferences": [owner]}}))

    one, other = entry("one"), entry("other")
    assert one.key.namespace is other.key.namespace
    assert one.label_names is other.label_names
    assert one.owners[0].kind is other.owners[0].kind
    assert one.owners[0].api_version is other.owners[0].api_version
    assert (one.labels, other.labels) == ({"app": "one", "tier": "x"}, {"app": "other", "tier": "x"})


def test_absent_and_null_metadata_are_the_same() -> None:
    bare = {"name": "a", "resourceVersion": "1"}
    nulls = {
        **bare,
        "labels": None,
        "annotations": None,
        "ownerReferences": None,
        "finalizers": None,
        "deletionTimestamp": None,
    }
    for entry in (parse_entry(_encoded({"metadata": metadata})) for metadata in (bare, nulls)):
        assert (entry.generation, entry.labels, entry.owners) == (0, {}, ())
        assert entry.key == ObjectKey("", "a")


def test_null_managed_fields_are_cut_out_too() -> None:
    entry = parse_entry(_encoded({"metadata": {"name": "a", "resourceVersion": "1", "managedFields": None}}))
    assert msgspec.json.decode(entry.body) == {"metadata": {"name": "a", "resourceVersion": "1"}}


def test_a_revision_beyond_64_bits_stays_exact() -> None:
    entry = parse_entry(_encoded({"metadata": {"name": "a", "resourceVersion": "123456789012345678901234567890"}}))
    assert entry.revision == 123456789012345678901234567890


def test_names_and_labels_of_any_script_are_kept_as_they_are() -> None:
    metadata = {"name": "café-日本", "namespace": "ñ", "resourceVersion": "1", "labels": {"größe": "ü", "𝄞": ""}}
    for raw in (
        _encoded({"metadata": metadata}),
        b'{"metadata":{"name":"caf\\u00e9-\\u65e5\\u672c","namespace":"\\u00f1",'
        b'"resourceVersion":"1","labels":{"gr\\u00f6\\u00dfe":"\\u00fc","\\ud834\\udd1e":""}}}',
    ):
        entry = parse_entry(raw)
        assert entry.key == ObjectKey("ñ", "café-日本")
        assert entry.labels == {"größe": "ü", "𝄞": ""}
        assert entry.body == raw


OWNED = b'{"f:data":{"f:a":{}}}'


def managed(*entries: bytes) -> CacheEntry:
    fields = b",".join(entries)
    raw = b'{"metadata":{"name":"a","resourceVersion":"1","managedFields":[%b]},"data":{"a":"1"}}' % fields
    return parse_entry(raw, applied_marker("me"))


def field_manager(name: bytes, operation: bytes, *, version: bytes = b"v1", more: bytes = b"") -> bytes:
    return b'{"manager":"%b","operation":"%b","apiVersion":"%b","fieldsType":"FieldsV1","fieldsV1":%b%b}' % (
        name,
        operation,
        version,
        OWNED,
        more,
    )


def test_fields_owned_by_our_apply_are_kept_when_the_rest_is_cut() -> None:
    entry = managed(field_manager(b"other", b"Apply"), field_manager(b"me", b"Update"), field_manager(b"me", b"Apply"))
    assert entry.applied == b" v1 " + OWNED
    assert (entry.applied_to(""), entry.applied_to("status")) == (("v1", OWNED), None)
    assert b"managedFields" not in entry.body
    assert managed(field_manager(b"me", b"Apply")).applied is entry.applied


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [field_manager(b"other", b"Apply")],
        [field_manager(b"me", b"Update")],
        [field_manager(b"me", b"Apply"), field_manager(b"me", b"Apply", version=b"v2")],
    ],
    ids=["no manager", "another manager", "an update", "two versions"],
)
def test_ownership_that_an_apply_cannot_be_compared_with_is_not_kept(entries: list[bytes]) -> None:
    assert managed(*entries).applied == b""


def test_what_is_owned_of_a_subresource_is_kept_apart() -> None:
    status = field_manager(b"me", b"Apply", version=b"v2", more=b',"subresource":"status"')
    for entry in (managed(field_manager(b"me", b"Apply"), status), managed(status, field_manager(b"me", b"Apply"))):
        assert entry.applied_to("") == ("v1", OWNED)
        assert entry.applied_to("status") == ("v2", OWNED)
        assert entry.applied_to("scale") is None
    twice = managed(status, status, field_manager(b"me", b"Apply"))
    assert (twice.applied_to(""), twice.applied_to("status")) == (("v1", OWNED), None)
